#include "card/pci/lock.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/lock_file.h"
#include "formats/temporary_directory.h"

namespace rodeo::card::pci {
namespace {

TEST(ByteLock, HasOneOwnerAtATime) {
  const test::TemporaryDirectory directory;
  {
    const auto first = ByteLock::acquire(directory.file("a.lock"), 2, "channel 2");
    ASSERT_TRUE(first) << first.error().message();
    const auto second = ByteLock::acquire(directory.file("a.lock"), 2, "channel 2");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, "card.locked");
    EXPECT_NE(second.error().what.find(std::to_string(::getpid())), std::string::npos) << second.error().what;
    EXPECT_TRUE(ByteLock::acquire(directory.file("a.lock"), 3, "channel 3"));
  }
  EXPECT_TRUE(ByteLock::acquire(directory.file("a.lock"), 2, "channel 2"));
}

TEST(OwnMutex, IsNotWaitedForInAForkedChild) {
  OwnMutex mutex("card");
  const auto held = mutex.hold();
  ASSERT_TRUE(held);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto here = mutex.hold();
    ::_exit(!here && here.error().code == "card.forked" && here.error().where == "card" && !mutex.here() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(mutex.here());
}

TEST(ByteLock, DiesWithItsProcess) {
  const test::TemporaryDirectory directory;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = ByteLock::acquire(directory.file("a.lock"), 0, "channel 0");
    (void)!::write(pipe[1], held ? "y" : "n", 1);
    ::pause();
  }
  char answer = 0;
  ASSERT_EQ(::read(pipe[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  const auto refused = ByteLock::acquire(directory.file("a.lock"), 0, "channel 0");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find(std::to_string(child)), std::string::npos) << refused.error().what;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(ByteLock::acquire(directory.file("a.lock"), 0, "channel 0"));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

/// A cleanup locks the whole file, removes it and releases the lock.
TEST(ByteLock, IsNotHadOnAFileThatWasRemoved) {
  const test::TemporaryDirectory directory;
  const auto file = directory.file("a.lock");
  std::atomic<bool> over{false};
  std::jthread cleanup([&] {
    while (!over) {
      auto lock = base::LockFile::acquire(file, base::LockedPart::all_bytes(), std::chrono::milliseconds{0});
      if (lock) lock->remove();
    }
  });
  for (int i = 0; i < 10; ++i) {
    const auto first = ByteLock::acquire(file, 0, "channel 0");
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_FALSE(ByteLock::acquire(file, 0, "channel 0"));
  }
  for (int i = 0; i < 300; ++i) {
    const auto first = ByteLock::acquire(file, 0, "channel 0");
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_TRUE(std::filesystem::exists(file));
  }
  over = true;
}

TEST(ByteLock, WaitsNoLongerThanItWasTold) {
  const test::TemporaryDirectory directory;
  const auto first = ByteLock::acquire(directory.file("a.lock"), 0, "channel 0");
  EXPECT_EQ(ByteLock::acquire(directory.file("a.lock"), 0, "channel 0", std::chrono::milliseconds(5)).error().code,
            "card.locked");
  EXPECT_EQ(ByteLock::acquire(directory.file("no/such.lock"), 0, "channel 0").error().code, "card.lock_file");
}

LockNode node_of(const char* path, std::uint64_t first) { return {base::UniqueFd(::open(path, O_RDWR | O_CLOEXEC)), first}; }

TEST(ByteLock, IsHadOnADeviceNodeToo) {
  const test::TemporaryDirectory directory;
  const auto notes = directory.file("notes");
  const std::uint64_t here = std::uint64_t{static_cast<unsigned>(::getpid())} << 20;  // other tests may run on this machine
  {
    ASSERT_TRUE(ByteLock::acquire(notes, 9, "makes the file"));
    const auto first = ByteLock::acquire(node_of("/dev/null", here), 2, "channel 2", notes);
    ASSERT_TRUE(first) << first.error().message();
    const auto second = ByteLock::acquire(node_of("/dev/null", here), 2, "channel 2", notes);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, "card.locked");
    EXPECT_NE(second.error().what.find(std::to_string(::getpid())), std::string::npos) << second.error().what;
    // Without notes the owner's name is missing; the lock works the same.
    EXPECT_EQ(ByteLock::acquire(node_of("/dev/null", here), 2, "channel 2", {}).error().what,
              "channel 2 is in use by another process");
    EXPECT_TRUE(ByteLock::acquire(node_of("/dev/null", here), 3, "channel 3", notes));
    EXPECT_TRUE(ByteLock::acquire(node_of("/dev/null", here + 256), 2, "channel 2 of the next card", notes));
  }
  EXPECT_TRUE(ByteLock::acquire(node_of("/dev/null", here), 2, "channel 2", notes));
}

TEST(NameLock, HasOneOwnerAtATime) {
  const std::string name = "rodeo_test_" + std::to_string(::getpid());
  {
    const auto first = NameLock::acquire(name, "channel 0");
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_EQ(NameLock::acquire(name, "channel 0").error().code, "card.locked");
  }
  EXPECT_TRUE(NameLock::acquire(name, "channel 0"));
  EXPECT_FALSE(NameLock::acquire(std::string(200, 'x'), "channel 0"));
}

TEST(NameLock, HasUpstreamsNames) {
  EXPECT_EQ(upstream_lock_name({0, 0x3b, 0, 0}, {}), "lice_O2_RoC_DMA_3b:00.0_lock");
  EXPECT_EQ(upstream_lock_name({0, 0x3b, 0, 1}, 2), "lice_O2_RoC_DMA_3b:00.1_chan2_lock");
  EXPECT_FALSE(upstream_lock_name({1, 0x3b, 0, 0}, {}));
}

}  // namespace
}  // namespace rodeo::card::pci
