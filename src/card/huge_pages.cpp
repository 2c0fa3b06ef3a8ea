#include "card/huge_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <tuple>

#include "base/units.h"

namespace rodeo::card {

namespace fs = std::filesystem;

namespace {

/// "node3" after "node" gives 3, "hugepages-2048kB" after "hugepages-" and before "kB" gives 2048.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() <= before.size() + after.size())
    return std::nullopt;
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::uint64_t count_in(const fs::path& file) {
  std::uint64_t value = 0;
  std::ifstream(file) >> value;
  return value;
}

constexpr std::uint64_t kLeastReserve = std::uint64_t{512} << 20;

/// A line of a meminfo, "MemFree: 12 kB" or "Node 0 MemFree: 12 kB", in bytes.
std::optional<std::uint64_t> meminfo_bytes(const fs::path& file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string word;
    while (words >> word && word != name) {
    }
    std::uint64_t kibibytes = 0;
    if (word == name && words >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

template <typename Visit>
void each_entry(const fs::path& directory, Visit visit) {
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure)) {
    visit(entry->path());
  }
}

fs::path pool_directory(unsigned node, std::uint64_t page_bytes, const fs::path& root) {
  return root / fmt::format("sys/devices/system/node/node{}/hugepages/hugepages-{}kB", node, page_bytes / 1024);
}

}  // namespace

std::vector<HugePagePool> huge_page_pools(const fs::path& root) {
  std::vector<HugePagePool> pools;
  each_entry(root / "sys/devices/system/node", [&](const fs::path& node_directory) {
    const auto node = number_in(node_directory.filename().string(), "node", "");
    if (!node) return;
    each_entry(node_directory / "hugepages", [&](const fs::path& directory) {
      const auto kibibytes = number_in(directory.filename().string(), "hugepages-", "kB");
      if (!kibibytes) return;
      pools.push_back({static_cast<unsigned>(*node), *kibibytes * 1024, count_in(directory / "nr_hugepages"),
                       count_in(directory / "free_hugepages")});
    });
  });
  std::ranges::sort(pools, {}, [](const HugePagePool& pool) { return std::tuple(pool.node, pool.page_bytes); });
  return pools;
}

std::vector<HugePageMount> huge_page_mounts(const fs::path& root) {
  std::vector<HugePageMount> mounts;
  std::ifstream file(root / "proc/mounts");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string device;
    std::string directory;
    std::string type;
    std::string options;
    if (!(words >> device >> directory >> type >> options) || type != "hugetlbfs") continue;
    HugePageMount mount{directory, 0};
    std::istringstream list(options);
    for (std::string option; std::getline(list, option, ',');) {
      if (const auto mebibytes = number_in(option, "pagesize=", "M")) mount.page_bytes = *mebibytes << 20;
      if (const auto gibibytes = number_in(option, "pagesize=", "G")) mount.page_bytes = *gibibytes << 30;
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<void> HugePageHost::write_huge_pages(const fs::path& file, std::uint64_t pages) {
  std::ofstream stream(file);
  stream << pages << std::flush;
  if (stream) return {};
  return std::unexpected(Error{"card.huge_pages", fmt::format("cannot set aside {} pages: {}", pages, std::strerror(errno)),
                               file.string(), "setting huge pages needs root: sudo rodeo card hugepages ..."});
}

std::uint64_t bytes_for_huge_pages(unsigned node, const fs::path& root) {
  const fs::path of_node = root / fmt::format("sys/devices/system/node/node{}/meminfo", node);
  const auto free = meminfo_bytes(of_node, "MemFree:");
  const auto total = meminfo_bytes(of_node, "MemTotal:");
  const auto on_host = meminfo_bytes(root / "proc/meminfo", "MemAvailable:");
  if (!free || !total || !on_host) return 0;
  std::uint64_t available = *free;
  for (const char* name : {"Active(file):", "Inactive(file):", "SReclaimable:"})
    available += meminfo_bytes(of_node, name).value_or(0);
  available = std::min(available, *on_host);
  const std::uint64_t reserve = std::max(kLeastReserve, *total / 8);
  return available > reserve ? available - reserve : 0;
}

Result<HugePagePool> set_huge_pages(unsigned node, std::uint64_t page_bytes, std::uint64_t pages, const HugePageHost& host) {
  const fs::path directory = pool_directory(node, page_bytes, host.root);
  const fs::path file = directory / "nr_hugepages";
  std::error_code failure;
  if (page_bytes == 0 || page_bytes % 1024 != 0 || !fs::exists(file, failure)) {
    return std::unexpected(Error{
        "card.huge_pages", fmt::format("the kernel has no pages of {} on NUMA node {}", base::format_size(page_bytes), node),
        directory.string(), "rodeo card hugepages lists the page sizes of each node"});
  }
  const std::uint64_t before = count_in(file);
  // Divide, because the number of bytes may not fit into 64 bits.
  if (const std::uint64_t most = bytes_for_huge_pages(node, host.root) / page_bytes;
      pages > before && pages - before > most) {
    return std::unexpected(
        Error{"card.huge_pages_memory",
              fmt::format("NUMA node {} has memory for {} pages of {} besides the {} that are set aside, not for {}", node,
                          most, base::format_size(page_bytes), before, pages - before),
              directory.string(), "ask for fewer; an eighth of the memory, 512 MiB at least, is kept for other programs"});
  }
  RODEO_TRY(host.write(file, pages));
  const std::uint64_t found = count_in(file);
  if (found < pages && found > before) RODEO_TRY_WITHIN(host.write(file, before), "putting the old number back");
  if (found < pages) {
    return std::unexpected(
        Error{"card.huge_pages",
              fmt::format("the kernel found {} of {} pages, and has {} as before: its memory is in use or fragmented", found,
                          pages, count_in(file)),
              directory.string(),
              fmt::format("ask at boot: hugepagesz={} hugepages={} on the kernel's command line",
                          page_bytes >= std::uint64_t{1} << 30 ? "1G" : "2M", pages)});
  }
  return HugePagePool{node, page_bytes, found, count_in(directory / "free_hugepages")};
}

}  // namespace rodeo::card
