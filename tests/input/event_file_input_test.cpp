// Event files as an input: the chunks of built events come again, at the requested times.
#include "input/event_file_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "base/error.h"
#include "formats/ttc_packet.h"
#include "input/stream_reader.h"
#include "storage/made_files.h"

namespace rodeo::input {
namespace {

using test::events_of;
using test::make_files;
using test::SampleSettings;
using test::TemporaryDirectory;
using testing::SeenChunk;

const SampleSettings kSample{.events = 200, .links = 3};

std::vector<std::uint32_t> numbers(std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = i + 1;
  return all;
}

EventFileInputSettings playing(const std::vector<std::string>& files) {
  return {.file = files.front(), .timing = EventTiming::fast, .seed = kSample.seed};
}

std::vector<SeenChunk> play_to_end(DataStream& stream) {
  std::vector<SeenChunk> chunks;
  while (testing::read_all(stream, chunks) != PollStatus::end) {
  }
  return chunks;
}

std::uint64_t counter(const DataInput& input, std::string_view name) {
  for (const NamedCounter& one : input.counters()) {
    if (one.name == name) return one.value;
  }
  return ~std::uint64_t{0};
}

TEST(EventFileInput, EveryChunkComesAgainToTheWorkerThatHasItsLink) {
  for (const bool compress : {false, true}) {
    const TemporaryDirectory directory;
    SampleSettings sample = kSample;
    sample.compress = compress;
    const auto files = make_files(directory.path(), {.max_blocks = 90}, sample, events_of(sample, numbers(200)));
    ASSERT_EQ(files.size(), 3u);
    EventFileInput input(playing(files));
    ASSERT_EQ(input.links().size(), 3u);
    EXPECT_EQ(input.links()[0], (Fid{0x1000000000000000 | 0x540000ULL << 16}));
    const auto one = input.open(input.links().first(1));
    const auto other = input.open(input.links().subspan(1));
    input.start();
    const auto first = play_to_end(*one);
    const auto second = play_to_end(*other);
    ASSERT_EQ(first.size(), 200u);
    ASSERT_EQ(second.size(), 400u);
    const formats::Provable provable(kSample.seed);
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].l1id, L1Id::of(1, static_cast<std::uint32_t>(i) + 1).value);
      EXPECT_TRUE(provable.matches(first[i].bytes, 0x540000, L1Id{first[i].l1id}));
    }
    EXPECT_EQ(counter(input, "sent"), 600u);
    EXPECT_EQ(counter(input, "events"), 200u);
    EXPECT_EQ(counter(input, "damaged"), 0u);
  }
}

TEST(EventFileInput, LinksOfFilesThatDoNotNameThemAreThoseOfTheirChunks) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {.named_robs = false}, kSample, events_of(kSample, numbers(2)));
  EXPECT_EQ(EventFileInput(playing(files)).links().size(), 3u);
}

TEST(EventFileInput, OnlyTheFileIsPlayedIfItsSequenceIsNotWanted) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {.max_blocks = 90}, kSample, events_of(kSample, numbers(200)));
  EventFileInputSettings settings = playing(files);
  settings.sequence = false;
  EventFileInput input(settings);
  const auto stream = input.open(input.links());
  input.start();
  EXPECT_EQ(play_to_end(*stream).size(), 270u);
}

TEST(EventFileInput, WhatWasMissingIsMissingAgain) {
  const TemporaryDirectory directory;
  SampleSettings sample = kSample;
  sample.missing_in_event = 5;
  EventFileInput input(playing(make_files(directory.path(), {}, sample, events_of(sample, numbers(10)))));
  const auto stream = input.open(input.links());
  input.start();
  std::map<LinkIndex, int> chunks;
  for (const SeenChunk& chunk : play_to_end(*stream)) ++chunks[chunk.link];
  EXPECT_EQ(chunks, (std::map<LinkIndex, int>{{0, 10}, {1, 10}, {2, 9}}));
}

TEST(EventFileInput, EventsOfSeveralRobsAreOneTrigger) {
  const TemporaryDirectory directory;
  const SampleSettings other{.links = 2, .source_id = 0x610002, .first_link = 0x580000};
  std::vector<std::vector<std::byte>> events;
  for (std::uint32_t number = 1; number <= 50; ++number) {
    events.push_back(test::sample_event(kSample, number));
    events.push_back(test::sample_event(other, number));
  }
  EventFileInput input(playing(make_files(directory.path(), {.named_robs = false}, kSample, events)));
  const auto stream = input.open(input.links());
  const auto list = input.open_trigger_list();
  input.start();
  EXPECT_EQ(play_to_end(*stream).size(), 250u);
  EXPECT_EQ(counter(input, "events"), 50u);
  const auto packets = play_to_end(*list);
  ASSERT_EQ(packets.size(), 50u);
  for (std::uint32_t i = 0; i < packets.size(); ++i) {
    const auto packet = formats::TtcPacket::read(packets[i].bytes);
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->l1id, L1Id::of(1, i + 1));
    EXPECT_EQ(packet->bcid, formats::Provable(kSample.seed).trigger(packet->l1id).bcid);
  }
}

