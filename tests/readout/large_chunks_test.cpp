// Chunks that come in parts, in both builders: complete for any size and any cuts, or flagged and counted with their bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "readout/full_fixture.h"
#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

constexpr std::size_t kPart = 65536;
constexpr std::size_t kLimit = 1 << 20;  // the default limit of a stream

/// The runs of one chunk in parts.
std::vector<ScriptedRun> in_parts(const ScriptedRun& whole, std::size_t part = kPart) {
  const std::vector<std::byte>& bytes = whole.chunks.at(0);
  std::vector<ScriptedRun> runs;
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t size = std::min(part, bytes.size() - at);
    runs.push_back({.fid = whole.fid,
                    .chunks = {{from, from + static_cast<std::ptrdiff_t>(size)}},
                    .statuses = {},
                    .more_follows = at + size < bytes.size()});
  }
  return runs;
}

/// Sizes near those of parts and pages: equal, one byte less and one byte more.
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all;
  for (const std::size_t limit : {std::size_t{1024}, kPart, 2 * kPart, kLimit}) {
    for (const std::size_t size : {limit - 1, limit, limit + 1}) {
      if (size <= kLimit) all.push_back(size);
    }
  }
  return all;
}

readout::GbtSettings large(std::uint32_t workers) {
  return {.workers = workers, .window = 256, .chunk_bytes = kLimit, .buffers = 64};
}

std::uint64_t lost_bytes(const readout::ChunkBytes& bytes, std::string_view reason) {
  return base::counter_value(bytes.lost, reason, ~std::uint64_t{0});
}

class LargeChunksInGbtMode : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(LargeChunksInGbtMode, AreWholeAroundTheSizesOfTheirParts) {
  GbtFixture fixture(3, large(GetParam()));
  fixture.start();
  const std::vector<std::size_t> of = sizes();
  std::uint64_t bytes = 0;
  for (std::uint32_t l1 = 0; l1 < of.size(); ++l1) {
    for (std::size_t link = 0; link < 3; ++link) {
      bytes += of[l1];
      for (const ScriptedRun& part : in_parts(fixture.run(link, L1Id{l1}, 1, of[l1]))) fixture.input.push({part});
    }
  }
  fixture.finish();
  fixture.check_invariants();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), of.size());
  for (const SeenFragment& fragment : seen) {
    EXPECT_EQ(fragment.status, 0U) << fragment.l1id.value;
    for (std::size_t link = 0; link < 3; ++link)
      EXPECT_EQ(fragment.data.at(fixture.link_id(link)), fixture.chunk(link, fragment.l1id, of[fragment.l1id.value]));
  }
  EXPECT_EQ(fixture.builder->chunk_bytes().built, bytes);
}

TEST_P(LargeChunksInGbtMode, AreWholeThoughTheirEventIsKnownOnlyWhenTheNextHasBegun) {
  GbtFixture fixture(2, large(GetParam()));
  fixture.start();
  constexpr std::size_t kSize = 10'000;
  std::vector<ScriptedRun> late;
  for (std::uint32_t l1 = 0; l1 < 20; ++l1) {
    const auto first = in_parts(fixture.run(0, L1Id{l1}, 1, kSize));
    fixture.input.push({first[0]});
    for (const ScriptedRun& run : late) fixture.input.push({run});
    for (std::size_t part = 1; part < first.size(); ++part) fixture.input.push({first[part]});
    late = in_parts(fixture.run(1, L1Id{l1}, 1, kSize));
  }
  for (const ScriptedRun& run : late) fixture.input.push({run});
  fixture.finish();
  fixture.check_invariants();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 20U);
  for (const SeenFragment& fragment : seen) EXPECT_EQ(fragment.status, 0U) << fragment.l1id.value;
}

TEST_P(LargeChunksInGbtMode, BeyondTheLimitAreFlaggedAndTheirBytesCounted) {
  GbtFixture fixture(1, {.window = 256, .chunk_bytes = 2 * kLimit, .buffers = 64});
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 4; ++l1) {
    for (const ScriptedRun& part : in_parts(fixture.run(0, L1Id{l1}, 1, l1 == 2 ? kLimit + 1000 : 1000)))
      fixture.input.push({part});
  }
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 4U);
  for (const SeenFragment& fragment : seen) {
    const bool cut = fragment.l1id.value == 2;
    EXPECT_EQ(fragment.status, cut ? fragment_status::kDataCorruption : 0U);
    EXPECT_EQ(fragment.data.at(fixture.link_id(0)).size(), cut ? kLimit : 1000U);
    EXPECT_EQ(fragment.headers.at(fixture.link_id(0)).felix_status, cut ? chunk_status::kSoftwareTruncated : 0);
  }
  const readout::ChunkBytes of_chunks = fixture.builder->chunk_bytes();
  EXPECT_EQ(of_chunks.received, 3 * 1000U + kLimit + 1000U);
  EXPECT_EQ(lost_bytes(of_chunks, "cut"), 1000U);
  fixture.check_invariants();
}

