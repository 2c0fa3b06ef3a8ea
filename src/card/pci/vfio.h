// A function under the kernel's vfio-pci.
#pragma once

#include <memory>
#include <string>

#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Asks the keeper for the function, which starts if it has to. card.not_found, card.driver, card.no_iommu, card.permission, card.held,
/// card.keeper; each says what to do.
///
/// Memory for dma_map needs a file on hugetlbfs or tmpfs (memfd). When the handle or its process ends, however it ends, its memory is taken
/// from the card, and bus mastering ends with the last handle that has memory mapped.
Result<std::unique_ptr<Function>> open_vfio(const Address& address);

}  // namespace rodeo::card::pci
