#include "cli/examine_host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/cpu.h"
#include "base/fd_socket.h"
#include "base/sentence.h"
#include "base/units.h"
#include "card/pci/sysfs.h"
#include "process/host_health.h"

namespace rodeo::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

using process::number_of_file;
using process::text_of_file;

/// Counts names in a directory that begin with `prefix` and continue with a digit.
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

/// A finding. With a remedy it is a warning. `missing`: the value could not be determined.
struct Look {
  std::string value;
  std::string remedy = {};
  bool missing = false;
};

Look not_offered() { return {.value = "not offered by this kernel", .missing = true}; }
Look not_told() { return {.value = "not reported by this kernel", .missing = true}; }

// Pages of 1 GiB are for large pools on big hosts; pages of 2 MiB suffice for all else.
Look huge_pages(const fs::path& root, std::uint64_t kilobytes, std::uint64_t wanted) {
  const std::string directory = fmt::format("sys/kernel/mm/hugepages/hugepages-{}kB", kilobytes);
  const auto total = number_of_file(root / directory / "nr_hugepages");
  const std::uint64_t free = number_of_file(root / directory / "free_hugepages").value_or(0);
  if (!total) return not_offered();
  return {fmt::format("{} of {} free", free, *total),
          free < wanted ? fmt::format("echo {} | sudo tee /{}/nr_hugepages", wanted, directory) : ""};
}

Look transparent_huge_pages(const fs::path& root) {
  const auto text = text_of_file(root / "sys/kernel/mm/transparent_hugepage/enabled");
  if (!text) return not_offered();
  const std::size_t open = text->find('[');
  const std::size_t close = text->find(']');
  const bool chosen = open != std::string::npos && close != std::string::npos;
  const std::string value = chosen ? text->substr(open + 1, close - open - 1) : *text;
  return {value, value == "never" ? "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled" : ""};
}

Look limit(int resource, rlim_t wanted, const std::string& item, bool bytes) {
  rlimit now{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0)
    return {.value = std::strerror(errno), .missing = true};
  if (now.rlim_cur == RLIM_INFINITY) return {"unlimited"};
  const std::string value = bytes ? "unlimited" : fmt::format("{}", wanted);
  return {
      bytes ? base::format_size(now.rlim_cur) : fmt::format("{}", now.rlim_cur),
      now.rlim_cur < wanted
          ? fmt::format("echo '* - {} {}' | sudo tee -a /etc/security/limits.d/rodeo.conf, then log in again", item, value)
          : ""};
}

Look governor(const fs::path& root) {
  const auto text = text_of_file(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return {text.value_or("left to hardware or hypervisor"),
          text && *text != "performance" ? "sudo cpupower frequency-set -g performance" : ""};
}

Look numa(const fs::path& root) {
  const std::size_t nodes = count_numbered(root / "sys/devices/system/node", "node");
  if (nodes == 0) return not_told();
  return {fmt::format("{}", nodes), nodes > 1 ? "numactl --cpunodebind=0 --membind=0 rodeo readout ..., or pin workers with "
                                                "`cpus`; `numactl --hardware` shows the nodes"
                                              : ""};
}

Look iommu(const fs::path& root) {
  const std::size_t groups = count_numbered(root / "sys/kernel/iommu_groups", "");
  if (groups > 0) return {base::counted(groups, "group")};
  return {
      "off",
      "add intel_iommu=on (AMD: on by default) and iommu=pt to the kernel's command line, switch VT-d on in the firmware, "
      "and reboot",
      true};
}

/// Counts devices by driver. It does not check PCI ids; `rodeo card list` does.
Look card_drivers(const fs::path& root) {
  const auto devices_of = [&](const char* driver) {
    std::size_t count = 0;
    std::error_code failure;
    for (fs::directory_iterator entry(root / "sys/bus/pci/drivers" / driver, failure), end; !failure && entry != end;
         entry.increment(failure))
      count += card::pci::Address::parse(entry->path().filename().string()).has_value();
    return count;
  };
  const std::size_t vfio = devices_of("vfio-pci");
  const std::size_t uio = devices_of("uio_pci_generic");
  if (vfio == 0 && uio == 0) {
    return {fs::exists(root / "sys/bus/pci/drivers/vfio-pci") ? "no device with vfio-pci" : "no driver vfio-pci",
            card::pci::how_to_bind(card::pci::Address{0, 0x3b, 0, 0}, "vfio-pci") + " (3b:00.0 stands for your card)", true};
  }
  return {fmt::format("{} devices with vfio-pci, {} with uio_pci_generic", vfio, uio),
          uio > 0
              ? "bind them to vfio-pci if the host has an IOMMU: with uio_pci_generic a card may write anywhere in memory"
              : ""};
}

Look dirty_limit(const fs::path& root) {
  const std::uint64_t bytes = number_of_file(root / "proc/sys/vm/dirty_bytes").value_or(0);
  const auto ratio = number_of_file(root / "proc/sys/vm/dirty_ratio");
  if (bytes != 0) return {base::format_size(bytes)};
  if (!ratio) return not_told();
  return {fmt::format("{} % of memory, written back from {} %", *ratio,
                      number_of_file(root / "proc/sys/vm/dirty_background_ratio").value_or(0)),
          *ratio > 30 ? "sudo sysctl -w vm.dirty_ratio=20 vm.dirty_background_ratio=5" : ""};
}

Look memory(const fs::path& root) {
  const auto available = process::parse_memory(text_of_file(root / "proc/meminfo").value_or(""), "MemAvailable");
  if (!available) return not_told();
  return {base::format_quantity(static_cast<double>(*available), "B"),
          *available < std::uint64_t{2} << 30
              ? "end other programs that use memory (`ps aux --sort=-rss | head`), or lower links and window"
              : ""};
}

Look clock_source(const fs::path& root) {
  const auto text = text_of_file(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (!text) return not_told();
  const bool fast =
      *text == "tsc" || *text == "kvm-clock" || *text == "arch_sys_counter" || text->starts_with("hyperv_clocksource_tsc");
  return {*text, fast ? "" : "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"};
}

Look cpu_features() {
  const base::CpuLevel level = base::cpu_level();
  return {std::string(base::cpu_level_name(level)), level != base::CpuLevel::v2 ? ""
                                                    : std::getenv("RODEO_CPU_LEVEL") != nullptr
                                                        ? "unset RODEO_CPU_LEVEL"
                                                        : "use a CPU with AVX2; in a virtual machine, pass the host's CPU "
                                                          "through"};
}

/// Writes for a while, without the page cache if the file system allows it. The file has no name, so it cannot stay behind.
Look disk_speed(const fs::path& directory, std::chrono::milliseconds time) {
  const auto failed = [&](std::string_view what) {
    return Look{fmt::format("{} {}: {}", what, directory.string(), std::strerror(errno)),
                "rodeo doctor --directory DIR names one that you may write to", true};
  };
  bool direct = true;
  base::UniqueFd file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600));
  if (!file) {
    direct = false;
    file = base::UniqueFd(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  }
  if (!file) return failed("cannot write in");
  constexpr std::size_t kBlock = 4 * kMiB;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kBlock), &std::free);
  std::memset(block.get(), 0x5a, kBlock);
  const auto start = std::chrono::steady_clock::now();
  std::size_t written = 0;
  while (written < kMost && std::chrono::steady_clock::now() - start < time) {
    const ssize_t part = pwrite(file.get(), block.get(), kBlock, static_cast<off_t>(written));
    if (part <= 0) return failed("cannot write to");
    written += static_cast<std::size_t>(part);
  }
  if (!direct) fdatasync(file.get());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double speed = static_cast<double>(written) / seconds;
  return {
      fmt::format("{} in {}{}", base::format_quantity(speed, "B/s"), fs::absolute(directory).lexically_normal().string(),
                  direct ? "" : " (through the page cache)"),
      speed < 500e6 ? "write to a faster disk (`directory` of the file writer), or take a share: fraction, max_rate" : ""};
}

}  // namespace

