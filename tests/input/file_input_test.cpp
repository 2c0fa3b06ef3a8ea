// Recordings: the generator's chunks, written as blocks and replayed by FileInput.
#include "input/file_input.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/registry.h"
#include "formats/ttc_packet.h"
#include "input/block_recorder.h"
#include "input/generator_input.h"
#include "input/stream_reader.h"
#include "readout/defaults.h"

namespace rodeo::input {
namespace {

using testing::SeenChunk;

class RecordedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() / ("rodeo-recording-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    settings_.links = generated_fids(24, 3, 7, false);
    settings_.seed = 5;
    settings_.rate_hz = GeneratorSettings::kUnlimited;
    settings_.events = 1000;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path record(RecordingSettings how = {}) {
    GeneratorSettings complete = settings_;
    complete.complete();
    InternalDataGenerator input(complete);
    const std::filesystem::path file = directory_ / "recording.felix";
    const auto summary = record_blocks(input, file, how);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message());
    if (summary) {
      summary_ = *summary;
      EXPECT_EQ(std::filesystem::file_size(file), summary->bytes);
      for (const NamedCounter& counter : input.counters()) {
        if (counter.name == "sent") {
          EXPECT_EQ(summary->chunks, counter.value);
        }
      }
    }
    return file;
  }

  FileInputSettings playing(const std::filesystem::path& file) const {
    FileInputSettings s;
    s.file = file;
    s.detector = 3;
    s.card = 7;
    s.seed = 5;
    return s;
  }

  std::string refusal(const std::filesystem::path& file) const {
    try {
      FileInput input(playing(file));
    } catch (const SetupError& error) {
      return error.error().code;
    }
    return "accepted";
  }