TEST(EventFileInput, EventsGoOnWhereTheirL1IdsWrap) {
  const TemporaryDirectory directory;
  SampleSettings sample = kSample;
  sample.wrapped = true;
  std::vector<std::uint32_t> all;
  for (std::uint32_t number = 0xfffff0; number <= 0x1000010; ++number) all.push_back(number);
  EventFileInput input(playing(make_files(directory.path(), {}, sample, events_of(sample, all))));
  const auto stream = input.open(input.links());
  const auto list = input.open_trigger_list();
  input.start();
  EXPECT_EQ(play_to_end(*stream).size(), 3 * all.size());
  EXPECT_EQ(counter(input, "events"), all.size());
  const auto packets = play_to_end(*list);
  ASSERT_EQ(packets.size(), all.size());
  EXPECT_EQ(formats::TtcPacket::read(packets.back().bytes)->l1id, L1Id::of(0, 0x10));
}

TEST(EventFileInput, AFlippedBitInAGlobalIdChangesNoLaterNumber) {
  const TemporaryDirectory directory;
  const auto mapped = base::MappedFile::open(make_files(directory.path(), {}, kSample, events_of(kSample, numbers(2)))[0]);
  const auto file = storage::EventFileReader::open(mapped->bytes());
  for (const unsigned bit : {33U, 40U, 62U, 63U}) {
    for (const std::uint64_t hurt : {0U, 5U}) {  // damages the first event, or one in the middle
      EventNumbers numbers;
      numbers.begin(*file);
      std::int64_t last = -1;
      for (std::uint64_t id = 0; id < 10; ++id) {
        formats::FullEventView event;
        event.global_id = id == hurt ? id ^ std::uint64_t{1} << bit : id;
        event.l1id = L1Id{static_cast<std::uint32_t>(id)};
        const std::int64_t number = numbers.of(event);
        if (id != 0) {
          EXPECT_EQ(number, last + 1) << bit << ", " << hurt << ", " << id;
        }
        last = number;
      }
    }
  }
}

TEST(EventFileInput, ALoopGoesOnCounting) {
  const TemporaryDirectory directory;
  EventFileInputSettings settings = playing(make_files(directory.path(), {}, kSample, events_of(kSample, numbers(100))));
  settings.loop = true;
  EventFileInput input(settings);
  const auto stream = input.open(input.links());
  input.start();
  std::vector<SeenChunk> chunks;
  while (chunks.size() < 3000) testing::read_all(*stream, chunks, 3000);
  input.stop();
  while (testing::read_all(*stream, chunks) != PollStatus::end) {
  }
  const formats::Provable provable(kSample.seed);
  std::vector<std::uint32_t> next(3, 0);
  for (const SeenChunk& chunk : chunks) {
    ASSERT_EQ(chunk.l1id, next[chunk.link]++);
    ASSERT_TRUE(provable.matches(chunk.bytes, 0x540000U + chunk.link, L1Id{chunk.l1id}));
  }
  EXPECT_EQ(next[0], next[1]);
  EXPECT_EQ(next[0], next[2]);
  EXPECT_EQ(counter(input, "not_restamped"), 0u);
}

TEST(EventFileInput, ALoopOfSoManyPassesEnds) {
  const TemporaryDirectory directory;
  EventFileInputSettings settings = playing(make_files(directory.path(), {}, kSample, events_of(kSample, numbers(100))));
  settings.loop = true;
  settings.passes = 3;
  EventFileInput input(settings);
  const auto stream = input.open(input.links());
  input.start();
  EXPECT_EQ(play_to_end(*stream).size(), 900u);
  EXPECT_EQ(counter(input, "events"), 300u);
}

TEST(EventFileInput, StopEndsAllStreamsWithOneEvent) {
  const TemporaryDirectory directory;
  EventFileInputSettings settings = playing(make_files(directory.path(), {}, kSample, events_of(kSample, numbers(5000))));
  EventFileInput input(settings);
  const auto one = input.open(input.links().first(1));
  const auto other = input.open(input.links().subspan(1));
  input.start();
  std::vector<SeenChunk> first;
  std::vector<SeenChunk> second;
  testing::read_all(*one, first, 1000);
  testing::read_all(*other, second, 100);
  input.stop();
  while (testing::read_all(*one, first) != PollStatus::end) {
  }
  while (testing::read_all(*other, second) != PollStatus::end) {
  }
  EXPECT_GE(first.size(), 1000u);
  EXPECT_LT(first.size(), 1200u);
  EXPECT_EQ(second.size(), 2 * first.size());
}

TEST(EventFileInput, StoppedBeforeItsStartNothingComes) {
  const TemporaryDirectory directory;
  EventFileInput input(playing(make_files(directory.path(), {}, kSample, events_of(kSample, numbers(10)))));
  const auto stream = input.open(input.links());
  input.stop();
  input.stop();
  EXPECT_TRUE(play_to_end(*stream).empty());
}

