// Events in a recorder: they are safe before they are acknowledged, and each id is recorded once, also after a kill.
#include "farm/recorder/run_recording.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <thread>

#include "base/clock.h"
#include "farm/farm_event.h"
#include "farm/recorder/read_back.h"
#include "formats/temporary_directory.h"
#include "storage/file_verify.h"

namespace {

std::atomic<bool> disk_fails{false};

}  // namespace

// Replaces the function of the C library, also for the file writers.
extern "C" __attribute__((visibility("default"))) int fdatasync(int file) {
  if (!disk_fails) return static_cast<int>(::syscall(SYS_fdatasync, file));
  errno = EIO;
  return -1;
}

namespace {

using namespace rodeo::farm;
namespace formats = rodeo::formats;
using rodeo::formats::RecordStatus;
using rodeo::test::FarmEvent;
using rodeo::test::read_file;
using rodeo::test::TemporaryDirectory;

FileSettings keys_in(const TemporaryDirectory& directory) {
  FileSettings keys;
  keys.directory = directory.path();
  keys.min_free_bytes = 0;
  keys.buffer_bytes = 64 << 10;
  return keys;
}

/// A recording, called as its server calls it.
struct Recorder {
  std::vector<std::string> said;
  RunRecording recording;
  std::map<std::uint64_t, std::vector<RecordStatus>> answers;  // by ticket

  explicit Recorder(FileSettings keys, std::uint32_t run = 7)
      : recording(std::move(keys), "recorder", run, [this](std::string text) { said.push_back(std::move(text)); }) {}

