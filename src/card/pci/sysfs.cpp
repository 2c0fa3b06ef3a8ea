#include "card/pci/sysfs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace rodeo::card::pci {

namespace fs = std::filesystem;

namespace {

/// The number in a small file, with or without 0x; nothing if the file has none.
template <typename T>
std::optional<T> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  if (!(stream >> text)) return std::nullopt;
  const bool hexadecimal = text.starts_with("0x");
  const char* begin = text.data() + (hexadecimal ? 2 : 0);
  T value{};
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string link_name(const fs::path& link) {
  std::error_code failure;
  const fs::path target = fs::read_symlink(link, failure);
  return failure ? std::string{} : target.filename().string();
}

std::optional<unsigned> trailing_number(std::string_view text, std::string_view prefix) {
  unsigned value = 0;
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

SysfsFunction read_function(const Address& address, const fs::path& directory) {
  SysfsFunction found;
  found.address = address;
  for (const auto& [name, number] : {std::pair{"vendor", &found.vendor}, std::pair{"device", &found.device}}) {
    const auto value = number_in<std::uint16_t>(directory / name);
    if (!value) found.problem = fmt::format("cannot read {}", (directory / name).string());
    *number = value.value_or(0);
  }
  found.driver = link_name(directory / "driver");
  found.iommu_group = trailing_number(link_name(directory / "iommu_group"), "");
  found.numa_node = number_in<int>(directory / "numa_node").value_or(-1);
  for (const std::string& name : names_in(directory / "uio")) {
    if (const auto number = trailing_number(name, "uio")) found.uio = number;
  }
  return found;
}

}  // namespace

fs::path function_directory(const Address& address, const fs::path& root) {
  return root / "sys/bus/pci/devices" / address.text();
}

std::vector<SysfsFunction> list_functions(const fs::path& root) {
  std::vector<SysfsFunction> functions;
  for (const std::string& name : names_in(root / "sys/bus/pci/devices")) {
    // Skip names that are not addresses: domains above ffff belong to devices of hypervisors.
    if (const auto address = Address::parse(name))
      functions.push_back(read_function(*address, function_directory(*address, root)));
  }
  std::sort(functions.begin(), functions.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return functions;
}

Result<SysfsFunction> find_function(const Address& address, const fs::path& root) {
  const fs::path directory = function_directory(address, root);
  std::error_code failure;
  if (!fs::exists(directory, failure)) {
    return std::unexpected(Error{"card.not_found", fmt::format("there is no PCI function {}", address.text()), "",
                                 "`lspci -D` lists all functions; a card that was plugged in or reprogrammed needs `echo "
                                 "1 | sudo tee /sys/bus/pci/rescan`"});
  }
  return read_function(address, directory);
}

std::vector<Address> functions_of_group(unsigned group, const fs::path& root) {
  std::vector<Address> addresses;
  for (const std::string& name : names_in(root / fmt::format("sys/kernel/iommu_groups/{}/devices", group))) {
    if (const auto address = Address::parse(name)) addresses.push_back(*address);
  }
  return addresses;
}

std::optional<LinkErrors> link_errors(const Address& address, const fs::path& root) {
  // Lines of a name and a number; the last one is the sum.
  const auto total = [&](const char* file, std::string_view name) -> std::optional<std::uint64_t> {
    std::ifstream in(function_directory(address, root) / file);
    std::string word;
    std::uint64_t count = 0;
    while (in >> word >> count) {
      if (word == name) return count;
    }
    return std::nullopt;
  };
  const auto correctable = total("aer_dev_correctable", "TOTAL_ERR_COR");
  const auto nonfatal = total("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
  const auto fatal = total("aer_dev_fatal", "TOTAL_ERR_FATAL");
  if (!correctable || !nonfatal || !fatal) return std::nullopt;
  return LinkErrors{*correctable, *nonfatal, *fatal};
}

std::string how_to_bind(const Address& address, std::string_view driver) {
  const std::string device = "/sys/bus/pci/devices/" + address.text();
  return fmt::format(
      "as root: modprobe {0}; echo {0} > {1}/driver_override; if [ -e {1}/driver ]; then echo {2} > {1}/driver/unbind; fi; "
      "echo {2} > /sys/bus/pci/drivers_probe",
      driver, device, address.text());
}

Result<BackEnd> usable_back_end(const SysfsFunction& function, bool allow_uio) {
  const std::string where = function.address.text();
  if (!function.problem.empty()) return std::unexpected(Error{"card.driver", function.problem, where, ""});
  if (function.driver == "vfio-pci") {
    if (function.iommu_group) return BackEnd::vfio;
    return std::unexpected(
        Error{"card.no_iommu", "the card has no IOMMU group: this host has no IOMMU, or it is off", where,
              "add intel_iommu=on (AMD: on by itself) to the kernel's command line and switch VT-d on in the "
              "firmware; without an IOMMU there is UIO: docs/how-to/cards-in-a-guest.md"});
  }
  if (function.driver == "uio_pci_generic") {
    if (allow_uio) return BackEnd::uio;
    return std::unexpected(
        Error{"card.driver",
              "the card is driven by uio_pci_generic, which lets it write anywhere in memory, and UIO was not asked for",
              where, "set RODEO_UIO=1, or " + how_to_bind(function.address, "vfio-pci")});
  }
  return std::unexpected(
      Error{"card.driver",
            function.driver.empty() ? std::string("no driver has the card")
                                    : fmt::format("the card is driven by {}, not by vfio-pci", function.driver),
            where, how_to_bind(function.address, function.iommu_group || !allow_uio ? "vfio-pci" : "uio_pci_generic")});
}

}  // namespace rodeo::card::pci
