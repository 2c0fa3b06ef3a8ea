#include "process/host_health.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "process/prometheus.h"

namespace rodeo::process {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    parts.push_back(text.substr(0, text.find_first_of(separators)));
    text.remove_prefix(parts.back().size());
  }
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

/// The numbers of a line from word `first` on; nothing if there are fewer than `least`.
std::optional<std::vector<std::uint64_t>> numbers_of(std::span<const std::string_view> words, std::size_t first,
                                                     std::size_t least) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = first; i < words.size(); ++i) {
    const auto number = number_of(words[i]);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() < least) return std::nullopt;
  return numbers;
}

/// The entries of a directory, sorted by name; empty if the directory does not exist.
std::vector<fs::path> sorted_entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    entries.push_back(entry->path());
  std::ranges::sort(entries);
  return entries;
}

/// Reads a sensor's file: thousandths of a degree, possibly negative.
void add_temperature(std::vector<Temperature>& out, std::string sensor, const fs::path& file) {
  const auto text = text_of_file(file);
  long thousandths = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), thousandths).ec != std::errc{}) return;
  out.push_back({std::move(sensor), static_cast<double>(thousandths) * 1e-3});
}

}  // namespace

std::optional<std::string> text_of_file(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) return std::nullopt;
  std::string text(std::istreambuf_iterator<char>(stream), {});
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::uint64_t> number_of_file(const fs::path& file) {
  const auto text = text_of_file(file);
  return text ? number_of(*text) : std::nullopt;
}

std::vector<CoreTimes> parse_core_times(std::string_view text) {
  std::vector<CoreTimes> cores;
  for (const std::string_view line : split(text, "\n")) {
    const auto words = split(line, " ");
    if (words.empty() || !words[0].starts_with("cpu") || words[0].size() == 3) continue;
    // Fields: user nice system idle iowait irq softirq steal. The guests' time is part of user.
    const auto ticks = numbers_of(words, 1, 8);
    if (!ticks) continue;
    const auto& t = *ticks;
    cores.push_back({std::string(words[0].substr(3)), t[0] + t[1] + t[2] + t[5] + t[6] + t[7], t[3] + t[4]});
  }
  return cores;
}

std::optional<std::uint64_t> parse_stat(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, "\n")) {
    if (!line.starts_with(name)) continue;
    const auto words = split(line, " ");
    if (words.size() >= 2 && words[0] == name) return number_of(words[1]);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_memory(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, "\n")) {
    const auto words = split(line, " :");
    if (words.size() != 3 || words[0] != name || words[2] != "kB") continue;
    const auto kilobytes = number_of(words[1]);
    return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<DiskCounts> parse_disks(std::string_view text) {
  constexpr std::uint64_t kSector = 512;  // the unit of this file, independent of the device's sectors
  std::vector<DiskCounts> disks;
  for (const std::string_view line : split(text, "\n")) {
    const auto words = split(line, " ");
    if (words.size() < 3 || !number_of(words[0]) || !number_of(words[1])) continue;
    const auto counts = numbers_of(words, 3, 10);
    if (!counts) continue;
    const auto& c = *counts;
    if (c[0] + c[4] > 0) disks.push_back({std::string(words[2]), c[2] * kSector, c[6] * kSector, c[9]});
  }
  return disks;
}

std::vector<InterfaceCounts> parse_interfaces(std::string_view text) {
  std::vector<InterfaceCounts> interfaces;
  for (const std::string_view line : split(text, "\n")) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto name = split(line.substr(0, colon), " ");
    const auto counts = numbers_of(split(line.substr(colon + 1), " "), 0, 12);
    if (name.size() != 1 || !counts) continue;
    const auto& c = *counts;
    interfaces.push_back({std::string(name[0]), {c[0], c[1], c[2], c[3]}, {c[8], c[9], c[10], c[11]}});
  }
  return interfaces;
}

std::vector<HugePages> huge_pages(const fs::path& root) {
  std::vector<HugePages> out;
  constexpr std::string_view kPrefix = "hugepages-";
  for (const fs::path& entry : sorted_entries(root / "sys/kernel/mm/hugepages")) {
    const std::string name = entry.filename();
    const auto total = number_of_file(entry / "nr_hugepages");
    if (!total || !name.starts_with(kPrefix)) continue;
    out.push_back({name.substr(kPrefix.size()), *total, number_of_file(entry / "free_hugepages").value_or(0)});
  }
  return out;
}

std::vector<Temperature> temperatures(const fs::path& root) {
  constexpr std::string_view kInput = "_input";
  std::vector<Temperature> out;
  for (const fs::path& chip : sorted_entries(root / "sys/class/hwmon")) {
    const std::string chip_name = text_of_file(chip / "name").value_or(chip.filename());
    for (const fs::path& file : sorted_entries(chip)) {
      const std::string name = file.filename();
      if (!name.starts_with("temp") || !name.ends_with(kInput)) continue;
      const std::string number = name.substr(0, name.size() - kInput.size());
      const std::string what = text_of_file(chip / (number + "_label")).value_or("sensor");
      add_temperature(out, fmt::format("{} {} ({}/{})", chip_name, what, chip.filename().string(), number), file);
    }
  }
  if (!out.empty()) return out;
  for (const fs::path& zone : sorted_entries(root / "sys/class/thermal")) {
    const std::string name = zone.filename();
    if (!name.starts_with("thermal_zone")) continue;
    add_temperature(out, fmt::format("{} ({})", text_of_file(zone / "type").value_or("sensor"), name), zone / "temp");
  }
  return out;
}

