#include "card/huge_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

using namespace rodeo;
using namespace rodeo::card;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kPage = 2 << 20;

/// A simulated kernel in a directory: 16 GiB on node 0, of which 10 GiB are available, and four reserved pages.
class HugePages : public testing::Test {
 protected:
  HugePages() : root_(fs::temp_directory_path() / ("huge_pages_test." + std::to_string(getpid()))) {
    write("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 20971520 kB");
    write("sys/devices/system/node/node0/meminfo",
          "Node 0 MemTotal: 16777216 kB\nNode 0 MemFree: 8388608 kB\nNode 0 Active(file): 1048576 kB\n"
          "Node 0 Inactive(file): 524288 kB\nNode 0 SReclaimable: 524288 kB");
    write("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "4");
    write("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "4");
  }
  ~HugePages() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }

  /// A kernel that can provide at most this number of pages.
  HugePageHost host(std::uint64_t finds = UINT64_MAX) {
    return {.root = root_, .write = [this, finds](const fs::path& file, std::uint64_t pages) {
              written_.push_back(pages);
              return HugePageHost::write_huge_pages(file, std::min(pages, finds));
            }};
  }

  std::uint64_t pages() { return huge_page_pools(root_).at(0).pages; }

  fs::path root_;
  std::vector<std::uint64_t> written_;
};

}  // namespace

TEST_F(HugePages, AreCountedInWhatTheNodeCanSpareLessAReserve) {
  EXPECT_EQ(bytes_for_huge_pages(0, root_), std::uint64_t{8} << 30);  // 10 GiB minus an eighth of 16 GiB
  write("proc/meminfo", "MemAvailable: 3145728 kB");
  EXPECT_EQ(bytes_for_huge_pages(0, root_), std::uint64_t{1} << 30);
  write("proc/meminfo", "MemAvailable: 1024 kB");
  EXPECT_EQ(bytes_for_huge_pages(0, root_), 0u);
  fs::remove(root_ / "proc/meminfo");
  EXPECT_EQ(bytes_for_huge_pages(0, root_), 0u);
  EXPECT_EQ(bytes_for_huge_pages(1, root_), 0u);
}

TEST_F(HugePages, AreSetAside) {
  const auto pool = set_huge_pages(0, kPage, 4100, host());
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_EQ(pool->pages, 4100u);
  EXPECT_EQ(set_huge_pages(0, kPage, 0, host())->pages, 0u);
}

TEST_F(HugePages, AreRefusedBeyondTheMemoryBeforeAnythingIsWritten) {
  for (const std::uint64_t many :
       {std::uint64_t{4101}, std::uint64_t{99'999'999'999'999}, UINT64_MAX, UINT64_MAX / kPage + 5}) {
    const auto pool = set_huge_pages(0, kPage, many, host());
    ASSERT_FALSE(pool) << many;
    EXPECT_EQ(pool.error().code, "card.huge_pages_memory");
  }
  EXPECT_TRUE(written_.empty());
  EXPECT_EQ(pages(), 4u);
}

TEST_F(HugePages, GetTheirOldNumberBackWhereTheKernelFindsTooFew) {
  const auto pool = set_huge_pages(0, kPage, 100, host(30));
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, "card.huge_pages");
  EXPECT_THAT(pool.error().what, testing::HasSubstr("found 30 of 100 pages, and has 4 as before"));
  EXPECT_THAT(written_, testing::ElementsAre(100, 4));
  EXPECT_EQ(pages(), 4u);
}

TEST_F(HugePages, CanAlwaysBeGivenBack) {
  write("proc/meminfo", "MemAvailable: 0 kB");
  EXPECT_EQ(set_huge_pages(0, kPage, 3, host())->pages, 3u);
}

TEST_F(HugePages, OfASizeOrANodeThatIsNotThereAreRefused) {
  EXPECT_EQ(set_huge_pages(0, 1 << 30, 1, host()).error().code, "card.huge_pages");
  EXPECT_EQ(set_huge_pages(1, kPage, 1, host()).error().code, "card.huge_pages");
  EXPECT_EQ(set_huge_pages(0, 0, 1, host()).error().code, "card.huge_pages");
  EXPECT_EQ(set_huge_pages(0, kPage + 1, 1, host()).error().code, "card.huge_pages");
}
