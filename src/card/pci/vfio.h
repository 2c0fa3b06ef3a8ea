// A function under the kernel's vfio-pci.
#pragma once

#include <memory>
#include <string>

#include "card/pci/function.h"

namespace rodeo::card::pci {

/// Asks the keeper for the function; starts a keeper if none runs. Errors: card.not_found, card.driver, card.no_iommu,
/// card.permission, card.held, card.keeper; each says what to do.
///
/// Memory for dma_map needs a file on hugetlbfs or tmpfs (memfd). When the handle or its process ends for any reason, the
/// keeper takes its memory from the card. Bus mastering ends with the last handle that has memory mapped.
Result<std::unique_ptr<Function>> open_vfio(const Address& address);

}  // namespace rodeo::card::pci
