// PCI functions that may be cards: finds and opens them.
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

/// The facts about a function that need no opening.
struct FoundFunction {
  Address address = {};
  BackEnd back_end = BackEnd::vfio;
  std::optional<card_registers::PciId> id = {};  // set for a real card; an emulated card reports it when opened
  std::filesystem::path place = {};              // socket of an emulated card, sysfs directory of a real one
  std::filesystem::path lock_file =
      {};              // shows the owners of DMA channels: by kernel locks (emulated; byte N: channel N), by notes (real)
  int numa_node = -1;  // -1: not known
  std::string problem = {};                          // why the function cannot be used; empty: no reason known
  std::optional<std::uint16_t> register_map = {};    // FELIX: the user's map, in place of the map that the card reports
  std::chrono::milliseconds silence = kVerbSilence;  // emulated: kRunSilence for a run
  bool unasked = false;     // open it without checking that it answers; for lists, which show silent cards
  bool any_device = false;  // open it even if it is not a readout card: a user named its address

  Capabilities capabilities() const { return capabilities_of(back_end); }
};

/// Emulated cards: the sockets in <runtime directory>/cards, by address. A socket whose name is not an address is a row with
/// a problem; other files are left out. The list is empty if the directory does not exist or cannot be read (see below).
std::vector<FoundFunction> emulated_functions();

/// Checks that emulated cards can be searched: error base.runtime_dir if their directory exists and cannot be read.
Result<void> look_for_emulated_functions();

/// PCI functions of this host, by address, from sysfs. A function that cannot be used has the reason as its problem. `root`
/// is for tests.
std::vector<FoundFunction> real_functions(const std::filesystem::path& root = "/");

/// All functions of this host and of this user's emulators, by address. Never fails: an unreadable function is a row with a
/// problem.
std::vector<FoundFunction> all_functions();

/// Opens a function by its back end. A real card under uio_pci_generic is opened only if the environment has RODEO_UIO=1:
/// without an IOMMU a card may write anywhere in memory.
Result<std::unique_ptr<Function>> open_function(const FoundFunction& function);

}  // namespace rodeo::card::pci
