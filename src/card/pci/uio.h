// A function under uio_pci_generic, on a host without an IOMMU: the card sees physical addresses and may write anywhere.
#pragma once

#include <memory>

#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Asks the keeper for the function, which starts if it has to. Only call it for somebody who asked for UIO: nothing but the driver's
/// correctness keeps the card from writing over other memory. Errors as those of open_vfio().
///
/// dma_map takes memory on hugetlbfs alone (card.not_contiguous) and gives its IOVA no meaning but that of a key for bus_address(). There is
/// one interrupt, level-triggered: calling interrupt(0) again arms it again. dma_map needs a keeper that is root's.
Result<std::unique_ptr<Function>> open_uio(const Address& address);

}  // namespace rodeo::card::pci