std::string_view health_name(Health health) {
  constexpr std::string_view kNames[] = {"ok", "warn", "missing"};
  return kNames[static_cast<std::size_t>(health)];
}

std::vector<Finding> examine_host(const DoctorSettings& settings) {
  const fs::path& root = settings.root;
  std::vector<Finding> findings;
  const auto add = [&](const char* name, Look look, const char* meaning) {
    const Health health = look.missing ? Health::missing : look.remedy.empty() ? Health::good : Health::warning;
    findings.push_back({name, health, std::move(look.value), meaning, std::move(look.remedy)});
  };
  const char* const kBuffers =
      "Buffers on huge pages save the CPU address look-ups; without huge pages, Rodeo uses plain memory.";
  add("cpu_level", cpu_features(), "Rodeo chooses its fast routines for this level at run time.");
  add("cpu_governor", governor(root), "A CPU that saves power wakes slowly: latency grows, and rates vary from run to run.");
  add("clock_source", clock_source(root),
      "Reading tsc and kvm-clock does not enter the kernel; other clocks are ten times slower.");
  add("numa_nodes", numa(root), "A worker should run on the node of its card and its memory.");
  add("memory_available", memory(root), "Pools, windows and the generator's pages take this memory at the start.");
  add("huge_pages_2mib", huge_pages(root, 2048, 256), kBuffers);
  add("huge_pages_1gib", huge_pages(root, 1048576, 0), kBuffers);
  add("transparent_huge_pages", transparent_huge_pages(root), "Gives buffers huge pages if none were reserved.");
  add("locked_memory_limit", limit(RLIMIT_MEMLOCK, RLIM_INFINITY, "memlock", true),
      "Memory that a card writes to must be locked.");
  add("open_files_limit", limit(RLIMIT_NOFILE, 4096, "nofile", false),
      "Every link's connection and every open file needs a descriptor.");
  add("iommu", iommu(root), "Real cards use VFIO, which needs an IOMMU; emulated cards need none.");
  add("card_drivers", card_drivers(root),
      "A real card must use vfio-pci; `rodeo card list` shows why a card is not usable.");
  add("page_cache_dirty_limit", dirty_limit(root),
      "Written data waits in memory up to this share, then all writers stall at once. The readout writes its files without "
      "the page cache if the file system allows it.");
  if (settings.disk_time.count() > 0)
    add("disk_write_speed", disk_speed(settings.data_directory, settings.disk_time),
        "The highest speed of the file writer; 192 links of 40-byte chunks at 100 kHz make 1 GB/s.");
  return findings;
}

}  // namespace rodeo::cli
