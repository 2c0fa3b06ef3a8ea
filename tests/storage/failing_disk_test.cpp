// A full or failing disk: every event is in a file or counted as lost, and the status of the files is right.
#include <gtest/gtest.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "formats/temporary_directory.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_sequence.h"
#include "storage/file_seal.h"
#include "storage/file_verify.h"

namespace {

using namespace rodeo::storage;
using rodeo::test::read_file;
using rodeo::test::TemporaryDirectory;
using Outcome = EventFileSequence::Outcome;

/// A limit of this process, in force while this object exists.
class Limit {
 public:
  Limit(__rlimit_resource what, rlim_t value) : what_(what), handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(what_, &before_);
    rlimit limit = before_;
    limit.rlim_cur = value;
    ::setrlimit(what_, &limit);
  }
  ~Limit() {
    ::setrlimit(what_, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  __rlimit_resource what_;
  rlimit before_{};
  sighandler_t handler_;
};

/// Small buffers; writing finds out whether there is space.
EventFileSequence::Settings settings_in(const TemporaryDirectory& directory) {
  EventFileSettings files;
  files.simple_name = "run";
  return {.directory = directory.path(),
          .files = files,
          .disk = {.reserve_step = 0},
          .buffer_bytes = 4096,
          .when_full = "make room"};
}

Outcome append(EventFileSequence& sequence, std::size_t bytes) {
  const std::vector<std::byte> event(bytes, std::byte{0x5a});
  const std::span<const std::byte> piece(event);
  return sequence.append({&piece, 1}, bytes);
}

/// Reads the events and the end record of a file that must be whole.
std::pair<std::uint64_t, rodeo::formats::FileEnd> read_whole(const std::string& path) {
  const auto bytes = read_file(path);
  auto reader = EventFileReader::open(bytes);
  if (!reader) throw std::runtime_error("no event file: " + path);
  std::uint64_t events = 0;
  for (auto block = reader->next(); block && *block; block = reader->next()) ++events;
  EXPECT_TRUE(reader->end() && reader->position() == bytes.size()) << path;
  EXPECT_EQ(check_file_crc(bytes, reader->header()), FileCrc::holds) << path;
  return {events, reader->end().value_or(rodeo::formats::FileEnd{})};
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(FailingDisk, AFullDiskIsSaidWithWhatBecameOfTheFile) {
  for (const bool name_is_taken : {false, true}) {
    const TemporaryDirectory directory;
    auto settings = settings_in(directory);
    settings.disk.min_free_bytes = 1;
    EventFileSequence sequence(settings);
    sequence.start();
    if (name_is_taken) rodeo::test::write_file(directory.file("run._0001.data"), {std::byte{1}});
    for (int i = 0; i < 30; ++i) ASSERT_EQ(append(sequence, 1000), Outcome::taken);
    ASSERT_EQ(sequence.append({}, std::size_t{1} << 60), Outcome::refused) << "larger than any disk";
    const std::string failure = sequence.status().failure;  // the failure is known at once after the refusal
    EXPECT_TRUE(failure.starts_with("the disk is full (") && failure.ends_with("; make room")) << failure;
    EXPECT_EQ(contains(failure, directory.file("run._0001.data was closed with 30 events")), !name_is_taken) << failure;
    EXPECT_EQ(contains(failure, "is there already"), name_is_taken) << failure;
    EXPECT_EQ(contains(failure, "run._0001.writing stays as it is"), name_is_taken) << failure;
    EXPECT_EQ(std::filesystem::exists(directory.file("run._0001.writing")), name_is_taken);
    sequence.close();
    EXPECT_EQ(sequence.status().files.size(), name_is_taken ? 0U : 1U);
    EXPECT_EQ(sequence.status().events_lost, name_is_taken ? 30U : 0U);
    EXPECT_EQ(sequence.status().failure, failure);
  }
}

TEST(FailingDisk, AFileThatCannotBeClosedAfterAFailedWriteStays) {
  const TemporaryDirectory directory;
  EventFileSequence sequence(settings_in(directory));
  sequence.start();
  rodeo::test::write_file(directory.file("run._0001.data"), {std::byte{1}});
  {
    const Limit limit(RLIMIT_FSIZE, 50'000);
    while (append(sequence, 1000) == Outcome::taken) {
    }
    sequence.close();
  }
  const auto status = sequence.status();
  EXPECT_TRUE(contains(status.failure, "is there already")) << status.failure;
  EXPECT_TRUE(contains(status.failure, "run._0001.writing stays as it is")) << status.failure;
  EXPECT_TRUE(status.cause.starts_with("a file cannot become larger") && !contains(status.cause, "run")) << status.cause;
  EXPECT_EQ(status.code, "file.size_limit");
  EXPECT_FALSE(contains(status.failure, "full")) << status.failure;
  EXPECT_EQ(status.events_lost, status.events);
  EXPECT_GT(std::filesystem::file_size(directory.file("run._0001.writing")), 40'000U);
}

TEST(FailingDisk, ADirectoryThatIsRemovedOrRenamedIsNoFullDisk) {
  for (const bool renamed : {false, true}) {
    const TemporaryDirectory directory;
    auto settings = settings_in(directory);
    settings.directory = directory.file("files");
    settings.files.max_blocks = 5;
    EventFileSequence sequence(settings);
    sequence.start();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(append(sequence, 1000), Outcome::taken);
    if (renamed) {
      std::filesystem::rename(settings.directory, directory.file("moved"));
    } else {
      std::filesystem::remove_all(settings.directory);
    }
    for (int i = 0; i < 3; ++i) append(sequence, 1000);
    sequence.close();
    const auto status = sequence.status();
    EXPECT_EQ(status.code, "file.directory_gone");
    EXPECT_TRUE(contains(status.failure, "the directory was removed or renamed")) << status.failure;
    EXPECT_FALSE(contains(status.failure, "full")) << status.failure;
    EXPECT_TRUE(status.files.empty());
    EXPECT_EQ(status.events_lost, status.events);
    EXPECT_FALSE(std::filesystem::exists(settings.directory));
  }
}

TEST(FailingDisk, NoFileWithEventsIsRemovedHoweverSmallTheyAre) {
  for (rlim_t bytes = 8192; bytes < 8192 + 60; bytes += 4) {
    for (const std::size_t event : {0U, 4U, 100U}) {
      const TemporaryDirectory directory;
      EventFileSequence sequence(settings_in(directory));
      sequence.start();
      {
        const Limit limit(RLIMIT_FSIZE, bytes);
        while (append(sequence, event) == Outcome::taken) {
        }
        sequence.close();
      }
      const auto status = sequence.status();
      ASSERT_EQ(status.files.size(), 1U) << bytes << ": " << status.failure;
      EXPECT_EQ(read_whole(status.files[0].path).first, status.files[0].events);
      EXPECT_GT(status.files[0].events, 50U);
      EXPECT_EQ(status.events_lost, status.events - status.files[0].events);
    }
  }
}

TEST(FailingDisk, AFileWithoutAnEventIsRemovedAndSaidToBe) {
  const TemporaryDirectory directory;
  EventFileSequence sequence(settings_in(directory));
  sequence.start();
  {
    const Limit limit(RLIMIT_FSIZE, 8);
    while (append(sequence, 1000) == Outcome::taken) {
    }
    sequence.close();
  }
  EXPECT_TRUE(contains(sequence.status().failure, "run._0001.writing was removed: no event is in it"))
      << sequence.status().failure;
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  EXPECT_EQ(sequence.status().events_lost, sequence.status().events);
}

TEST(FailingDisk, ASequenceThatFindsNoPlaceForItsNextFileEndsWithALastFile) {
  const TemporaryDirectory directory;
  auto settings = settings_in(directory);
  settings.files.max_blocks = 5;
  EventFileSequence sequence(settings);
  sequence.start();
  rodeo::test::write_file(directory.file("run._0003.writing"), {std::byte{1}});
  for (int i = 0; i < 10; ++i) ASSERT_EQ(append(sequence, 1000), Outcome::taken);
  EXPECT_EQ(append(sequence, 1000), Outcome::refused);
  const auto status = sequence.status();
  ASSERT_EQ(status.files.size(), 2U);
  EXPECT_EQ(read_whole(status.files[0].path).second.last_file, 0U);
  EXPECT_EQ(read_whole(status.files[1].path).second.last_file, 1U);
  EXPECT_TRUE(contains(status.failure, "run._0003.writing: cannot make the file: File exists")) << status.failure;
  EXPECT_TRUE(contains(status.failure, "run._0002.data was closed with 5 events")) << status.failure;
}

TEST(FailingDisk, NoFileIsBegunForAnEventThatHasNoRoom) {
  const TemporaryDirectory directory;
  auto settings = settings_in(directory);
  settings.files.max_blocks = 5;
  settings.disk.min_free_bytes = 1;
  EventFileSequence sequence(settings);
  sequence.start();
  for (int i = 0; i < 5; ++i) ASSERT_EQ(append(sequence, 1000), Outcome::taken);
  EXPECT_EQ(sequence.append({}, std::size_t{1} << 60), Outcome::refused);
  const auto status = sequence.status();
  ASSERT_EQ(status.files.size(), 1U);
  EXPECT_EQ(read_whole(status.files[0].path).second.last_file, 1U);
  EXPECT_TRUE(contains(status.failure, "no space for another file")) << status.failure;
  EXPECT_FALSE(std::filesystem::exists(directory.file("run._0002.writing")));
}

TEST(FailingDisk, AFileWhoseDirectoryCannotBeFlushedIsNotLost) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers need descriptors of their own";
#endif
  const TemporaryDirectory directory;
  EventFileSequence sequence(settings_in(directory));
  sequence.start();
  for (int i = 0; i < 20; ++i) ASSERT_EQ(append(sequence, 1000), Outcome::taken);
  {
    const Limit limit(RLIMIT_NOFILE, 0);  // the process cannot open another file
    sequence.close();
  }
  const auto status = sequence.status();
  ASSERT_EQ(status.files.size(), 1U) << status.failure;
  EXPECT_EQ(read_whole(status.files[0].path).first, 20U);
  EXPECT_EQ(status.events_lost, 0U);
  EXPECT_TRUE(contains(status.failure, "cannot open the directory")) << status.failure;
  EXPECT_TRUE(contains(status.failure, "was closed with 20 events, but a power cut may take its name")) << status.failure;
}

TEST(FailingDisk, AFileOfWhichOnlyAPartOfTheDigitsIsWrittenIsNotClosed) {
  const TemporaryDirectory directory;
  auto file = DirectFile::create(directory.file("run.writing"), {.direct = false, .reserve_step = 0});
  ASSERT_TRUE(file);
  alignas(DirectFile::kAlign) static std::array<std::byte, DirectFile::kAlign> block{};
  ASSERT_EQ(file->write(block).error, 0);
  ASSERT_EQ(file->finish(block.size()), 0);
  {
    const Limit limit(RLIMIT_FSIZE, 104);
    errno = 0;
    const auto sealed = seal_event_file(*file, directory.file("run.data"), 100, 0x12345678);
    ASSERT_FALSE(sealed);
    EXPECT_EQ(sealed.error().code, "file.write");
  }
  EXPECT_FALSE(std::filesystem::exists(directory.file("run.data")));
  ASSERT_TRUE(seal_event_file(*file, directory.file("run.data"), 100, 0x12345678));
  const auto bytes = read_file(directory.file("run.data"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + 100, 8), "12345678");
}

// The kernel passes each system call of this kind, of one thread and its children, to a handler. The handler makes one call
// (the first is 1) fail with this error. Returns the number of calls; nullopt if system calls cannot be filtered.
std::optional<int> with_failing(unsigned system_call, int which, int with, const std::function<void()>& function) {
  static std::atomic<int> calls;
  static int failing;
  static int error;
  calls = 0;
  failing = which;
  error = with;
  struct sigaction action{}, before{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = ++calls == failing ? -error : 0;
  };
  if (::sigaction(SIGSYS, &action, &before) != 0) return std::nullopt;
  bool filtered = false;
  std::thread([&] {
    sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(steps), steps};
    filtered = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    if (filtered) function();
  }).join();
  ::sigaction(SIGSYS, &before, nullptr);
  return filtered ? std::optional(calls.load()) : std::nullopt;
}

TEST(FailingDisk, ASignalEndsNoReserving) {
  const TemporaryDirectory directory;
  auto file = DirectFile::create(directory.file("run.writing"), {.direct = false});
  ASSERT_TRUE(file);
  Room room = Room::full;
  const auto calls = with_failing(SYS_fallocate, 1, EINTR, [&] { room = file->make_room(4096); });
  if (!calls) GTEST_SKIP() << "host: needs filters of system calls";
  EXPECT_EQ(room, Room::reserved);
  EXPECT_EQ(calls, 2);
}

TEST(FailingDisk, AFileThatIsAtItsSizeLimitReservesNoMoreAndTheNextOneDoes) {
  const TemporaryDirectory directory;
  auto file = DirectFile::create(directory.file("run.writing"), {.direct = false});
  auto next = DirectFile::create(directory.file("next.writing"), {.direct = false});
  ASSERT_TRUE(file && next);
  std::vector<Room> rooms;
  const auto calls = with_failing(SYS_fallocate, 1, EFBIG, [&] {
    for (const std::uint64_t bytes : {4096, 64 << 20, 256 << 20}) rooms.push_back(file->make_room(bytes));
    rooms.push_back(next->make_room(4096));
  });
  if (!calls) GTEST_SKIP() << "host: needs filters of system calls";
  EXPECT_EQ(rooms, (std::vector{Room::unknown, Room::unknown, Room::unknown, Room::reserved}));
  EXPECT_EQ(calls, 2);
}

TEST(FailingDisk, WithoutReservingTheRecordStillHasItsRoom) {
  const TemporaryDirectory directory;
  for (const std::uint64_t min_free : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    auto file =
        DirectFile::create(directory.file("run.writing"), {.direct = false, .reserve_step = 0, .min_free_bytes = min_free});
    ASSERT_TRUE(file);
    EXPECT_EQ(file->make_room(4096), Room::unknown);
    EXPECT_EQ(file->make_room(2 * file->free_bytes() + (1 << 30)), Room::full);
    EXPECT_EQ(file->make_room(4096), Room::unknown) << "a smaller event may still fit";
    std::filesystem::remove(file->path());
  }
}

// The kernel reports an error of writing back only once, to the waiting call: a later fsync() succeeds.
TEST(FailingDisk, WhatTheDiskCouldNotTakeLaterIsNotSaidToBeSafe) {
  for (const int error : {EIO, ENOSPC, EINVAL}) {
    const bool of_the_data = error != EINVAL;
    const TemporaryDirectory directory;
    auto settings = settings_in(directory);
    settings.disk.direct = false;
    EventFileSequence sequence(settings);
    // Each buffer's write is begun; from the second buffer on, the previous write is awaited. This wait is the third call.
    const auto calls = with_failing(SYS_sync_file_range, 3, error, [&] {
      sequence.start();
      for (int i = 0; i < 100 && append(sequence, 1000) == Outcome::taken; ++i) std::this_thread::yield();
      sequence.close();
    });
    if (!calls) GTEST_SKIP() << "host: needs filters of system calls";
    ASSERT_GE(calls, 3);
    const auto status = sequence.status();
    EXPECT_EQ(contains(status.failure, "what was written before may be lost"), of_the_data) << status.failure;
    EXPECT_EQ(contains(status.failure, "run._0001.writing stays as it is"), of_the_data) << status.failure;
    EXPECT_EQ(status.files.empty(), of_the_data);
    EXPECT_EQ(status.events_lost, of_the_data ? status.events : 0U);
    EXPECT_EQ(std::filesystem::exists(directory.file("run._0001.writing")), of_the_data);
  }
}

}  // namespace