std::string host_metrics(std::span<const std::string> directories, const fs::path& root) {
  PrometheusText out;
  const auto each = [&](const char* name, const char* type, const char* help, const auto& all, const char* label, auto key,
                        auto value) {
    if (all.empty()) return;
    out.metric(name, type, help);
    for (const auto& one : all) out.sample(value(one), {{label, one.*key}});
  };

  const std::string stat = text_of_file(root / "proc/stat").value_or("");
  const auto cores = parse_core_times(stat);
  const auto tick = 1.0 / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  each("rodeo_host_cpu_busy_seconds_total", "counter", "Time that a core worked.", cores, "cpu", &CoreTimes::cpu,
       [&](const CoreTimes& one) { return static_cast<double>(one.busy_ticks) * tick; });
  each("rodeo_host_cpu_idle_seconds_total", "counter", "Time that a core was idle or waited for disks.", cores, "cpu",
       &CoreTimes::cpu, [&](const CoreTimes& one) { return static_cast<double>(one.idle_ticks) * tick; });

  const auto single = [&](const char* name, const char* type, const char* help, std::optional<std::uint64_t> value) {
    if (!value) return;
    out.metric(name, type, help);
    out.sample(*value);
  };
  single("rodeo_host_interrupts_total", "counter", "Interrupts that the host has served.", parse_stat(stat, "intr"));
  single("rodeo_host_context_switches_total", "counter", "Times that a core switched from one thread to another.",
         parse_stat(stat, "ctxt"));
  const std::string memory = text_of_file(root / "proc/meminfo").value_or("");
  single("rodeo_host_memory_bytes", "gauge", "Memory of the host.", parse_memory(memory, "MemTotal"));
  single("rodeo_host_memory_available_bytes", "gauge", "Memory that processes can get without swapping.",
         parse_memory(memory, "MemAvailable"));
  const auto pages = huge_pages(root);
  each("rodeo_host_huge_pages", "gauge", "Huge pages that are reserved.", pages, "size", &HugePages::size,
       [](const HugePages& one) { return one.total; });
  each("rodeo_host_huge_pages_free", "gauge", "Huge pages that are not in use.", pages, "size", &HugePages::size,
       [](const HugePages& one) { return one.free; });

  const auto disks = parse_disks(text_of_file(root / "proc/diskstats").value_or(""));
  each("rodeo_host_disk_read_bytes_total", "counter", "Bytes read from a disk or partition.", disks, "device",
       &DiskCounts::device, [](const DiskCounts& one) { return one.read_bytes; });
  each("rodeo_host_disk_written_bytes_total", "counter", "Bytes written to a disk.", disks, "device", &DiskCounts::device,
       [](const DiskCounts& one) { return one.written_bytes; });
  each("rodeo_host_disk_busy_seconds_total", "counter", "Time that a disk or partition was busy.", disks, "device",
       &DiskCounts::device, [](const DiskCounts& one) { return static_cast<double>(one.busy_ms) * 1e-3; });

  struct Space {
    std::string directory;
    std::uint64_t total, free;
  };
  std::vector<Space> spaces;
  for (const std::string& directory : directories) {
    struct statvfs found{};
    if (::statvfs(directory.c_str(), &found) == 0)
      spaces.push_back({directory, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize});
  }
  each("rodeo_host_directory_bytes", "gauge", "Size of the file system of an output directory.", spaces, "directory",
       &Space::directory, [](const Space& one) { return one.total; });
  each("rodeo_host_directory_free_bytes", "gauge", "Free space in it for this user.", spaces, "directory", &Space::directory,
       [](const Space& one) { return one.free; });

  const auto interfaces = parse_interfaces(text_of_file(root / "proc/net/dev").value_or(""));
  struct Metric {
    const char* name;
    const char* help;
    std::uint64_t InterfaceCounts::Direction::* value;
  };
  using Direction = InterfaceCounts::Direction;
  for (const Metric& metric :
       {Metric{"bytes", "Bytes over a network interface", &Direction::bytes},
        Metric{"packets", "Network packets", &Direction::packets}, Metric{"errors", "Damaged packets", &Direction::errors},
        Metric{"drops", "Packets dropped for lack of buffers", &Direction::drops}}) {
    for (const auto& [direction, member] :
         {std::pair("received", &InterfaceCounts::received), std::pair("sent", &InterfaceCounts::sent)})
      each(fmt::format("rodeo_host_network_{}_{}_total", direction, metric.name).c_str(), "counter",
           fmt::format("{}, {}.", metric.help, direction).c_str(), interfaces, "interface", &InterfaceCounts::interface,
           [&](const InterfaceCounts& one) { return (one.*member).*metric.value; });
  }
  each("rodeo_host_temperature_celsius", "gauge", "Sensor temperature.", temperatures(root), "sensor", &Temperature::sensor,
       [](const Temperature& one) { return one.celsius; });
  return out.take();
}

}  // namespace rodeo::process
