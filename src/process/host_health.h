// How the host of a process is: CPU, memory, huge pages, disks, network, temperatures, as the kernel tells it, and as metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::process {

/// The text of a small file, without the newline; nothing if it cannot be read.
std::optional<std::string> text_of_file(const std::filesystem::path& file);
/// The number with which it begins.
std::optional<std::uint64_t> number_of_file(const std::filesystem::path& file);

// One parser for each text of the kernel: what a line does not tell, or tells in another form, is left out.

struct CoreTimes {
  std::string cpu;  ///< "0"
  std::uint64_t busy_ticks = 0;
  std::uint64_t idle_ticks = 0;  ///< waiting for disks included
};
/// /proc/stat
std::vector<CoreTimes> parse_core_times(std::string_view text);

/// A number of /proc/stat that stands first behind its name: "intr", interrupts served; "ctxt", context switches.
std::optional<std::uint64_t> parse_stat(std::string_view text, std::string_view name);

/// A value of /proc/meminfo in bytes: "MemAvailable".
std::optional<std::uint64_t> parse_memory(std::string_view text, std::string_view name);

struct DiskCounts {
  std::string device;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t busy_ms = 0;
};
/// /proc/diskstats; devices that have done nothing are left out.
std::vector<DiskCounts> parse_disks(std::string_view text);

struct InterfaceCounts {
  struct Way {
    std::uint64_t bytes = 0, packets = 0, errors = 0, drops = 0;
  };
  std::string interface;
  Way received;
  Way sent;
};
/// /proc/net/dev
std::vector<InterfaceCounts> parse_interfaces(std::string_view text);

struct HugePages {
  std::string size;  ///< "2048kB"
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};
/// Of each size that the kernel has, below sys/kernel/mm/hugepages of `root`.
std::vector<HugePages> huge_pages(const std::filesystem::path& root);

struct Temperature {
  std::string sensor;  ///< "coretemp Core 0 (hwmon1/temp2)": no two have one name
  double celsius = 0;
};
/// Of sys/class/hwmon, else of sys/class/thermal; empty where there are no sensors, as in most virtual machines.
std::vector<Temperature> temperatures(const std::filesystem::path& root);

/// All of it as metrics in Prometheus' text format, read now. `directories`: whose file systems' free space is wanted. `root`: where proc and sys are.
/// Names: docs/reference/metrics.md.
std::string host_metrics(std::span<const std::string> directories, const std::filesystem::path& root = "/");

}  // namespace rodeo::process
