#include "card/pci/keeper_function.h"

#include <linux/pci_regs.h>

#include <algorithm>

namespace rodeo::card::pci {

Result<void> KeeperFunction::post(std::span<const RegionWrite> writes) {
  for (const RegionWrite& one : writes) {
    const auto bytes = std::as_bytes(std::span(&one.value, 1)).first(std::min<std::size_t>(one.bytes, sizeof one.value));
    RODEO_TRY(regions_.write(one.region, one.offset, bytes));
  }
  return {};
}

Result<void> KeeperFunction::set_bus_master(bool on) {
  return regions_.change_command(on ? PCI_COMMAND_MASTER : 0, on ? 0 : PCI_COMMAND_MASTER);
}

}  // namespace rodeo::card::pci
