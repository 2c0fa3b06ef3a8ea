#include "cli/examine_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "base/cpu.h"
#include "base/units.h"
#include "card/pci/sysfs.h"

namespace rodeo::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// The text of a small file, without the newline; nothing if it cannot be read.
std::optional<std::string> text_of(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) return std::nullopt;
  std::string text(std::istreambuf_iterator<char>(stream), {});
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::uint64_t> number_of(const fs::path& file) {
  const std::optional<std::string> text = text_of(file);
  std::uint64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

/// Names in a directory that begin with `prefix` and go on with a digit.
std::size_t count_numbered(const fs::path& directory, std::string_view prefix) {
  std::size_t count = 0;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    count +=
        name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= '0' && name[prefix.size()] <= '9';
  }
  return count;
}

Finding huge_pages(const fs::path& root, const std::string& name, std::uint64_t kilobytes, std::uint64_t wanted) {
  const std::string directory = fmt::format("sys/kernel/mm/hugepages/hugepages-{}kB", kilobytes);
  const auto total = number_of(root / directory / "nr_hugepages");
  const auto free = number_of(root / directory / "free_hugepages");
  Finding finding{name,
                  Health::good,
                  {},
                  "Buffers on huge pages spare the CPU address look-ups; without them plain memory is used.",
                  {}};
  if (!total) {
    finding.health = Health::missing;
    finding.value = "not offered by this kernel";
    return finding;
  }
  finding.value = fmt::format("{} of {} free", free.value_or(0), *total);
  // Pages of 1 GiB are for large pools of whole hosts; those of 2 MiB do for all the rest.
  if (free.value_or(0) < wanted) {
    finding.health = Health::warning;
    finding.remedy = fmt::format("echo {} | sudo tee /{}/nr_hugepages", wanted, directory);
  }
  return finding;
}