  std::filesystem::path directory_;
  GeneratorSettings settings_;
  RecordingSummary summary_;
};

std::uint64_t counter(const DataInput& input, std::string_view name) {
  for (const NamedCounter& c : input.counters()) {
    if (c.name == name) return c.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

std::vector<SeenChunk> play_to_end(DataStream& stream) {
  std::vector<SeenChunk> chunks;
  while (testing::read_all(stream, chunks) != PollStatus::end) std::this_thread::yield();
  return chunks;
}

TEST_F(RecordedFile, StoppedBeforeItsStartEndsItsStreams) {
  for (const double rate_hz : {0.0, 1000.0}) {
    std::filesystem::remove(directory_ / "recording.felix");
    FileInputSettings settings = playing(record());
    settings.rate_hz = rate_hz;
    FileInput input(settings);
    const auto stream = input.open(input.links());
    input.stop();
    input.stop();
    std::vector<SeenChunk> chunks;
    EXPECT_EQ(testing::read_all(*stream, chunks), PollStatus::end);
    EXPECT_TRUE(chunks.empty());
  }
}

TEST_F(RecordedFile, PlaysEveryChunkToTheWorkerThatHasItsLink) {
  for (const std::uint32_t bytes : {40U, 1500U}) {
    std::filesystem::remove(directory_ / "recording.felix");
    settings_.chunk_bytes = bytes;
    FileInput input(playing(record()));
    ASSERT_EQ(input.links().size(), 24U);
    EXPECT_TRUE(std::equal(input.links().begin(), input.links().end(), settings_.links.begin()));
    const auto one = input.open(input.links().first(7));
    const auto other = input.open(input.links().subspan(7));
    input.start();
    std::vector<SeenChunk> first;
    std::thread worker([&] { first = play_to_end(*one); });
    const auto second = play_to_end(*other);
    worker.join();
    EXPECT_EQ(first.size(), 7000U);
    EXPECT_EQ(second.size(), 17000U);
    std::vector<std::uint32_t> next(17, 0);
    for (const SeenChunk& chunk : second) {
      ASSERT_EQ(chunk.l1id, next[chunk.link]++);
      ASSERT_EQ(chunk.status, 0);
      ASSERT_TRUE(
          formats::Provable(5).matches(chunk.bytes, input.links()[7 + chunk.link].default_link_id(), L1Id{chunk.l1id}));
    }
    EXPECT_EQ(counter(input, "sent"), 24'000U);
  }
}

TEST_F(RecordedFile, KeepsStatusAndFaults) {
  settings_.faults.truncated = 0.05;
  settings_.faults.duplicate = 0.05;
  FileInput input(playing(record()));
  const auto stream = input.open(input.links());
  input.start();
  const auto chunks = play_to_end(*stream);
  EXPECT_EQ(chunks.size(), summary_.chunks);
  std::size_t cut = 0;
  for (const SeenChunk& chunk : chunks) {
    cut += chunk.bytes.size() < 40;
    EXPECT_EQ(chunk.bytes.size() < 40, chunk.status == chunk_status::kFirmwareTruncated);
  }
  EXPECT_GT(cut, 500U);
}

TEST_F(RecordedFile, LoopsWithIdsThatGoOnCounting) {
  for (const std::uint32_t bits : {32U, 8U}) {
    std::filesystem::remove(directory_ / "recording.felix");
    settings_.l1id_bits = bits;
    settings_.ecr_triggers = bits == 32 ? 300 : 0;
    settings_.faults.missing = 0.01;
    FileInputSettings s = playing(record());
    s.loop = true;
    s.recording.l1id.bits = bits;
    FileInput input(s);
    const auto stream = input.open(input.links());
    input.start();
    std::vector<SeenChunk> chunks;
    while (chunks.size() < 100'000) testing::read_all(*stream, chunks, 100'000);
    input.stop();
    while (testing::read_all(*stream, chunks) != PollStatus::end) {
    }
    const formats::Provable provable(5, false, bits);
    std::vector<std::uint32_t> next(24, 0);
    for (const SeenChunk& chunk : chunks) {
      const std::uint32_t sequence = next[chunk.link] + ((chunk.l1id - next[chunk.link]) & provable.l1id_mask());
      ASSERT_LT(sequence, next[chunk.link] + 30) << "some are missing, none comes twice";
      if (chunk.status == 0) {
        ASSERT_TRUE(provable.matches(chunk.bytes, input.links()[chunk.link].default_link_id(), L1Id{sequence}));
      }
      next[chunk.link] = sequence + 1;
    }
    EXPECT_GT(next[0], 4000U) << "four passes of a thousand events";
    const std::uint64_t per_pass = summary_.chunks;
    EXPECT_EQ(counter(input, "not_restamped"), 0U);
    EXPECT_EQ(counter(input, "lost_blocks"), 0U) << "the seam of a loop is not a gap";
    EXPECT_EQ(std::count_if(chunks.begin(), chunks.begin() + static_cast<std::ptrdiff_t>(per_pass),
                            [](const auto& c) { return c.status != 0; }),
              0);
  }
}

void count_up(std::span<std::byte> chunk, const TriggerInfo& trigger) { std::memcpy(chunk.data(), &trigger.l1id, 4); }

TEST_F(RecordedFile, LoopsThroughAUsersRestampingFunction) {
  FileInputSettings s = playing(record());
  s.loop = true;
  s.restamp = count_up;
  FileInput input(s);
  const auto stream = input.open(input.links().first(1));
  input.start();
  std::vector<SeenChunk> chunks;
  while (chunks.size() < 3500) testing::read_all(*stream, chunks, 3500);
  for (std::uint32_t n = 0; n < 3500; ++n) ASSERT_EQ(chunks[n].l1id, n);
}

TEST_F(RecordedFile, KeepsToItsRate) {
  FileInputSettings s = playing(record());
  s.rate_hz = 0.001;
  FileInput input(s);
  const auto stream = input.open(input.links());
  Page* page = nullptr;
  EXPECT_EQ(stream->poll(page), PollStatus::empty) << "not started";
  input.start();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(stream->poll(page), PollStatus::empty) << "the first block is due after a quarter of an hour";
  input.stop();
  std::vector<SeenChunk> chunks;
  while (testing::read_all(*stream, chunks) != PollStatus::end) {
  }
  EXPECT_LT(chunks.size(), 5000U) << "stopped near the beginning";
}

TEST_F(RecordedFile, SaysThatAllPagesAreOutUntilOneComesBack) {
  FileInputSettings s = playing(record());
  s.loop = true;
  FileInput input(s);
  const auto stream = input.open(input.links());
  input.start();
  std::vector<Page*> kept(1);
  while (stream->poll(kept.back()) == PollStatus::page) kept.push_back(nullptr);
  kept.pop_back();
  Page* page = nullptr;
  EXPECT_EQ(stream->poll(page), PollStatus::full);
  kept.front()->drop();
  EXPECT_EQ(stream->poll(kept.front()), PollStatus::page);
  for (Page* const one : kept) one->drop();
}

TEST_F(RecordedFile, ClockFollowsTheRecordingHoweverFastItIsRead) {
  FileInput input(playing(record()));
  const auto stream = input.open(input.links());
  input.start();
  Page* page = nullptr;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  while (stream->poll(page) == PollStatus::page) {
    if (first == 0) first = stream->clock_ns();
    EXPECT_GE(stream->clock_ns(), last);
    last = stream->clock_ns();
    page->drop();
  }
  EXPECT_NEAR(static_cast<double>(last - first), 1e7, 2e6) << "a thousand events at 100 kHz";
}

TEST_F(RecordedFile, AnEventIsThereWholeWithinHalfOfTheUsualTimeOut) {
  settings_.events = 20'000;
  settings_.links = generated_fids(8, 3, 7, false);
  RecordingSettings how;
  how.trigger_elink = 0x7c3;
  FileInputSettings s = playing(record(how));
  s.recording.trigger_elink = 0x7c3;
  FileInput input(s);
  const auto data = input.open(input.links());
  const auto list = input.open_trigger_list();
  input.start();
  std::vector<std::uint64_t> first(settings_.events, ~std::uint64_t{0});
  std::vector<std::uint64_t> last(settings_.events);
  for (DataStream* stream : {data.get(), list.get()}) {
    for (Page* page = nullptr; stream->poll(page) == PollStatus::page;) {
      for (const ChunkRun& run : page->runs) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          std::uint32_t l1id = 0;
          if (stream == list.get()) l1id = formats::TtcPacket::read(run.chunk(i))->l1id.value;
          if (stream == data.get()) std::memcpy(&l1id, run.chunk(i).data(), sizeof l1id);
          ASSERT_LT(l1id, first.size());
          first[l1id] = std::min(first[l1id], stream->clock_ns());
          last[l1id] = std::max(last[l1id], stream->clock_ns());
        }
      }
      page->drop();
    }
  }
  for (std::size_t event = 0; event < first.size(); ++event)
    ASSERT_LE(last[event], first[event] + 5'000'000) << event << ": its chunks and its packet in the list";
}

TEST_F(RecordedFile, ItsClockRunsWithTheDataNotWithTheTimeThatALowRateTakes) {
  FileInputSettings s = playing(record());
  s.rate_hz = 1000;
  FileInput input(s);
  const auto stream = input.open(input.links());
  input.start();
  std::vector<SeenChunk> chunks;
  while (chunks.empty()) testing::read_all(*stream, chunks, 1);
  const std::uint64_t first = stream->clock_ns();
  while (chunks.size() < 24 * 30) testing::read_all(*stream, chunks, 24 * 30);
  EXPECT_LT(stream->clock_ns() - first, 1'000'000U) << "some fifty events, of 10 us each";
}

TEST_F(RecordedFile, ClockDoesNotHangOnIds) {
  settings_.links = generated_fids(8, 3, 7, false);
  for (const std::uint32_t bits : {32U, 24U, 16U, 8U}) {
    std::filesystem::remove(directory_ / "recording.felix");
    settings_.l1id_bits = bits;
    settings_.events = 8000;
    settings_.faults.l1id = 0.003;
    FileInputSettings s = playing(record());
    s.recording.l1id.bits = bits;
    FileInput input(s);
    const auto stream = input.open(input.links());
    input.start();
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    for (Page* page = nullptr; stream->poll(page) == PollStatus::page; last = stream->clock_ns()) {
      if (first == 0) first = stream->clock_ns();
      page->drop();
    }
    EXPECT_NEAR(static_cast<double>(last - first), 80e6, 4e6) << "8000 events at 100 kHz, of " << bits << " bits";
    EXPECT_EQ(counter(input, "events"), 8000U);
  }
}

TEST_F(RecordedFile, ALoopCountsOnPastFlippedIds) {
  settings_.links = generated_fids(8, 3, 7, false);
  for (const std::uint32_t bits : {24U, 16U, 8U}) {
    std::filesystem::remove(directory_ / "recording.felix");
    settings_.l1id_bits = bits;
    settings_.faults.l1id = 0.003;
    FileInputSettings s = playing(record());
    s.loop = true;
    s.recording.l1id.bits = bits;
    FileInput input(s);
    const auto stream = input.open(input.links());
    input.start();
    std::vector<SeenChunk> chunks;
    while (chunks.size() < 50'000) testing::read_all(*stream, chunks, 50'000);
    // In each pass, all links continue from the same id; each chunk has the next one, except flipped ids.
    const formats::Provable provable(5, false, bits);
    std::vector<std::uint32_t> seen(8);
    std::map<std::uint32_t, std::map<std::uint32_t, std::size_t>> begins;  // the beginnings of each pass
    for (const SeenChunk& chunk : chunks) {
      const std::uint32_t n = seen[chunk.link]++;
      ++begins[n / 1000][(chunk.l1id - n % 1000) & provable.l1id_mask()];
    }
    std::size_t in_order = 0;
    for (const auto& [pass, of_pass] : begins) {
      std::size_t most = 0;
      for (const auto& [begin, count] : of_pass) most = std::max(most, count);
      in_order += most;
    }
    EXPECT_GT(in_order, 49'500U) << bits << " bits";
    EXPECT_LT(counter(input, "not_restamped"), 500U);
  }
}

TEST_F(RecordedFile, PlaysTheTriggerListItRecorded) {
  RecordingSettings how;
  how.trigger_elink = 0x7c3;
  FileInputSettings s = playing(record(how));
  s.recording.trigger_elink = 0x7c3;
  FileInput input(s);
  EXPECT_EQ(input.links().size(), 24U);
  const auto list = input.open_trigger_list();
  ASSERT_NE(list, nullptr);
  input.start();
  const auto packets = play_to_end(*list);
  ASSERT_EQ(packets.size(), 1000U);
  for (std::uint32_t n = 0; n < 1000; ++n) EXPECT_EQ(formats::TtcPacket::read(packets[n].bytes)->l1id.value, n);
}

TEST_F(RecordedFile, AStopEndsAllLinksWithTheSameEvent) {
  settings_.events = 20'000;
  for (const std::uint32_t bits : {32U, 16U}) {
    std::filesystem::remove(directory_ / "recording.felix");
    settings_.l1id_bits = bits;
    settings_.ecr_triggers = bits == 32 ? 3000 : 0;
    RecordingSettings how;
    how.trigger_elink = 0x7c3;
    const auto file = record(how);
    for (const bool loop : {false, true}) {
      for (const std::size_t enough : {1U, 5000U, 300'000U, 700'000U}) {
        FileInputSettings s = playing(file);
        s.loop = loop;
        s.recording.l1id.bits = bits;
        s.recording.trigger_elink = 0x7c3;
        FileInput input(s);
        const auto one = input.open(input.links().first(7));
        const auto other = input.open(input.links().subspan(7));
        const auto list = loop ? nullptr : input.open_trigger_list();
        input.start();
        std::vector<SeenChunk> first;
        std::vector<SeenChunk> second;
        std::vector<SeenChunk> triggers;
        testing::read_all(*one, first, enough);  // the other stream has not begun
        input.stop();
        const auto play_on = [](DataStream& stream, std::vector<SeenChunk>& chunks) {
          while (testing::read_all(stream, chunks) != PollStatus::end) std::this_thread::yield();
        };
        play_on(*one, first);
        play_on(*other, second);
        if (list) play_on(*list, triggers);
        std::vector<std::size_t> counts(24);
        for (const SeenChunk& chunk : first) ++counts[chunk.link];
        for (const SeenChunk& chunk : second) ++counts[7 + chunk.link];
        EXPECT_GT(counts[0], 0U);
        for (const std::size_t count : counts) {
          ASSERT_EQ(count, counts[0]) << bits << " bits, " << (loop ? "loop, " : "") << enough;
        }
        if (list) {
          EXPECT_EQ(triggers.size(), counts[0]);
        }
      }
    }
  }
}

TEST_F(RecordedFile, ThatIsDamagedSaysSoAndCounts) {
  const auto file = record();
  EXPECT_EQ(counter(FileInput(playing(file)), "damaged"), 0U);
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(100 * 1024);
    const std::vector<char> zeros(2048);
    stream.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  }
  EXPECT_GT(counter(FileInput(playing(file)), "damaged"), 0U);
}

TEST_F(RecordedFile, ThatWasCutIsUsedAsFarAsItIsWhole) {
  const auto file = record();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5000);
  FileInput input(playing(file));
  EXPECT_GT(counter(input, "damaged"), 0U);
  const auto stream = input.open(input.links());
  input.start();
  const auto chunks = play_to_end(*stream);
  EXPECT_LT(chunks.size(), 24'000U);
  EXPECT_GT(chunks.size(), 23'500U);
}

TEST_F(RecordedFile, ThatIsNoneIsRefusedWithTheReason) {
  EXPECT_EQ(refusal(directory_ / "nowhere"), "file.open");
  EXPECT_EQ(refusal(directory_), "file.not_regular");
  const auto file = directory_ / "other";
  std::ofstream(file).put('x');
  EXPECT_EQ(refusal(file), "formats.short_recording");
  std::filesystem::resize_file(file, 0);
  EXPECT_EQ(refusal(file), "formats.empty_recording");
  std::filesystem::resize_file(file, 1 << 20);
  EXPECT_EQ(refusal(file), "formats.zero_recording");
}

TEST_F(RecordedFile, RefusesLinksThatItDoesNotHave) {
  FileInput input(playing(record()));
  const Fid unknown = Fid::of(3, 7, 30, 0);
  EXPECT_THROW(input.open(std::span(&unknown, 1)), std::runtime_error);
  const auto stream = input.open(input.links().first(2));
  EXPECT_THROW(input.open(input.links().first(1)), std::runtime_error);
}

TEST_F(RecordedFile, HoldsTheLinksOfOneCard) {
  settings_.links = generated_fids(193, 0, 0, false);
  settings_.complete();
  InternalDataGenerator input(settings_);
  const auto summary = record_blocks(input, directory_ / "two_cards", {});
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, "readout.recording_links");
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(RecordedFile, IsNeverWrittenOver) {
  record();
  settings_.complete();
  InternalDataGenerator input(settings_);
  const auto again = record_blocks(input, directory_ / "recording.felix", {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, "file.exists");
}

}  // namespace
}  // namespace rodeo::input
