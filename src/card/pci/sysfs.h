// The PCI functions of this host from sysfs: the driver of each, and why a function cannot be used.
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
  std::optional<unsigned> iommu_group;  // nothing: the host has no IOMMU, or it is off
  std::optional<unsigned> uio;          // N of /dev/uioN
  int numa_node = -1;                   // -1: not known
  std::string problem;                  // a file that could not be read; empty: all were read
};

/// All functions, by address. An unreadable function is a row with a problem. Empty for a host without PCI; `root` is for
/// tests.
std::vector<SysfsFunction> list_functions(const std::filesystem::path& root = "/");

/// Error card.not_found if the function does not exist.
Result<SysfsFunction> find_function(const Address& address, const std::filesystem::path& root = "/");

/// The sysfs directory of a function.
std::filesystem::path function_directory(const Address& address, const std::filesystem::path& root = "/");
/// Errors of a function's PCIe link that the kernel has counted since it was found (AER). Nothing: no such function, or no
/// AER in the kernel or the port.
struct LinkErrors {
  std::uint64_t correctable = 0;
  std::uint64_t nonfatal = 0;
  std::uint64_t fatal = 0;
};
std::optional<LinkErrors> link_errors(const Address& address, const std::filesystem::path& root = "/");
std::vector<Address> functions_of_group(unsigned group, const std::filesystem::path& root = "/");

/// The back end that can open the function now; else card.driver or card.no_iommu, with the commands to type. UIO only if
/// `allow_uio`.
Result<BackEnd> usable_back_end(const SysfsFunction& function, bool allow_uio);

/// The commands that give a function to a driver.
std::string how_to_bind(const Address& address, std::string_view driver);

}  // namespace rodeo::card::pci
