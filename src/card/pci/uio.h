// A function under uio_pci_generic, on a host without an IOMMU: the card sees physical addresses and may write anywhere.
#pragma once

#include <memory>

#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Asks the keeper for the function; starts a keeper if none runs. Call it only if the user asked for UIO: only the driver's
/// correctness keeps the card from overwriting other memory. Errors are those of open_vfio().
///
/// dma_map accepts only memory on hugetlbfs (card.not_contiguous) and uses its IOVA only as a key for bus_address(). The
/// function has one interrupt, level-triggered: call interrupt(0) again to arm it again. dma_map needs a keeper that runs as
/// root.
Result<std::unique_ptr<Function>> open_uio(const Address& address);

}  // namespace rodeo::card::pci
