// Flushed events are safe on the disk if afterwards the process is killed, the disk fails, or the file is cut after them.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "formats/random_event.h"
#include "formats/temporary_directory.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_sequence.h"
#include "storage/file_recover.h"
#include "storage/file_verify.h"

namespace {

using namespace rodeo::storage;
using rodeo::test::RandomEvents;
using rodeo::test::read_file;
using rodeo::test::TemporaryDirectory;
using Event = std::vector<std::byte>;

EventFileSequence::Settings settings_in(const TemporaryDirectory& directory, std::size_t buffer_bytes) {
  EventFileSettings files;
  files.simple_name = "run";
  files.foreign_events = true;
  return {.directory = directory.path(), .files = files, .disk = {.reserve_step = 0}, .buffer_bytes = buffer_bytes};
}

bool append(EventFileSequence& sequence, const Event& event) {
  const std::span<const std::byte> piece(event);
  return sequence.append({&piece, 1}, event.size()) == EventFileSequence::Outcome::taken;
}

void wait_until_safe(const EventFileSequence& sequence, std::uint64_t events) {
  while (sequence.safe_events() < events && !sequence.over()) std::this_thread::yield();
  ASSERT_GE(sequence.safe_events(), events);
}

void flush(EventFileSequence& sequence) {
  while (!sequence.flush()) std::this_thread::yield();
}

std::vector<Event> events_of(std::span<const std::byte> file) {
  std::vector<Event> events;
  const auto scan = scan_events(file, [&](const FoundEvent& found) -> rodeo::Result<void> {
    events.emplace_back(found.stored.begin(), found.stored.end());
    return {};
  });
  EXPECT_TRUE(scan);
  return events;
}

TEST(Flush, WhatIsSafeIsInTheFileBeforeItIsClosedAndTheFileIsTheSameInTheEnd) {
  for (const std::size_t buffer : {std::size_t{4096}, std::size_t{16384}, std::size_t{1} << 20}) {
    const TemporaryDirectory directory;
    RandomEvents random(static_cast<unsigned>(buffer));
    std::vector<Event> sent;
    EventFileSequence sequence(settings_in(directory, buffer));
    sequence.start();
    for (int i = 0; i < 60; ++i) {
      sent.push_back(random.event());
      ASSERT_TRUE(append(sequence, sent.back()));
      if (i % 3 == 2) continue;  // some flushes have several events, others one
      flush(sequence);
      wait_until_safe(sequence, sent.size());
      const auto now = events_of(read_file(directory.file("run._0001.writing")));
      ASSERT_GE(now.size(), sent.size());
      EXPECT_TRUE(std::equal(sent.begin(), sent.end(), now.begin()));
    }
    flush(sequence);
    flush(sequence);  // this flush has nothing to do
    sequence.close();
    EXPECT_EQ(sequence.safe_events(), sent.size());
    const auto bytes = read_file(directory.file("run._0001.data"));
    const auto report = verify_event_file(bytes);
    EXPECT_TRUE(report.sound()) << (report.findings.total() > 0 ? report.findings.listed().front().what : "");
    EXPECT_EQ(report.crc, FileCrc::holds);
    EXPECT_EQ(sequence.status().files.at(0).bytes, bytes.size());
    EXPECT_EQ(events_of(bytes), sent);
  }
}

TEST(Flush, SafeEventsSurviveACutAtAnyByteBehindThem) {
  const TemporaryDirectory directory;
  RandomEvents random(3);
  std::vector<Event> sent;
  EventFileSequence sequence(settings_in(directory, 8192));
  sequence.start();
  for (int i = 0; i < 3; ++i) {
    sent.push_back(random.event());
    ASSERT_TRUE(append(sequence, sent.back()));
  }
  flush(sequence);
  wait_until_safe(sequence, 3);
  const auto before = read_file(directory.file("run._0001.writing"));
  sent.push_back(random.event());
  ASSERT_TRUE(append(sequence, sent.back()));
  flush(sequence);
  wait_until_safe(sequence, 4);
  const auto after = read_file(directory.file("run._0001.writing"));
  // The write of the fourth event begins with the block in which the third ends. So any part of this write that is on disk
  // contains the first three events.
  std::size_t first = 0;
  while (first < before.size() && before[first] == after[first]) ++first;
  ASSERT_LT(first, after.size());
  for (std::size_t cut = first; cut <= after.size(); ++cut) {
    auto torn = before;
    torn.resize(std::max(before.size(), cut));
    std::copy(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(cut), torn.begin());
    const auto found = events_of(torn);
    ASSERT_GE(found.size(), 3U) << cut;
    ASSERT_TRUE(std::equal(found.begin(), found.begin() + 3, sent.begin())) << cut;
  }
}

TEST(Flush, AFailingDiskTakesNoEventThatWasSafe) {
  for (rlim_t room = 0; room < 200; room += 20) {
    const TemporaryDirectory directory;
    EventFileSequence sequence(settings_in(directory, 4096));
    sequence.start();
    const Event event = RandomEvents(5).event();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(append(sequence, event));
    flush(sequence);
    wait_until_safe(sequence, 5);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = std::filesystem::file_size(directory.file("run._0001.writing")) + room;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 100'000 && append(sequence, event); ++i) flush(sequence);
    sequence.close();
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_TRUE(sequence.over());
    const bool closed = std::filesystem::exists(directory.file("run._0001.data"));
    const auto found = events_of(read_file(directory.file(closed ? "run._0001.data" : "run._0001.writing")));
    EXPECT_GE(found.size(), 5U) << room << " " << sequence.status().failure;
    EXPECT_GE(sequence.safe_events(), 5U);
    EXPECT_LE(sequence.safe_events(), found.size());
    if (closed) {
      EXPECT_EQ(sequence.safe_events(), found.size()) << "after a failure the count is final";
    }
  }
}

TEST(Flush, ASequenceGoesOnBehindTheFilesThatAreThere) {
  const TemporaryDirectory directory;
  const Event event = RandomEvents(7).event();
  for (const std::uint32_t number : {1U, 2U, 5U}) {
    auto settings = settings_in(directory, 4096);
    settings.first_file_number = number;
    EventFileSequence sequence(settings);
    sequence.start();
    ASSERT_TRUE(append(sequence, event));
    sequence.close();
    EXPECT_EQ(events_of(read_file(directory.file("run._000" + std::to_string(number) + ".data"))).size(), 1U);
  }
}

TEST(Flush, ASlowDiskIsSeenBeforeAnybodyWaitsForIt) {
  const TemporaryDirectory directory;
  auto settings = settings_in(directory, std::size_t{128} << 10);
  settings.buffers = 2;
  EventFileSequence sequence(settings);
  sequence.start();
  EXPECT_TRUE(sequence.takes_at_once(1 << 20)) << "no data wait: events larger than all buffers are written directly";
  sequence.slow_down(std::chrono::hours{1});
  Event event(std::size_t{100} << 10);
  ASSERT_TRUE(append(sequence, event));
  ASSERT_TRUE(append(sequence, event));  // one buffer is being written now
  EXPECT_FALSE(sequence.takes_at_once(100 << 10));
  EXPECT_EQ(sequence.safe_events(), 0U);
  sequence.slow_down(std::chrono::nanoseconds{0});
}

}  // namespace
