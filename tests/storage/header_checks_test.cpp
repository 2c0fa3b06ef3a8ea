// Checks of event headers in event files: a flipped bit makes only one event unproven, with any buffers, flushes and files.
#include "formats/header_checks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "formats/random_event.h"
#include "formats/temporary_directory.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_sequence.h"
#include "storage/file_recover.h"
#include "storage/file_verify.h"
#include "storage/made_files.h"

namespace {

using namespace rodeo::storage;
using namespace rodeo::formats;
using rodeo::test::RandomEvents;
using rodeo::test::read_file;
using rodeo::test::sample_event;
using rodeo::test::sample_file;
using rodeo::test::SampleSettings;
using rodeo::test::TemporaryDirectory;
using Bytes = std::vector<std::byte>;

// A simple CRC: bit by bit.
std::uint16_t slow_crc(std::span<const std::byte> bytes) {
  unsigned crc = 0;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<unsigned>(byte) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = ((crc & 0x8000U) != 0 ? crc << 1 ^ 0x8bb7U : crc << 1) & 0xffffU;
  }
  return static_cast<std::uint16_t>(crc);
}

std::vector<Bytes> samples(std::uint32_t count, SampleSettings settings = {}) {
  std::vector<Bytes> events;
  for (std::uint32_t number = 1; number <= count; ++number) events.push_back(sample_event(settings, number));
  return events;
}

// A closed file of these events, as a readout writes it.
Bytes written(const std::vector<Bytes>& events) {
  const TemporaryDirectory directory;
  const auto paths = rodeo::test::make_files(directory.path(), {}, {}, events);
  EXPECT_EQ(paths.size(), 1U);
  return read_file(paths.at(0));
}

struct Recovered {
  std::uint64_t events = 0;
  std::uint64_t marked = 0;
  std::uint64_t repeated = 0;
  bool proven = false;
};
Recovered recover(const Bytes& file) {
  const TemporaryDirectory directory;
  const auto result = recover_events(file, directory.path(), "damaged");
  EXPECT_TRUE(result && result->written) << (result ? "" : result.error().message());
  if (!result || !result->written) return {};
  const auto report = verify_event_file(read_file(result->written->path));
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.totals.unproven_headers, result->marked);
  EXPECT_EQ(report.proven_headers, report.totals.events) << "the new file has its own checks";
  return {result->scan.events, result->marked, result->repeated, result->headers_proven};
}

std::vector<std::size_t> offsets_of(const Bytes& file) {
  std::vector<std::size_t> offsets;
  auto reader = EventFileReader::open(file);
  while (reader) {
    const auto block = reader->next();
    if (!block || !*block) break;
    offsets.push_back((*block)->offset + kSeparatorBytes);
  }
  return offsets;
}

TEST(HeaderChecks, ARecordComesBackAndNoFlippedBitOfItIsBelieved) {
  for (const std::uint32_t count : {1U, 2U, 3U, 255U, 256U}) {
    HeaderCheckList list;
    for (std::uint32_t i = 0; i < count; ++i) list.add(100 + i, static_cast<std::uint16_t>(i * 40503));
    EXPECT_EQ(list.full(), count == 256);
    const auto record = list.record();
    ASSERT_EQ(record.size(), HeaderCheckList::record_bytes(count));
    EXPECT_EQ(list.size(), 0U);
    const Bytes sound(record.begin(), record.end());
    EXPECT_EQ(slow_crc(std::span(sound).first(sound.size() - 2)),
              std::to_integer<unsigned>(sound[sound.size() - 1]) << 8 | std::to_integer<unsigned>(sound[sound.size() - 2]));
    const auto checks = HeaderChecks::decode(sound);
    ASSERT_TRUE(checks);
    EXPECT_EQ(checks->count(), count);
    EXPECT_EQ(checks->first(), 100U);
    EXPECT_EQ((*checks)[count - 1], static_cast<std::uint16_t>((count - 1) * 40503));
    EXPECT_EQ(checks->of(100), 0);
    EXPECT_FALSE(checks->of(99) || checks->of(100 + count));
    for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
      Bytes flipped = sound;
      flipped[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(HeaderChecks::decode(flipped)) << bit;
    }
  }
}

