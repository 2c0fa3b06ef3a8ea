// The state of a process's host, read from the kernel: CPU, memory, huge pages, disks, network, temperatures. Also as
// metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::process {

/// The text of a small file, without the newline at its end; nothing if the file cannot be read.
std::optional<std::string> text_of_file(const std::filesystem::path& file);
/// The number at the start of the file.
std::optional<std::uint64_t> number_of_file(const std::filesystem::path& file);

// One parser for each text of the kernel. A parser skips lines of an unknown form.

struct CoreTimes {
  std::string cpu;  ///< "0"
  std::uint64_t busy_ticks = 0;
  std::uint64_t idle_ticks = 0;  ///< including the time that the core waited for disks
};
/// /proc/stat
std::vector<CoreTimes> parse_core_times(std::string_view text);

/// The first number after this name in /proc/stat: "intr", interrupts served; "ctxt", context switches.
std::optional<std::uint64_t> parse_stat(std::string_view text, std::string_view name);

/// A value of /proc/meminfo in bytes: "MemAvailable".
std::optional<std::uint64_t> parse_memory(std::string_view text, std::string_view name);

struct DiskCounts {
  std::string device;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t busy_ms = 0;
};
/// /proc/diskstats, without devices that have done nothing.
std::vector<DiskCounts> parse_disks(std::string_view text);

struct InterfaceCounts {
  struct Direction {
    std::uint64_t bytes = 0, packets = 0, errors = 0, drops = 0;
  };
  std::string interface;
  Direction received;
  Direction sent;
};
/// /proc/net/dev
std::vector<InterfaceCounts> parse_interfaces(std::string_view text);

struct HugePages {
  std::string size;  ///< "2048kB"
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};
/// For each page size of the kernel, from sys/kernel/mm/hugepages below `root`.
std::vector<HugePages> huge_pages(const std::filesystem::path& root);

struct Temperature {
  std::string sensor;  ///< unique: "coretemp Core 0 (hwmon1/temp2)"
  double celsius = 0;
};
/// From sys/class/hwmon, else from sys/class/thermal. Empty if there are no sensors, as in most virtual machines.
std::vector<Temperature> temperatures(const std::filesystem::path& root);

/// All values, read now, in Prometheus' text format, with the free space of the file systems of `directories`. `root`: the
/// parent of proc and sys. Names: docs/reference/metrics.md.
std::string host_metrics(std::span<const std::string> directories, const std::filesystem::path& root = "/");

}  // namespace rodeo::process
