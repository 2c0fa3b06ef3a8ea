#include "base/lock_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace rodeo::base {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class LockFileTest : public testing::TestWithParam<LockedPart> {
 protected:
  LockFileTest() {
    char name[] = "/tmp/rodeo-lock-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~LockFileTest() override { fs::remove_all(directory_); }
  fs::path path() const { return directory_ / "name.lock"; }

  fs::path directory_;
};

INSTANTIATE_TEST_SUITE_P(Parts, LockFileTest,
                         testing::Values(LockedPart::whole(), LockedPart::byte(255), LockedPart::all_bytes()));

TEST_P(LockFileTest, HasOneOwner) {
  {
    const auto owner = LockFile::acquire(path(), GetParam());
    ASSERT_TRUE(owner) << owner.error();
    EXPECT_TRUE(owner->made());
    const auto other = LockFile::acquire(path(), GetParam(), milliseconds{0});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error(), EWOULDBLOCK);
  }
  const auto next = LockFile::acquire(path(), GetParam());
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->made());
}

TEST_P(LockFileTest, IsWaitedForWhileSomebodyCleansUp) {
  auto cleaner = LockFile::acquire(path(), GetParam());
  ASSERT_TRUE(cleaner);
  std::jthread cleaning([&] {
    std::this_thread::sleep_for(milliseconds{20});
    cleaner->remove();
    (void)cleaner->release();
  });
  const auto owner = LockFile::acquire(path(), GetParam(), milliseconds{20'000});
  ASSERT_TRUE(owner);
  EXPECT_TRUE(owner->made());
  EXPECT_TRUE(fs::exists(path()));
}

/// Even if many processes make and remove the file, only one holds the lock on the file with this name.
TEST_P(LockFileTest, IsNeverTheLockOfAFileThatWasRemoved) {
  std::atomic<int> owners{0};
  std::atomic<int> together{0};
  std::atomic<int> nameless{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 500; ++n) {
          auto lock = LockFile::acquire(path(), GetParam(), milliseconds{60'000});
          if (!lock) continue;
          if (owners.fetch_add(1) != 0) ++together;
          const UniqueFd file = lock->release();
          if (!is_named(file.get(), path())) ++nameless;
          owners.fetch_sub(1);
          lock->remove();  // from here on any process may use the name
        }
      });
    }
  }
  EXPECT_EQ(together, 0);
  EXPECT_EQ(nameless, 0);
}

TEST_P(LockFileTest, CannotBeHadWithoutItsDirectoryNorThroughALink) {
  EXPECT_EQ(LockFile::acquire(directory_ / "no" / "name.lock", GetParam()).error(), ENOENT);
  fs::create_symlink(directory_ / "elsewhere", path());
  EXPECT_EQ(LockFile::acquire(path(), GetParam()).error(), ELOOP);
  EXPECT_FALSE(fs::exists(directory_ / "elsewhere"));
}

}  // namespace
}  // namespace rodeo::base