TEST(HeaderChecks, ACheckIsOfTheNumberAndTheHeaderHoweverTheEventIsCut) {
  const Bytes event = sample_event({}, 3);
  const std::size_t header = decode_full_event(event)->header_words * kWordBytes;
  Bytes of{std::byte{3}, std::byte{0}, std::byte{0}, std::byte{0}};
  of.insert(of.end(), event.begin(), event.begin() + static_cast<std::ptrdiff_t>(header));
  const std::uint16_t check = header_check(3, event);
  EXPECT_EQ(check, slow_crc(of));
  for (std::size_t cut = 0; cut <= event.size(); ++cut) {
    const std::span<const std::byte> pieces[] = {std::span(event).first(cut / 2),
                                                 std::span(event).subspan(cut / 2, cut - cut / 2),
                                                 {},
                                                 std::span(event).subspan(cut)};
    EXPECT_EQ(header_check(3, pieces), check) << cut;
  }
  EXPECT_NE(header_check(4, event), check);
  for (std::size_t bit = 0; bit < header * 8; ++bit) {
    Bytes flipped = event;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(header_check(3, flipped), check) << bit;
  }
  (void)header_check(1, std::span<const std::byte>());
  (void)header_check(1, std::span(event).first(7));
}

TEST(HeaderChecks, AFileHasOneForEachEventAndGrowsByLessThanAHundredth) {
  const auto events = samples(3000, {.links = 2, .chunk_bytes = 20});
  std::size_t before = 0;
  for (const Bytes& event : events) before += kSeparatorBytes + event.size();
  const Bytes file = written(events);
  const auto report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << report.findings.listed().front().what;
  EXPECT_EQ(report.proven_headers, events.size());
  std::size_t records = 0;
  for (const auto& record : find_header_checks(file)) records += HeaderCheckList::record_bytes(record.checks.count());
  EXPECT_GT(records, 2 * events.size());
  EXPECT_LT(records * 100, before) << records << " of " << before;
}

TEST(HeaderChecks, OneFlippedBitOfAHeaderCostsOneEventItsProof) {
  const auto events = samples(600);
  const Bytes sound = written(events);
  const auto offsets = offsets_of(sound);
  ASSERT_EQ(offsets.size(), events.size());
  const std::size_t header = decode_full_event(events[0])->header_words * kWordBytes;
  std::size_t step = 0;
  for (const std::size_t event : {std::size_t{0}, std::size_t{255}, std::size_t{256}, std::size_t{400}, std::size_t{599}}) {
    for (std::size_t bit = 0; bit < header * 8; bit += 29) {
      Bytes file = sound;
      file[offsets[event] + bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(verify_event_file(file).sound());
      if (++step % 5 != 0) continue;  // recovers only some files, because each recovery writes a file
      const Recovered recovered = recover(file);
      EXPECT_GE(recovered.events, events.size() - 1);
      EXPECT_EQ(recovered.marked, recovered.events == events.size() ? 1U : 0U) << bit;
      EXPECT_TRUE(recovered.proven) << "event " << event << " bit " << bit;
    }
  }
}

TEST(HeaderChecks, DamageElsewhereCostsNoEventItsProof) {
  const auto events = samples(300);
  const Bytes sound = written(events);
  for (const std::size_t at :
       {std::size_t{17}, sound.size() - kFileEndBytes + 9}) {  // dates of the start and of the end record
    Bytes file = sound;
    file[at] ^= std::byte{1};
    const Recovered recovered = recover(file);
    EXPECT_EQ(recovered.events, events.size());
    EXPECT_EQ(recovered.marked, 0U);
    EXPECT_TRUE(recovered.proven);
  }
  // If a record of checks is damaged, only the events that it checks are unproven.
  Bytes file = sound;
  file[find_header_checks(sound).front().offset + 40] ^= std::byte{1};
  const Recovered recovered = recover(file);
  EXPECT_FALSE(verify_event_file(file).sound());
  EXPECT_LE(recovered.marked, kMostHeaderChecks);
}

TEST(HeaderChecks, AFileOfTodayHasNoneAndStaysSound) {
  const Bytes file = sample_file({.events = 5});
  EXPECT_TRUE(find_header_checks(file).empty());
  const auto report = verify_event_file(file);
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.proven_headers, 0U);
}

TEST(HeaderChecks, TheBlocksAreThoseOfTheEventsWhateverBuffersAndFlushesTheyWentThrough) {
  for (const std::size_t buffer : {std::size_t{4096}, std::size_t{8192}, std::size_t{1} << 16}) {
    const TemporaryDirectory directory;
    RandomEvents random(static_cast<unsigned>(buffer) + 1);
    EventFileSettings files;
    files.simple_name = "run";
    files.foreign_events = true;
    files.max_blocks = 700;
    EventFileSequence sequence(
        {.directory = directory.path(), .files = files, .disk = {.reserve_step = 0}, .buffer_bytes = buffer});
    sequence.start();
    std::vector<Bytes> sent;
    for (int i = 0; i < 1500; ++i) {
      sent.push_back(random.event());
      const std::span<const std::byte> piece(sent.back());
      ASSERT_EQ(sequence.append({&piece, 1}, piece.size()), EventFileSequence::Outcome::taken);
      if (i % 17 == 3) {
        while (!sequence.flush()) std::this_thread::yield();
      }
    }
    sequence.close();
    std::vector<Bytes> read;
    for (const auto& made : sequence.status().files) {
      const Bytes file = read_file(made.path);
      const auto report = verify_event_file(file);
      EXPECT_TRUE(report.sound()) << report.findings.listed().front().what;
      EXPECT_EQ(report.proven_headers, report.totals.events) << made.path;
      auto reader = EventFileReader::open(file);
      while (auto block = reader->next()) {
        if (!*block) break;
        read.emplace_back((*block)->stored.begin(), (*block)->stored.end());
      }
    }
    EXPECT_EQ(read, sent);
  }
}

