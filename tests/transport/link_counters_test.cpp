// The increments of a link's counters by a run.
#include "transport/link_counters.h"

#include <gtest/gtest.h>

namespace rodeo::transport {
namespace {

TEST(LinkTally, OfAUniformRunIsItsCountTimesItsSize) {
  const ChunkRun run{.size = 40, .stride = 44, .count = 23};
  EXPECT_EQ(tally_of(run), (LinkTally{23, 920, 0}));
}

TEST(LinkTally, AStatusOfAUniformRunIsThatOfEveryChunk) {
  const ChunkRun run{.size = 40, .stride = 40, .count = 3, .status = chunk_status::kFirmwareCrc};
  EXPECT_EQ(tally_of(run), (LinkTally{3, 120, 3}));
}

TEST(LinkTally, OtherChunksAreLookedAtOneByOne) {
  const std::array<ChunkEntry, 3> entries{{{.offset = 0, .size = 8},
                                           {.offset = 8, .size = 100, .status = chunk_status::kFirmwareTruncated},
                                           {.offset = 108, .size = 1, .status = chunk_status::kBusy}}};
  const ChunkRun run{.entries = entries.data(), .size = 1, .count = 3};
  EXPECT_EQ(tally_of(run), (LinkTally{3, 109, 2}));
}

TEST(LinkTally, AChunkInPartsCountsWithItsLast) {
  const ChunkEntry part{.size = 70, .status = chunk_status::kTimeout};
  EXPECT_EQ(tally_of({.entries = &part, .count = 1, .more_follows = true}), (LinkTally{0, 70, 0}));
  EXPECT_EQ(tally_of({.size = 50, .count = 1, .status = chunk_status::kTimeout, .more_follows = true}),
            (LinkTally{0, 50, 0}));
  EXPECT_EQ(tally_of({.size = 30, .count = 1, .status = chunk_status::kTimeout}), (LinkTally{1, 30, 1}));
}

TEST(LinkCounters, AddUpRuns) {
  LinkCounters counters;
  EXPECT_EQ(counters.tally(), LinkTally{});
  counters.count({.size = 40, .count = 5});
  EXPECT_EQ(counters.tally(), (LinkTally{5, 200, 0}));
  counters.count({.size = 7, .count = 1, .status = chunk_status::kBusy});
  counters.count({.size = 9, .count = 1, .more_follows = true});
  const ChunkEntry entry{.size = 8};
  counters.count({.entries = &entry, .count = 1});
  EXPECT_EQ(counters.tally(), (LinkTally{7, 224, 1}));
}

TEST(LinkCounters, NumberWhatRunsCarryAndCountWhatCame) {
  LinkCounters counters;
  EXPECT_EQ(counters.number(), 0u);
  counters.count({.size = 40, .count = 5});
  EXPECT_EQ(counters.number(), 5u);
  counters.skip(3);
  counters.count({.size = 40, .count = 1});
  EXPECT_EQ(counters.number(), 9u);
  EXPECT_EQ(counters.tally(), (LinkTally{6, 240, 0}));
  counters.skip(0xFFFFFFFF);
  EXPECT_EQ(counters.number(), 8u);
  EXPECT_EQ(counters.tally(), (LinkTally{6, 240, 0}));
}

}  // namespace
}  // namespace rodeo::transport