TEST_P(LargeChunksInGbtMode, ASliceHasRoomForChunksOfItsSizeAndCutsOneByteMore) {
  for (const std::size_t size : {kLimit - 1, kLimit, kLimit + 1}) {
    // Records are padded to words, so a chunk that ends inside the last word fits.
    GbtFixture fixture(1, {.window = 256, .chunk_bytes = kLimit - 4, .buffers = 64, .max_extensions = 0});
    fixture.start();
    for (const ScriptedRun& part : in_parts(fixture.run(0, L1Id{0}, 1, size - 4))) fixture.input.push({part});
    fixture.finish();
    fixture.check_invariants();
    const auto seen = fixture.collector.fragments();
    ASSERT_EQ(seen.size(), 1U);
    const bool cut = size > kLimit;
    EXPECT_EQ(seen[0].status, cut ? fragment_status::kOverflow : 0U) << size;
    EXPECT_EQ(seen[0].headers.begin()->second.rodeo_status, cut ? chunk_flag::kTruncated : 0) << size;
    const std::size_t kept = seen[0].data.begin()->second.size();
    EXPECT_EQ(lost_bytes(fixture.builder->chunk_bytes(), "cut"), size - 4 - kept);
    EXPECT_EQ(kept < size - 4, cut);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, LargeChunksInGbtMode, ::testing::Values(1, 2));

TEST_P(LargeChunksInGbtMode, InTheMiddleOfAChunkAStopThatGivesUpCountsThePartsThatCame) {
  GbtFixture fixture(2, large(GetParam()));
  fixture.start();
  const auto whole = in_parts(fixture.run(0, L1Id{0}, 1, 3 * kPart));
  for (const std::size_t part : {0, 1}) fixture.input.push({whole[part]});
  fixture.input.push({in_parts(fixture.run(1, L1Id{0}, 1, 100))[0]});
  while (fixture.builder->chunk_bytes().received < 100) std::this_thread::yield();
  fixture.builder->give_up();  // the input goes on, but brings no data
  fixture.builder->join();
  fixture.running = false;
  const readout::ChunkBytes bytes = fixture.builder->chunk_bytes();
  EXPECT_EQ(bytes.received, 2 * kPart + 100);
  std::uint64_t known = bytes.built;
  for (const NamedCounter& lost : bytes.lost) known += lost.value;
  EXPECT_EQ(known, bytes.received);
  EXPECT_GE(lost_bytes(bytes, "stop_limit"), 2 * kPart);
  fixture.input.stop();
}

TEST(LargeChunksInFullMode, AreWholeAroundTheSizesOfTheirParts) {
  FullFixture fixture(4, 2);
  fixture.start();
  const std::vector<std::size_t> of = sizes();
  std::uint64_t bytes = 0;
  for (std::uint32_t l1 = 0; l1 < of.size(); ++l1) {
    for (std::uint32_t group = 0; group < 2; ++group) {
      bytes += of[l1];
      for (const ScriptedRun& part : in_parts(fixture.event(group, L1Id{l1}, of[l1]))) fixture.input.push({part});
    }
  }
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 2 * of.size());
  EXPECT_TRUE(fixture.empty.empty());
  for (const SeenFragment& seen : fixture.collector.fragments()) {
    EXPECT_EQ(seen.status, 0U) << seen.l1id.value;
    EXPECT_EQ(seen.data.begin()->second.size(), of[seen.l1id.value]);
  }
  EXPECT_EQ(fixture.builder->chunk_bytes().built, bytes);
}

// The first chunk of each link waits for the link's next chunk. The limit of memory is 64 MiB.
TEST(LargeChunksInFullMode, AreWholeOnMoreLinksThanTheMemoryOfAFewHolds) {
  constexpr std::uint32_t kLinks = 72;
  FullFixture fixture(kLinks, kLinks);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 4; ++l1) {
    for (std::uint32_t group = 0; group < kLinks; ++group) {
      for (const ScriptedRun& part : in_parts(fixture.event(group, L1Id{l1}, l1 == 0 ? kLimit : 2 * kPart), 4 * kPart))
        fixture.input.push({part});
    }
  }
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 4 * kLinks);
  EXPECT_TRUE(fixture.empty.empty());
}

TEST(LargeChunksInFullMode, StayWholeWhileAConsumerKeepsThem) {
  FullFixture fixture(1, 1);
  fixture.collector.keep_first = true;
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 300; ++l1) {
    for (const ScriptedRun& part : in_parts(fixture.event(0, L1Id{l1}, 10'000))) fixture.input.push({part});
  }
  fixture.finish();
  fixture.sort_out();
  EXPECT_EQ(fixture.whole, 300U);
}

TEST(LargeChunksInFullMode, BeyondTheLimitAreFlaggedAndTheirBytesCounted) {
  FullFixture fixture(1, 1);
  fixture.start();
  for (std::uint32_t l1 = 0; l1 < 4; ++l1) {
    for (const ScriptedRun& part : in_parts(fixture.event(0, L1Id{l1}, l1 == 2 ? kLimit + 1000 : 1000)))
      fixture.input.push({part});
  }
  fixture.finish();
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), 4U);
  for (const SeenFragment& fragment : seen) EXPECT_EQ(fragment.status != 0, fragment.l1id.value == 2);
  EXPECT_EQ(lost_bytes(fixture.builder->chunk_bytes(), "cut"), 1000U);
}

}  // namespace
}  // namespace rodeo::test