// docs/reference/formats/eventstorage-file.md states this cost.
TEST(HeaderChecks, AFlushAfterEachEventCostsTwentyBytesForEach) {
  const TemporaryDirectory directory;
  const auto events = samples(40);
  std::size_t before = 0;
  EventFileSettings files;
  files.simple_name = "run";
  files.run.run_number = 431493;
  EventFileSequence sequence(
      {.directory = directory.path(), .files = files, .disk = {.reserve_step = 0}, .buffer_bytes = 1 << 16});
  sequence.start();
  for (const Bytes& event : events) {
    before += kSeparatorBytes + event.size();
    const std::span<const std::byte> bytes = event;
    ASSERT_EQ(sequence.append({&bytes, 1}, bytes.size()), EventFileSequence::Outcome::taken);
    while (!sequence.flush()) std::this_thread::yield();
  }
  sequence.close();
  const Bytes file = read_file(sequence.status().files.at(0).path);
  const auto report = verify_event_file(file);
  EXPECT_TRUE(report.sound()) << report.findings.listed().front().what;
  EXPECT_EQ(report.proven_headers, events.size());
  EXPECT_EQ(find_header_checks(file).size(), events.size());
  EXPECT_EQ(HeaderCheckList::record_bytes(1), 20U);
  auto reader = EventFileReader::open(file);
  ASSERT_TRUE(reader);
  std::size_t blocks = 0;
  for (auto block = reader->next(); block && *block; block = reader->next()) blocks += kSeparatorBytes + (*block)->bytes();
  EXPECT_EQ(blocks, before + 20 * events.size());
}

TEST(HeaderChecks, OfAKilledRunThoseStayThatWereWritten) {
  const TemporaryDirectory directory;
  EventFileSettings files;
  files.simple_name = "run";
  files.run.run_number = 431493;
  EventFileSequence sequence(
      {.directory = directory.path(), .files = files, .disk = {.reserve_step = 0}, .buffer_bytes = 1 << 16});
  sequence.start();
  const auto events = samples(400);
  for (const Bytes& event : events) {
    const std::span<const std::byte> piece(event);
    sequence.append({&piece, 1}, event.size());
  }
  while (!sequence.flush()) std::this_thread::yield();
  while (sequence.safe_events() < events.size()) std::this_thread::yield();
  Bytes file = read_file(directory.file("run._0001.writing"));  // the file as a kill leaves it
  std::uint64_t checks = 0;
  for (const auto& record : find_header_checks(file)) checks += record.checks.count();
  EXPECT_EQ(checks, events.size());
  EXPECT_TRUE(recover(file).proven);
  file[offsets_of(file)[100] + 9 * kWordBytes] ^= std::byte{1};  // nanoseconds: no other word contradicts them
  const Recovered recovered = recover(file);
  EXPECT_EQ(recovered.marked, 1U);
  EXPECT_TRUE(recovered.proven);
  sequence.close();
}

TEST(HeaderChecks, AFileJoinedWithItselfIsSaidToBeSo) {
  const Bytes file = written(samples(300));
  Bytes twice = file;
  twice.insert(twice.end(), file.begin(), file.end());
  const Recovered recovered = recover(twice);
  EXPECT_EQ(recovered.events, 600U);
  EXPECT_EQ(recovered.repeated, 300U);
  EXPECT_EQ(recovered.marked, 0U) << "the checks of its own part prove each event";
}

TEST(HeaderChecks, ABlockWhoseEventFillsItHasNone) {
  const Bytes event = sample_event({}, 1);
  EXPECT_EQ(split_block(event).event.size(), event.size());
  EXPECT_TRUE(split_block(event).checks.empty());
  Bytes more = event;
  more.resize(event.size() + 40);
  EXPECT_EQ(split_block(more).event.size(), more.size()) << "other bytes stay and make the block too large";
  EXPECT_TRUE(split_block({}).event.empty());
}

}  // namespace
