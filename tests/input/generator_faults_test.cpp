// Injected faults: each occurs as often as it is counted, and all sums are right.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "input/generator.h"
#include "input/stream_reader.h"

namespace rodeo::input {
namespace {

using testing::read_all;
using testing::SeenChunk;

constexpr std::uint64_t kStart = 5'000'000'000;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kEvents = 4000;
constexpr std::size_t kLinks = 24;

struct FaultyRun {
  explicit FaultyRun(FaultSettings faults, bool crc = false) {
    settings.links = generated_fids(kLinks, 0, 0, false);
    settings.seed = 99;
    settings.events = kEvents;
    settings.faults = faults;
    settings.crc = crc;
    settings.complete();
    Generator generator(settings);
    std::vector<LinkIndex> all(kLinks);
    std::iota(all.begin(), all.end(), LinkIndex{0});
    PagedStream& stream = generator.add_stream(all);
    generator.start(kStart);
    std::uint64_t now = kStart;
    for (; !generator.exhausted(); now += kMs) {
      while (generator.advance(now) <= now) read_all(stream, chunks);
      read_all(stream, chunks);
    }
    while (!generator.finish(now)) read_all(stream, chunks);
    read_all(stream, chunks);
    for (std::size_t i = 0; i < counted.size(); ++i)
      counted[i] = generator.counters().read(static_cast<GeneratorCounter>(i));
    sent = generator.chunks_sent();
  }

  std::uint64_t count(GeneratorCounter counter) const { return counted[static_cast<std::size_t>(counter)]; }
  bool proves(const SeenChunk& chunk) const {
    return formats::Provable(settings.seed, settings.crc)
        .matches(chunk.bytes, settings.links[chunk.link].default_link_id(), L1Id{chunk.l1id});
  }
  std::size_t unproven() const {
    return static_cast<std::size_t>(std::count_if(chunks.begin(), chunks.end(), [&](const auto& c) { return !proves(c); }));
  }
  std::map<std::pair<LinkIndex, std::uint32_t>, int> copies() const {
    std::map<std::pair<LinkIndex, std::uint32_t>, int> seen;
    for (const SeenChunk& chunk : chunks) ++seen[{chunk.link, chunk.l1id}];
    return seen;
  }

