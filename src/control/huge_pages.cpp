#include "control/huge_pages.h"

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

namespace rodeo::control {

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

Result<HugePagePool> set_huge_pages(unsigned node, std::uint64_t page_bytes, std::uint64_t pages, const fs::path& root) {
  const fs::path directory = pool_directory(node, page_bytes, root);
  std::error_code failure;
  if (!fs::exists(directory / "nr_hugepages", failure)) {
    return std::unexpected(Error{
        "card.huge_pages", fmt::format("the kernel has no pages of {} on NUMA node {}", base::format_size(page_bytes), node),
        directory.string(), "rodeo card hugepages lists what there is"});
  }
  std::ofstream file(directory / "nr_hugepages");
  file << pages << std::flush;
  if (!file) {
    return std::unexpected(
        Error{"card.huge_pages", fmt::format("cannot set aside {} pages: {}", pages, std::strerror(errno)),
              (directory / "nr_hugepages").string(), "setting huge pages needs root: sudo rodeo card hugepages ..."});
  }
  return HugePagePool{node, page_bytes, count_in(directory / "nr_hugepages"), count_in(directory / "free_hugepages")};
}

}  // namespace rodeo::control