  bool offer(std::uint64_t ticket, const std::vector<std::byte>& request, std::size_t piece = 100) {
    std::vector<std::span<const std::byte>> pieces;
    for (std::size_t at = 0; at < request.size(); at += piece)
      pieces.push_back(std::span(request).subspan(at, std::min(piece, request.size() - at)));
    return recording.offer({.client = 1, .number = ticket}, pieces, request.size(), rodeo::base::steady_now_ns());
  }
  void poll() {
    std::vector<RunRecording::Answer> some;
    recording.poll(rodeo::base::steady_now_ns(), some);
    for (const auto& answer : some) answers[answer.ticket.number].push_back(answer.status);
  }
  void poll_until(std::size_t tickets) {
    while (answers.size() < tickets) poll();
  }
  void end() {
    recording.end();
    while (!recording.ended()) poll();
  }
  RecordStatus only_answer(std::uint64_t ticket) {
    EXPECT_EQ(answers[ticket].size(), 1U);
    return answers[ticket].empty() ? RecordStatus::malformed : answers[ticket].front();
  }
};

std::vector<std::uint64_t> ids_in(const std::string& file) {
  std::vector<std::uint64_t> ids;
  const auto copies = copies_in_file(file).value();
  for (const auto& copy : copies) ids.push_back(copy.id);
  std::ranges::sort(ids);
  return ids;
}

std::vector<std::string> names_in(const TemporaryDirectory& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(RunRecording, WhatIsAcknowledgedIsInVerifiedFilesOfItsStreams) {
  const TemporaryDirectory directory;
  Recorder recorder(keys_in(directory));
  for (std::uint64_t id = 1; id <= 20; ++id) {
    FarmEvent event{.id = id, .lumi_block = id <= 10 ? 1U : 2U};
    if (id % 5 == 0) event.streams.push_back({.type = "debug", .name = "NodePartial", .obeys_lumi_block = false});
    ASSERT_TRUE(recorder.offer(id, event.request()));
  }
  recorder.poll_until(20);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    EXPECT_EQ(recorder.only_answer(id), RecordStatus::recorded);
    EXPECT_TRUE(recorder.recording.has(id));
  }
  recorder.end();
  const std::string main = directory.file("rodeo.00000007.physics_Main.daq.RAW._lb");
  EXPECT_EQ(ids_in(main + "0001._recorder._0001.data").size(), 10U);
  EXPECT_EQ(ids_in(main + "0002._recorder._0001.data").size(), 10U);
  EXPECT_EQ(ids_in(directory.file("rodeo.00000007.debug_NodePartial.daq.RAW._lb0000._recorder._0001.data")),
            (std::vector<std::uint64_t>{5, 10, 15, 20}));
  EXPECT_EQ(names_in(directory).size(), 3U);
  for (const std::string& name : names_in(directory)) {
    const auto report = rodeo::storage::verify_event_file(read_file(directory.file(name)));
    EXPECT_TRUE(report.sound() && report.ours()) << name;
  }
  EXPECT_EQ(recorder.recording.take_closed().size(), 3U);
  EXPECT_EQ(recorder.recording.counters().read(RecorderCounter::events_recorded), 20U);
}

TEST(RunRecording, TheStreamOfAnEventIsKnownAlsoInTheNextLife) {
  const TemporaryDirectory directory;
  const formats::RecordStream debug{.type = "debug", .name = "NodePartial", .obeys_lumi_block = false};
  const auto check = [](const Recorder& recorder) {
    ASSERT_NE(recorder.recording.stream_of(1), nullptr);
    EXPECT_EQ(*recorder.recording.stream_of(1), (formats::HaveAnswer::Stream{"physics", "Main"}));
    EXPECT_EQ(*recorder.recording.stream_of(2), (formats::HaveAnswer::Stream{"debug", "NodePartial"}));
    EXPECT_EQ(*recorder.recording.stream_of(3), (formats::HaveAnswer::Stream{"physics", "Main"}));
    EXPECT_EQ(recorder.recording.stream_of(4), nullptr);
    EXPECT_EQ(recorder.recording.ids(), 3U);
  };
  {
    Recorder recorder(keys_in(directory));
    ASSERT_TRUE(recorder.offer(1, FarmEvent{.id = 1}.request()));
    ASSERT_TRUE(recorder.offer(2, FarmEvent{.id = 2, .streams = {debug}}.request()));
    ASSERT_TRUE(recorder.offer(3, FarmEvent{.id = 3, .streams = {debug, {}}}.request()));
    recorder.poll_until(3);
    check(recorder);
    recorder.end();
  }
  check(Recorder(keys_in(directory)));
}

TEST(RunRecording, ASecondCopyIsAcknowledgedWithTheFirstAndNotWritten) {
  const TemporaryDirectory directory;
  Recorder recorder(keys_in(directory));
  const auto request = FarmEvent{.id = 3}.request();
  ASSERT_TRUE(recorder.offer(1, request));
  ASSERT_TRUE(recorder.offer(2, request));  // the first copy is not safe yet
  EXPECT_FALSE(recorder.recording.has(3)) << "the event is not safe";
  recorder.poll_until(2);
  ASSERT_TRUE(recorder.offer(3, request));
  recorder.poll_until(3);
  EXPECT_EQ(recorder.only_answer(1), RecordStatus::recorded);
  EXPECT_EQ(recorder.only_answer(2), RecordStatus::had_already);
  EXPECT_EQ(recorder.only_answer(3), RecordStatus::had_already);
  recorder.end();
  EXPECT_EQ(ids_in(directory.file(names_in(directory).at(0))), std::vector<std::uint64_t>{3});
  EXPECT_EQ(recorder.recording.counters().read(RecorderCounter::had_already), 2U);
}

// The answer to a second copy tells the streams of the first copy.
TEST(RunRecording, ASecondCopyIsToldWhetherTheFirstIsInStreamsForDebuggingAlone) {
  const TemporaryDirectory directory;
  Recorder recorder(keys_in(directory));
  const rodeo::formats::RecordStream debug{.type = "debug", .name = "NodeBuildOnly", .obeys_lumi_block = false};
  const FarmEvent physics{.id = 3};
  const FarmEvent both{.id = 4, .streams = {debug, {}}};
  const FarmEvent build_only{.id = 5, .streams = {debug}};
  std::uint64_t ticket = 0;
  for (const FarmEvent& first : {physics, both, build_only}) ASSERT_TRUE(recorder.offer(++ticket, first.request()));
  // One copy comes before the first is safe, the other after it.
  for (int round = 0; round < 2; ++round) {
    for (const std::uint64_t id : {3, 4})
      ASSERT_TRUE(recorder.offer(++ticket, FarmEvent{.id = id, .streams = {debug}}.request()));
    ASSERT_TRUE(recorder.offer(++ticket, FarmEvent{.id = 5}.request()));
    recorder.poll_until(ticket);
    EXPECT_EQ(recorder.only_answer(ticket - 2), RecordStatus::had_already);
    EXPECT_EQ(recorder.only_answer(ticket - 1), RecordStatus::had_already);
    EXPECT_EQ(recorder.only_answer(ticket), RecordStatus::had_already_debug);
  }
  recorder.end();
  EXPECT_EQ(recorder.recording.counters().read(RecorderCounter::had_already), 6U);
}

TEST(RunRecording, NonsenseIsRefusedAndCounted) {
  const TemporaryDirectory directory;
  Recorder recorder(keys_in(directory));
  const auto good = FarmEvent{}.request();
  auto other_id = good;
  other_id[8] = std::byte{9};
  auto longer = good;
  longer.resize(longer.size() + 4);
  auto no_event = good;
  no_event[28] ^= std::byte{1};  // a byte of the event's marker
  std::uint64_t ticket = 0;
  for (const auto& request : {other_id, longer, no_event, std::vector<std::byte>{}, std::vector<std::byte>(3)})
    EXPECT_TRUE(recorder.offer(ticket++, request));
  for (std::size_t n = 1; n < good.size(); n += 7)
    EXPECT_TRUE(recorder.offer(ticket++, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}));
  EXPECT_TRUE(recorder.offer(ticket, FarmEvent{.run_number = 8}.request()));
  recorder.poll_until(ticket + 1);
  for (std::uint64_t one = 0; one < ticket; ++one) EXPECT_EQ(recorder.only_answer(one), RecordStatus::malformed) << one;
  EXPECT_EQ(recorder.only_answer(ticket), RecordStatus::other_run);
  recorder.end();
  EXPECT_TRUE(names_in(directory).empty());
}

