// PCI functions that may be cards: where they were found, and how one is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "card/pci/function.h"
#include "card_registers/register_map.h"

namespace rodeo::card::pci {

/// What is known of a function without opening it.
struct FoundFunction {
  Address address = {};
  BackEnd back_end = BackEnd::vfio;
  std::optional<card_registers::PciId> id = {};  // of a real card; an emulated one tells when it is opened
  std::filesystem::path place = {};              // socket of an emulated card, sysfs directory of a real one
  std::filesystem::path lock_file =
      {};                    // says who owns DMA channels: by kernel locks (emulated; byte N: channel N), by notes (real)
  int numa_node = -1;        // -1: not known
  std::string problem = {};  // why it cannot be used; empty: nothing known
  std::optional<std::uint16_t> register_map =
      {};                   // of a FELIX: the map that a user names, in place of the one that the card names
  bool unasked = false;     // opened without asking whether it answers: for lists, which name those that do not
  bool any_device = false;  // opened though its id is that of no readout card: a user named its address
};

/// Emulated cards: the sockets in <runtime directory>/cards, by address. One whose name is no address is a row with a problem; other files are none.
/// No directory, or one that cannot be read (see below), no cards.
std::vector<FoundFunction> emulated_functions();

/// Whether emulated cards can be looked for: error base.runtime_dir if their directory is there and cannot be read.
Result<void> look_for_emulated_functions();

/// PCI functions of this host, by address, from sysfs. What stands in the way of using one is its problem. `root` is for tests.
std::vector<FoundFunction> real_functions(const std::filesystem::path& root = "/");

/// Every function that this host and this user's emulators have, by address. Never fails: what cannot be read is a row with a problem.
std::vector<FoundFunction> all_functions();

/// Opens it by its back end. A real card that is driven by uio_pci_generic is opened only if the environment says RODEO_UIO=1: without an IOMMU a
/// card may write anywhere.
Result<std::unique_ptr<Function>> open_function(const FoundFunction& function);

}  // namespace rodeo::card::pci