// Sample events are 1000 ns apart; the playback sets their due times, independent of the machine's speed.
TEST(EventPlayback, IsDueAsItsTimingSays) {
  EventPlayback playback;
  EXPECT_EQ(playback.due_ns(7, 1234), 1234u);
  playback.timing = EventTiming::rate;
  playback.rate_hz = 1000;
  EXPECT_EQ(playback.due_ns(7, 1234), 7'000'000u);
  playback.timing = EventTiming::fast;
  EXPECT_EQ(playback.due_ns(7, 1234), 0u);
}

TEST(EventFileInput, NothingComesBeforeItIsDue) {
  const TemporaryDirectory directory;
  EventFileInputSettings settings = playing(make_files(directory.path(), {}, kSample, events_of(kSample, numbers(10))));
  settings.rate_hz = 1e-3;  // the second event is due after a quarter of an hour
  EventFileInput input(settings);
  const auto stream = input.open(input.links());
  input.start();
  std::vector<SeenChunk> chunks;
  EXPECT_EQ(testing::read_all(*stream, chunks), PollStatus::empty);
  EXPECT_EQ(testing::read_all(*stream, chunks), PollStatus::empty);
  EXPECT_EQ(chunks.size(), 3u);
  const std::uint64_t before = stream->clock_ns();
  EXPECT_LE(before, base::steady_now_ns());
  EXPECT_EQ(testing::read_all(*stream, chunks), PollStatus::empty);
  EXPECT_GT(stream->clock_ns(), before) << "time continues while no event is due";
}

Error refused(const EventFileInputSettings& settings) {
  try {
    EventFileInput input(settings);
  } catch (const SetupError& error) {
    return error.error();
  }
  return {"accepted", "", "", ""};
}
std::string refusal(const std::string& file) { return refused({.file = file}).code; }

// Events of two ROBs whose links have the same ids, as a merge makes them.
const SampleSettings kOtherRob{.links = 2, .seed = 8, .source_id = 0x610002};
std::vector<std::vector<std::byte>> events_of_two_robs(std::uint32_t count) {
  std::vector<std::vector<std::byte>> events;
  for (std::uint32_t number = 1; number <= count; ++number) {
    events.push_back(test::sample_event(kSample, number));
    events.push_back(test::sample_event(kOtherRob, number));
  }
  return events;
}

TEST(EventFileInput, RefusesLinksWithTheSameIdInTwoRobsAndNamesTheRobs) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {.named_robs = false}, kSample, events_of_two_robs(5));
  const Error error = refused(playing(files));
  EXPECT_EQ(error.code, "readout.link_of_two_robs");
  EXPECT_NE(error.what.find("0x00610001"), std::string::npos) << error.what;
  EXPECT_NE(error.what.find("0x00610002"), std::string::npos) << error.what;
  EXPECT_NE(error.next.find("readout.input.robs"), std::string::npos) << error.next;
}

TEST(EventFileInput, PlaysTheChosenRobOnly) {
  for (const SampleSettings& chosen : {kSample, kOtherRob}) {
    for (const bool named : {false, true}) {  // a file that names ROBs names only the first one
      const TemporaryDirectory directory;
      if (named && chosen.source_id == kOtherRob.source_id) continue;
      EventFileInputSettings settings =
          playing(make_files(directory.path(), {.named_robs = named}, kSample, events_of_two_robs(50)));
      settings.robs = {chosen.source_id};
      EventFileInput input(settings);
      const auto stream = input.open(input.links());
      input.start();
      const auto chunks = play_to_end(*stream);
      ASSERT_EQ(chunks.size(), 50u * chosen.links);
      const formats::Provable provable(chosen.seed);
      for (const SeenChunk& chunk : chunks)
        ASSERT_TRUE(provable.matches(chunk.bytes, 0x540000U + chunk.link, L1Id{chunk.l1id}));
      settings.robs = {0x620000};
      EXPECT_EQ(refused(settings).code, "readout.no_such_rob");
    }
  }
}

TEST(EventFileInput, RefusesWhatItCannotPlay) {
  const TemporaryDirectory directory;
  EXPECT_EQ(refusal(directory.file("absent")), "file.open");
  std::ofstream(directory.file("text")) << "not an event file";
  EXPECT_EQ(refusal(directory.file("text")), "readout.no_event_file");
  EXPECT_EQ(refused({.file = directory.file("text")}).what, "is not readable by Rodeo: text");
  std::ofstream(directory.file("zip")) << "\x1f\x8b\x08 and so on, and so on";
  EXPECT_EQ(refused({.file = directory.file("zip")}).next, "read by: uncompress it first: gunzip");
  EXPECT_EQ(refusal(make_files(directory.path(), {}, kSample, {})[0]), "readout.no_chunks");
}

TEST(EventFileInput, ACutFileIsPlayedAsFarAsItGoesAndCounted) {
  const TemporaryDirectory directory;
  const auto files = make_files(directory.path(), {}, kSample, events_of(kSample, numbers(10)));
  std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) - 100);
  EventFileInput input(playing(files));
  const auto stream = input.open(input.links());
  input.start();
  EXPECT_EQ(play_to_end(*stream).size(), 27u);
  EXPECT_EQ(counter(input, "damaged"), 1u);
}

}  // namespace
}  // namespace rodeo::input