TEST(RunRecording, ADiskThatIsFullRefusesAndTakesAgainWhenThereIsRoom) {
  const TemporaryDirectory directory;
  auto keys = keys_in(directory);
  keys.retry_interval = std::chrono::nanoseconds{1};
  keys.min_free_bytes = ~std::uint64_t{0} >> 2;  // larger than any disk
  Recorder recorder(keys);
  ASSERT_TRUE(recorder.offer(1, FarmEvent{}.request()));
  recorder.poll_until(1);
  EXPECT_EQ(recorder.only_answer(1), RecordStatus::disk_full);
  EXPECT_FALSE(recorder.recording.trouble().empty());
  EXPECT_FALSE(recorder.recording.take_messages().empty());
  recorder.end();
  EXPECT_TRUE(names_in(directory).empty());
}

TEST(RunRecording, AWriteThatFailsIsNoAcknowledgement) {
  const TemporaryDirectory directory;
  auto keys = keys_in(directory);
  keys.retry_interval = std::chrono::nanoseconds{1};
  Recorder recorder(keys);
  ASSERT_TRUE(recorder.offer(1, FarmEvent{.id = 1}.request()));
  recorder.poll_until(1);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit limit = before;
  limit.rlim_cur = 8192;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ASSERT_TRUE(recorder.offer(2, FarmEvent{.id = 2, .data_bytes = 20'000}.request()));
  recorder.poll_until(2);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(recorder.only_answer(1), RecordStatus::recorded);
  EXPECT_EQ(recorder.only_answer(2), RecordStatus::write_failed);
  EXPECT_FALSE(recorder.recording.has(2));
  // The disk works again: the next file begins after the one that failed.
  ASSERT_TRUE(recorder.offer(3, FarmEvent{.id = 2}.request()));
  recorder.poll_until(3);
  EXPECT_EQ(recorder.only_answer(3), RecordStatus::recorded);
  EXPECT_TRUE(recorder.recording.trouble().empty());
  recorder.end();
  ASSERT_EQ(names_in(directory).size(), 2U);
  EXPECT_EQ(ids_in(directory.file(names_in(directory)[0])), std::vector<std::uint64_t>{1});
  EXPECT_EQ(ids_in(directory.file(names_in(directory)[1])), std::vector<std::uint64_t>{2});
}

// A stopped node comes back. The disk was full, so this recorder has refused the event of the next node, which has recorded
// it elsewhere.
TEST(RunRecording, WhatAnotherNodeHasByNowIsNotTakenFromTheOneBefore) {
  const TemporaryDirectory directory;
  FileSettings keys = keys_in(directory);
  keys.retry_interval = std::chrono::nanoseconds{0};
  Recorder recorder(keys);
  recorder.recording.take_over(1);
  ASSERT_TRUE(recorder.offer(1, FarmEvent{.id = 1}.request()));
  disk_fails = true;
  ASSERT_TRUE(recorder.offer(2, FarmEvent{.id = 2, .assigned_again = true}.request()));
  recorder.poll_until(2);
  disk_fails = false;
  ASSERT_TRUE(recorder.offer(3, FarmEvent{.id = 2}.request()));
  recorder.poll_until(3);
  EXPECT_EQ(recorder.only_answer(1), RecordStatus::taken_over);
  EXPECT_EQ(recorder.only_answer(2), RecordStatus::write_failed);
  EXPECT_EQ(recorder.only_answer(3), RecordStatus::taken_over);
  EXPECT_EQ(recorder.recording.counters().read(RecorderCounter::taken_over), 2U);
  ASSERT_TRUE(recorder.offer(4, FarmEvent{.id = 1, .assigned_again = true}.request()));
  recorder.poll_until(4);
  EXPECT_EQ(recorder.only_answer(4), RecordStatus::recorded) << "the event of the other node";
  ASSERT_TRUE(recorder.offer(5, FarmEvent{.id = 1}.request()));
  recorder.poll_until(5);
  EXPECT_EQ(recorder.only_answer(5), RecordStatus::had_already) << "the book agrees with the files";
  recorder.end();
}

// Another recorder has these events by now.
TEST(RunRecording, WhatAFailedFlushRefusedDoesNotComeBackAtTheNextStart) {
  const TemporaryDirectory directory;
  {
    Recorder recorder(keys_in(directory));
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(recorder.offer(id, FarmEvent{.id = id}.request()));
    recorder.poll_until(3);
    disk_fails = true;
    for (std::uint64_t id = 4; id <= 6; ++id) ASSERT_TRUE(recorder.offer(id, FarmEvent{.id = id}.request()));
    recorder.poll_until(6);
    disk_fails = false;
    for (std::uint64_t id = 1; id <= 6; ++id)
      EXPECT_EQ(recorder.only_answer(id), id <= 3 ? RecordStatus::recorded : RecordStatus::write_failed) << id;
    recorder.end();
  }
  Recorder again(keys_in(directory));
  for (std::uint64_t id = 1; id <= 6; ++id) {
    EXPECT_EQ(again.recording.has(id), id <= 3) << id;
    ASSERT_TRUE(again.offer(id, FarmEvent{.id = id}.request()));
  }
  again.end();
  std::vector<std::uint64_t> all;
  for (const std::string& name : names_in(directory)) {
    EXPECT_TRUE(rodeo::storage::verify_event_file(read_file(directory.file(name))).sound()) << name;
    const auto ids = ids_in(directory.file(name));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(RunRecording, AnotherRunKnowsNothingOfThisOne) {
  const TemporaryDirectory directory;
  {
    Recorder recorder(keys_in(directory));
    ASSERT_TRUE(recorder.offer(1, FarmEvent{.id = 5}.request()));
    recorder.end();
  }
  const Recorder same(keys_in(directory), 7);
  EXPECT_TRUE(same.recording.has(5));
  EXPECT_FALSE(same.said.empty());
  const Recorder other(keys_in(directory), 8);
  EXPECT_FALSE(other.recording.has(5));
}

// The recorder was killed between the flushes of two files.
TEST(RunRecording, AnEventThatIsInOneOfItsStreamsIsWrittenToTheOthersWhenItComesAgain) {
  for (const bool moved : {false, true}) {
    const TemporaryDirectory directory;
    const std::string main = directory.file("rodeo.00000007.physics_Main.daq.RAW._lb0001._recorder._0001.data");
    const std::string other = directory.file("rodeo.00000007.physics_Other.daq.RAW._lb0001._recorder._0001.data");
    const FarmEvent event{.id = 5, .streams = {{}, {.name = "Other"}}};
    {
      Recorder recorder(keys_in(directory));
      ASSERT_TRUE(recorder.offer(1, event.request()));
      ASSERT_TRUE(recorder.offer(2, FarmEvent{.id = 6}.request()));
      recorder.end();
    }
    std::filesystem::remove(other);
    if (moved) {
      ASSERT_TRUE(remember_ids(main));
      std::filesystem::remove(main);
    }
    {
      Recorder again(keys_in(directory));
      EXPECT_TRUE(again.recording.has(5));
      EXPECT_EQ(again.recording.ids(), 2U);
      ASSERT_TRUE(again.offer(1, event.request()));
      ASSERT_TRUE(again.offer(2, FarmEvent{.id = 6}.request()));
      again.poll_until(2);
      EXPECT_EQ(again.only_answer(1), RecordStatus::recorded);
      EXPECT_EQ(again.only_answer(2), RecordStatus::had_already);
      ASSERT_TRUE(again.offer(3, event.request()));
      again.poll_until(3);
      EXPECT_EQ(again.only_answer(3), RecordStatus::had_already);
      again.end();
      EXPECT_EQ(again.recording.counters().read(RecorderCounter::copies_lost), 0U);
    }
    EXPECT_EQ(ids_in(other), std::vector<std::uint64_t>{5});
    EXPECT_EQ(files_of_run({directory.path(), "rodeo", "recorder", 7}, ".data")->size(), moved ? 1U : 2U)
        << "an existing copy is not written again";
  }
}

TEST(RunRecording, AnEventInOneOfItsStreamsThatAnotherNodeDecidedIsThereAndItsCopyCounted) {
  const TemporaryDirectory directory;
  {
    Recorder recorder(keys_in(directory));
    ASSERT_TRUE(recorder.offer(1, FarmEvent{.id = 5, .streams = {{}, {.name = "Other"}}}.request()));
    recorder.end();
  }
  std::filesystem::remove(directory.file("rodeo.00000007.physics_Other.daq.RAW._lb0001._recorder._0001.data"));
  Recorder again(keys_in(directory));
  const FarmEvent built{.id = 5, .streams = {{.type = "debug", .name = "NodeBuildOnly", .obeys_lumi_block = false}}};
  ASSERT_TRUE(again.offer(1, built.request()));
  again.poll_until(1);
  EXPECT_EQ(again.only_answer(1), RecordStatus::had_already);
  again.end();
  EXPECT_EQ(again.recording.counters().read(RecorderCounter::copies_lost), 1U);
  EXPECT_EQ(names_in(directory).size(), 1U);
}

TEST(RunRecording, AKilledRecorderHasLostNothingThatItAcknowledgedAndRefusesItAgain) {
  for (int round = 0; round < 3; ++round) {
    const TemporaryDirectory directory;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      // Reports each acknowledged id until it is killed.
      Recorder recorder(keys_in(directory));
      for (std::uint64_t id = 1;; ++id) {
        const FarmEvent event{
            .id = id, .lumi_block = static_cast<std::uint32_t>(1 + id / 50), .data_bytes = 100 + 37 * (id % 50)};
        while (!recorder.offer(id, event.request())) recorder.poll();
        recorder.poll();
        for (const auto& [ticket, statuses] : recorder.answers) {
          if (::write(ends[1], &ticket, sizeof ticket) != sizeof ticket) ::_exit(1);
        }
        recorder.answers.clear();
      }
    }
    std::vector<std::uint64_t> acknowledged;
    std::uint64_t id = 0;
    while (acknowledged.size() < 60 + 45 * static_cast<std::size_t>(round) && ::read(ends[0], &id, sizeof id) == sizeof id)
      acknowledged.push_back(id);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[1]);
    while (::read(ends[0], &id, sizeof id) == sizeof id) acknowledged.push_back(id);
    ::close(ends[0]);
    const auto left = files_of_run({directory.path(), "rodeo", "recorder", 7}, ".writing");
    EXPECT_FALSE(left->empty()) << "it was killed while it wrote";

    Recorder again(keys_in(directory));
    EXPECT_TRUE(files_of_run({directory.path(), "rodeo", "recorder", 7}, ".writing")->empty());
    for (const std::uint64_t one : acknowledged) EXPECT_TRUE(again.recording.has(one)) << one;
    ASSERT_TRUE(again.offer(1, FarmEvent{.id = acknowledged.back()}.request()));
    again.poll_until(1);
    EXPECT_EQ(again.only_answer(1), RecordStatus::had_already);
    ASSERT_TRUE(again.offer(2, FarmEvent{.id = 1'000'000}.request()));
    again.end();
    std::vector<std::uint64_t> all;
    for (const std::string& name : names_in(directory)) {
      EXPECT_TRUE(rodeo::storage::verify_event_file(read_file(directory.file(name))).sound()) << name;
      const auto ids = ids_in(directory.file(name));
      all.insert(all.end(), ids.begin(), ids.end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "each id is in one file";
  }
}

}  // namespace
