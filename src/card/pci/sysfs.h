// The PCI functions of this host as sysfs tells of them: who drives each, and what stands in the way of using it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "card/pci/function.h"

namespace rodeo::card::pci {

struct SysfsFunction {
  Address address;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string driver;                   // empty: none
  std::optional<unsigned> iommu_group;  // nothing: there is no IOMMU, or it is off
  std::optional<unsigned> uio;          // N of /dev/uioN
  int numa_node = -1;                   // -1: not known
  std::string problem;                  // what could not be read; empty: nothing
};

/// All functions, by address. One that cannot be read is a row with a problem. A host without PCI has none; `root` is for tests.
std::vector<SysfsFunction> list_functions(const std::filesystem::path& root = "/");

/// card.not_found if there is no such function.
Result<SysfsFunction> find_function(const Address& address, const std::filesystem::path& root = "/");

/// The directory of a function, the one of a group's functions.
std::filesystem::path function_directory(const Address& address, const std::filesystem::path& root = "/");
/// Errors of a function's PCIe link that the kernel has counted since it was found (AER). Nothing: no such function, or a kernel or a port without AER.
struct LinkErrors {
  std::uint64_t correctable = 0;
  std::uint64_t nonfatal = 0;
  std::uint64_t fatal = 0;
};
std::optional<LinkErrors> link_errors(const Address& address, const std::filesystem::path& root = "/");
std::vector<Address> functions_of_group(unsigned group, const std::filesystem::path& root = "/");

/// How the function can be opened as it stands, else card.driver or card.no_iommu with what to type. UIO only if `allow_uio`.
Result<BackEnd> usable_back_end(const SysfsFunction& function, bool allow_uio);

/// The commands that give a function to a driver.
std::string how_to_bind(const Address& address, std::string_view driver);

}  // namespace rodeo::card::pci