  GeneratorSettings settings;
  std::vector<SeenChunk> chunks;
  std::array<std::uint64_t, static_cast<std::size_t>(GeneratorCounter::count)> counted{};
  std::uint64_t sent = 0;
};

constexpr double kRate = 0.01;
constexpr std::uint64_t kAll = kEvents * kLinks;

void expect_about(std::uint64_t counted) { EXPECT_NEAR(static_cast<double>(counted), kRate * kAll, 0.15 * kRate * kAll); }

TEST(GeneratorFaults, MissingChunksAreNotSent) {
  const FaultyRun run({.missing = kRate});
  expect_about(run.count(GeneratorCounter::missing));
  EXPECT_EQ(run.sent, kAll - run.count(GeneratorCounter::missing));
  EXPECT_EQ(run.unproven(), 0U);
}

TEST(GeneratorFaults, DuplicatesAreSentTwice) {
  const FaultyRun run({.duplicate = kRate});
  expect_about(run.count(GeneratorCounter::duplicate));
  EXPECT_EQ(run.sent, kAll + run.count(GeneratorCounter::duplicate));
  std::uint64_t twice = 0;
  for (const auto& [chunk, n] : run.copies()) twice += n == 2;
  EXPECT_EQ(twice, run.count(GeneratorCounter::duplicate));
}

TEST(GeneratorFaults, LateChunksComeAfterThoseOfMuchLaterTriggers) {
  const FaultyRun run({.late = kRate, .late_by = std::chrono::milliseconds{10}});
  expect_about(run.count(GeneratorCounter::late));
  EXPECT_EQ(run.sent, kAll);
  std::uint64_t late = 0;
  std::uint32_t newest = 0;
  for (const SeenChunk& chunk : run.chunks) {
    late += chunk.l1id + 900 < newest;  // 10 ms are 1000 triggers
    newest = std::max(newest, chunk.l1id);
  }
  EXPECT_GT(late, run.count(GeneratorCounter::late) / 2) << "the late chunks of the last 10 ms have no later chunks";
  EXPECT_LE(late, run.count(GeneratorCounter::late));
}

TEST(GeneratorFaults, CorruptChunksDoNotProve) {
  for (const bool crc : {false, true}) {
    const FaultyRun run({.corrupt = kRate}, crc);
    expect_about(run.count(GeneratorCounter::corrupt));
    EXPECT_EQ(run.unproven(), run.count(GeneratorCounter::corrupt));
    EXPECT_EQ(run.copies().size(), kAll) << "their L1 ids are right";
  }
}

TEST(GeneratorFaults, AFlippedBitMakesAnotherL1Id) {
  const FaultyRun run({.l1id = kRate});
  expect_about(run.count(GeneratorCounter::l1id));
  EXPECT_EQ(run.unproven(), run.count(GeneratorCounter::l1id));
}

TEST(GeneratorFaults, TruncatedChunksSaySo) {
  const FaultyRun run({.truncated = kRate});
  std::uint64_t cut = 0;
  for (const SeenChunk& chunk : run.chunks) {
    cut += chunk.bytes.size() < 40;
    EXPECT_EQ(chunk.bytes.size() < 40, (chunk.status & chunk_status::kFirmwareTruncated) != 0);
  }
  expect_about(cut);
  EXPECT_EQ(cut, run.count(GeneratorCounter::truncated));
  EXPECT_EQ(run.unproven(), cut) << "the rest of a chunk is missing";
  EXPECT_EQ(run.copies().size(), kAll);
}

TEST(GeneratorFaults, AJumpIsAChunkOfAnotherTrigger) {
  const FaultyRun run({.jump = kRate, .jump_by = 100'000});
  std::uint64_t jumped = 0;
  for (const SeenChunk& chunk : run.chunks) jumped += chunk.l1id >= 100'000;
  expect_about(jumped);
  EXPECT_EQ(jumped, run.count(GeneratorCounter::jump));
  EXPECT_EQ(run.unproven(), 0U);
}

TEST(GeneratorFaults, ALinkCanJumpForGood) {
  const FaultyRun run({.jump_by = 100'000, .jump_link = 5, .jump_from = 1000});
  EXPECT_EQ(run.count(GeneratorCounter::jump), kEvents - 1000);
  for (const SeenChunk& chunk : run.chunks) {
    if (chunk.l1id >= 100'000) {
      EXPECT_EQ(chunk.link, 5);
      EXPECT_GE(chunk.l1id, 101'000U);
    }
  }
}

TEST(GeneratorFaults, OutOfSequenceChunksFollowTheirSuccessor) {
  const FaultyRun run({.out_of_sequence = kRate});
  std::vector<std::int64_t> last(kLinks, -1);
  std::uint64_t behind = 0;
  for (const SeenChunk& chunk : run.chunks) {
    behind += chunk.l1id < last[chunk.link];
    last[chunk.link] = chunk.l1id;
  }
  expect_about(behind);
  EXPECT_EQ(behind, run.count(GeneratorCounter::out_of_sequence));
  EXPECT_EQ(run.copies().size(), kAll);
  EXPECT_EQ(run.unproven(), 0U);
}

TEST(GeneratorFaults, AWrongBcidIsOneTooLargeUnderAGoodCrc) {
  const FaultyRun run({.bcid = kRate}, true);
  std::uint64_t wrong = 0;
  formats::Provable provable(99, true);
  for (const SeenChunk& chunk : run.chunks) {
    const std::uint16_t right = provable.trigger(L1Id{chunk.l1id}).bcid;
    if (chunk.bcid == right) continue;
    ++wrong;
    EXPECT_EQ(chunk.bcid, (right + 1) % 3564);
    std::vector<std::byte> resealed = chunk.bytes;
    provable.seal(resealed);
    EXPECT_EQ(resealed, chunk.bytes);
  }
  expect_about(wrong);
  EXPECT_EQ(wrong, run.count(GeneratorCounter::bcid));
}

TEST(GeneratorFaults, ASilentLinkComesBack) {
  const FaultyRun run({.silent_link = 3, .silent_from = 500, .silent_for = 1000});
  EXPECT_EQ(run.count(GeneratorCounter::silent), 1000U);
  EXPECT_EQ(run.sent, kAll - 1000);
  for (const SeenChunk& chunk : run.chunks) EXPECT_FALSE(chunk.link == 3 && chunk.l1id >= 500 && chunk.l1id < 1500);
}

TEST(GeneratorFaults, ALaggingLinkSendsOldEventsLongAfterTheOthers) {
  FaultSettings faults;
  faults.lag_link = 7;
  faults.lag_by = 500;
  const FaultyRun run(faults);
  EXPECT_EQ(run.sent, kAll) << "nothing is lost";
  std::uint32_t others = 0;
  for (const SeenChunk& chunk : run.chunks) {
    if (chunk.link != 7) others = std::max(others, chunk.l1id);
    if (chunk.link == 7 && chunk.l1id < kEvents - 500) {
      EXPECT_GE(others, chunk.l1id + 400) << chunk.l1id;
    }
  }
}

TEST(GeneratorFaults, AllTogetherAddUp) {
  FaultSettings all{.missing = kRate,
                    .duplicate = kRate,
                    .late = kRate,
                    .corrupt = kRate,
                    .l1id = kRate,
                    .truncated = kRate,
                    .jump = kRate,
                    .out_of_sequence = kRate,
                    .bcid = kRate};
  all.silent_link = 2;
  all.silent_from = 100;
  all.silent_for = 700;
  for (const bool crc : {false, true}) {
    const FaultyRun run(all, crc);
    EXPECT_EQ(run.sent, kAll + run.count(GeneratorCounter::duplicate) - run.count(GeneratorCounter::missing) -
                            run.count(GeneratorCounter::silent));
    EXPECT_EQ(run.sent, run.chunks.size());
    for (std::size_t i = 0; i < 9; ++i) EXPECT_GT(run.counted[i], 0U) << kGeneratorCounters[i].name;
    EXPECT_EQ(run.unproven(), run.count(GeneratorCounter::corrupt) + run.count(GeneratorCounter::l1id) +
                                  run.count(GeneratorCounter::bcid) + run.count(GeneratorCounter::truncated));
  }
}

}  // namespace
}  // namespace rodeo::input