Finding transparent_huge_pages(const fs::path& root) {
  const auto text = text_of(root / "sys/kernel/mm/transparent_hugepage/enabled");
  Finding finding{"transparent_huge_pages", Health::good, {}, "Gives buffers huge pages where none were set aside.", {}};
  if (!text) return {finding.name, Health::missing, "not offered by this kernel", finding.meaning, {}};
  const std::size_t open = text->find('[');
  const std::size_t close = text->find(']');
  finding.value = open == std::string::npos || close == std::string::npos ? *text : text->substr(open + 1, close - open - 1);
  if (finding.value == "never") {
    finding.health = Health::warning;
    finding.remedy = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return finding;
}

Finding limit(const std::string& name, int resource, rlim_t wanted, const std::string& meaning, const std::string& item,
              bool bytes) {
  rlimit now{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) {
    return {name, Health::missing, std::strerror(errno), meaning, {}};
  }
  const bool unlimited = now.rlim_cur == RLIM_INFINITY;
  Finding finding{name, Health::good, {}, meaning, {}};
  finding.value = unlimited ? "unlimited" : bytes ? base::format_size(now.rlim_cur) : fmt::format("{}", now.rlim_cur);
  if (!unlimited && now.rlim_cur < wanted) {
    finding.health = Health::warning;
    const std::string value = bytes ? "unlimited" : fmt::format("{}", wanted);
    finding.remedy =
        fmt::format("echo '* - {} {}' | sudo tee -a /etc/security/limits.d/rodeo.conf, then log in anew", item, value);
  }
  return finding;
}

Finding governor(const fs::path& root) {
  const auto text = text_of(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  Finding finding{"cpu_governor",
                  Health::good,
                  text.value_or("left to hardware or hypervisor"),
                  "A CPU that saves power wakes slowly: latency grows, and rates vary from run to run.",
                  {}};
  if (text && *text != "performance") {
    finding.health = Health::warning;
    finding.remedy = "sudo cpupower frequency-set -g performance";
  }
  return finding;
}

Finding numa(const fs::path& root) {
  const std::size_t nodes = count_numbered(root / "sys/devices/system/node", "node");
  Finding finding{"numa_nodes",
                  Health::good,
                  fmt::format("{}", nodes),
                  "A worker should run on the node of its card and its memory.",
                  {}};
  if (nodes == 0) return {finding.name, Health::missing, "not told by this kernel", finding.meaning, {}};
  if (nodes > 1) {
    finding.health = Health::warning;
    finding.remedy =
        "numactl --cpunodebind=0 --membind=0 rodeo readout ..., or pin workers with `cpus`; `numactl --hardware` shows the "
        "nodes";
  }
  return finding;
}

Finding iommu(const fs::path& root) {
  const std::size_t groups = count_numbered(root / "sys/kernel/iommu_groups", "");
  Finding finding{"iommu",
                  Health::good,
                  fmt::format("{} groups", groups),
                  "Real cards are driven through VFIO, which needs it; emulated ones do not.",
                  {}};
  if (groups == 0) {
    finding.health = Health::missing;
    finding.value = "off";
    finding.remedy =
        "add intel_iommu=on (AMD: on by itself) and iommu=pt to the kernel's command line, switch VT-d on in the firmware, "
        "and boot";
  }
  return finding;
}

/// Cards are known by their PCI ids in the driver's room; here it is enough to see who drives what VFIO could have.
Finding card_drivers(const fs::path& root) {
  std::size_t vfio = 0;
  std::size_t uio = 0;
  for (const auto& [driver, count] : {std::pair{"vfio-pci", &vfio}, std::pair{"uio_pci_generic", &uio}}) {
    std::error_code failure;
    for (fs::directory_iterator entry(root / "sys/bus/pci/drivers" / driver, failure), end; !failure && entry != end;
         entry.increment(failure))
      *count += card::pci::Address::parse(entry->path().filename().string()).has_value();
  }
  Finding finding{"card_drivers",
                  Health::good,
                  fmt::format("{} devices with vfio-pci, {} with uio_pci_generic", vfio, uio),
                  "A real card belongs to vfio-pci; `rodeo card list` says what stands in the way of one.",
                  {}};
  if (vfio == 0 && uio == 0) {
    finding.health = Health::missing;
    finding.value = fs::exists(root / "sys/bus/pci/drivers/vfio-pci") ? "no device with vfio-pci" : "no driver vfio-pci";
    finding.remedy =
        card::pci::how_to_bind(card::pci::Address{0, 0x3b, 0, 0}, "vfio-pci") + " (3b:00.0 stands for your card)";
  } else if (uio > 0) {
    finding.health = Health::warning;
    finding.remedy =
        "bind them to vfio-pci if the host has an IOMMU: with uio_pci_generic a card may write anywhere in memory";
  }
  return finding;
}

Finding dirty_limit(const fs::path& root) {
  const auto bytes = number_of(root / "proc/sys/vm/dirty_bytes");
  const auto ratio = number_of(root / "proc/sys/vm/dirty_ratio");
  const auto background = number_of(root / "proc/sys/vm/dirty_background_ratio");
  Finding finding{"page_cache_dirty_limit",
                  Health::good,
                  {},
                  "Written data waits in memory up to this share, then all writers stall at once. Files of the readout go "
                  "past the page cache where "
                  "the file system can.",
                  {}};
  if (!bytes && !ratio) return {finding.name, Health::missing, "not told by this kernel", finding.meaning, {}};
  finding.value = bytes.value_or(0) != 0
                      ? base::format_size(*bytes)
                      : fmt::format("{} % of memory, written back from {} %", ratio.value_or(0), background.value_or(0));
  if (bytes.value_or(0) == 0 && ratio.value_or(0) > 30) {
    finding.health = Health::warning;
    finding.remedy = "sudo sysctl -w vm.dirty_ratio=20 vm.dirty_background_ratio=5";
  }
  return finding;
}

Finding memory(const fs::path& root) {
  const auto text = text_of(root / "proc/meminfo");
  Finding finding{
      "memory_available", Health::good, {}, "Pools, windows and the generator's pages are taken from it at start.", {}};
  const std::size_t at = text ? text->find("MemAvailable:") : std::string::npos;
  if (at == std::string::npos) return {finding.name, Health::missing, "not told by this kernel", finding.meaning, {}};
  const std::uint64_t kilobytes = std::strtoull(text->c_str() + at + std::strlen("MemAvailable:"), nullptr, 10);
  finding.value = base::format_quantity(static_cast<double>(kilobytes) * 1024, "B");
  if (kilobytes < std::uint64_t{2} << 20) {
    finding.health = Health::warning;
    finding.remedy = "end what else uses memory (`ps aux --sort=-rss | head`), or lower links and window";
  }
  return finding;
}

Finding clock_source(const fs::path& root) {
  const auto text = text_of(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
  Finding finding{"clock_source",
                  Health::good,
                  text.value_or(""),
                  "Time is read without entering the kernel from tsc and kvm-clock, ten times slower from others.",
                  {}};
  if (!text) return {finding.name, Health::missing, "not told by this kernel", finding.meaning, {}};
  if (*text != "tsc" && *text != "kvm-clock" && *text != "arch_sys_counter" &&
      !text->starts_with("hyperv_clocksource_tsc")) {
    finding.health = Health::warning;
    finding.remedy = "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource";
  }
  return finding;
}

Finding cpu_features() {
  const base::CpuLevel level = base::cpu_level();
  Finding finding{
      "cpu_level", Health::good, std::string(base::cpu_level_name(level)), "Kernels are chosen for it at run time.", {}};
  if (level == base::CpuLevel::v2) {
    finding.health = Health::warning;
    finding.remedy = std::getenv("RODEO_CPU_LEVEL") != nullptr
                         ? "unset RODEO_CPU_LEVEL"
                         : "use a CPU with AVX2; in a virtual machine, pass the host's CPU through";
  }
  return finding;
}

/// Writes for a while, past the page cache where the file system can; the file never has a name, so nothing can stay behind.
Finding disk_speed(const fs::path& directory, std::chrono::milliseconds time) {
  Finding finding{"disk_write_speed",
                  Health::good,
                  {},
                  "What the file writer can reach at most; 192 links of 40-byte chunks at 100 kHz make 1 GB/s.",
                  {}};
  const auto failed = [&](std::string_view what) {
    return Finding{finding.name, Health::missing, fmt::format("{} {}: {}", what, directory.string(), std::strerror(errno)),
                   finding.meaning, "rodeo doctor --directory DIR names one that you may write to"};
  };
  bool direct = true;
  int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
  if (file < 0) {
    direct = false;
    file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  }
  if (file < 0) return failed("cannot write in");
  constexpr std::size_t kBlock = 4 * kMiB;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kBlock), &std::free);
  std::memset(block.get(), 0x5a, kBlock);
  const auto start = std::chrono::steady_clock::now();
  std::size_t written = 0;
  while (written < kMost && std::chrono::steady_clock::now() - start < time) {
    const ssize_t part = pwrite(file, block.get(), kBlock, static_cast<off_t>(written));
    if (part <= 0) {
      finding = failed("cannot write to");
      close(file);
      return finding;
    }
    written += static_cast<std::size_t>(part);
  }
  if (!direct) fdatasync(file);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  close(file);
  const double speed = static_cast<double>(written) / seconds;
  finding.value =
      fmt::format("{} in {}{}", base::format_quantity(speed, "B/s"), fs::absolute(directory).lexically_normal().string(),
                  direct ? "" : " (through the page cache)");
  if (speed < 500e6) {
    finding.health = Health::warning;
    finding.remedy = "write to a faster disk (`directory` of the file writer), or take a share: fraction, max_rate";
  }
  return finding;
}

}  // namespace

std::string_view health_name(Health health) {
  switch (health) {
    case Health::good: return "ok";
    case Health::warning: return "warn";
    case Health::missing: return "missing";
  }
  return "";
}

std::vector<Finding> examine_host(const DoctorSettings& settings) {
  const fs::path& root = settings.root;
  std::vector<Finding> findings = {
      cpu_features(),
      governor(root),
      clock_source(root),
      numa(root),
      memory(root),
      huge_pages(root, "huge_pages_2mib", 2048, 256),
      huge_pages(root, "huge_pages_1gib", 1048576, 0),
      transparent_huge_pages(root),
      limit("locked_memory_limit", RLIMIT_MEMLOCK, RLIM_INFINITY, "Memory that a card writes to has to be locked.",
            "memlock", true),
      limit("open_files_limit", RLIMIT_NOFILE, 4096, "Every link's connection and every open file takes one.", "nofile",
            false),
      iommu(root),
      card_drivers(root),
      dirty_limit(root),
  };
  if (settings.disk_time.count() > 0) findings.push_back(disk_speed(settings.data_directory, settings.disk_time));
  return findings;
}

}  // namespace rodeo::cli
