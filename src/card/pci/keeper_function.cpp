#include "card/pci/keeper_function.h"

#include <linux/pci_regs.h>

#include <algorithm>

namespace rodeo::card::pci {

Result<void> KeeperFunction::set_bus_master(bool on) {
  return regions_.change_command(on ? PCI_COMMAND_MASTER : 0, on ? 0 : PCI_COMMAND_MASTER);
}

}  // namespace rodeo::card::pci
