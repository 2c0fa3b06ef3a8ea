// Counts of the chunks in an E-link's blocks: each chunk counts once, by the fate of the block in which it begins.
#include "emulator/chunk_books.h"

#include <gtest/gtest.h>

namespace rodeo::emulator {
namespace {

TEST(OpenBlockBooks, AChunkHasTheFateOfTheBlockThatItBeginsIn) {
  ChunkBooks sums;
  OpenBlockBooks books;
  const auto of = [&](BlockFate fate) { return sums.chunks[static_cast<std::size_t>(fate)]; };
  books.begins(3);
  books.ends(BlockFate::sent, true, sums);  // the third chunk continues in the next block
  books.ends(BlockFate::lost, true, sums);  // the block has only the middle of the third chunk, which is cut short
  books.ends(BlockFate::corrupted, true, sums);
  books.begins(2);
  books.ends(BlockFate::lost, true, sums);  // the end of the third chunk, and two more; the second of these continues
  EXPECT_EQ(of(BlockFate::sent), 3U);
  EXPECT_EQ(of(BlockFate::lost), 2U);
  EXPECT_EQ(of(BlockFate::corrupted), 0U);
  EXPECT_EQ(sums.cut_short, 1U) << "once, without the one that was never sent";
  books.begins(1);
  books.ends(BlockFate::dropped, false, sums);
  books.begins(1);
  books.ends(BlockFate::sent, true, sums);
  books.ends(BlockFate::cut_off, false, sums);
  books.ends(BlockFate::cut_off, false, sums);  // an empty block
  EXPECT_EQ(of(BlockFate::dropped), 1U);
  EXPECT_EQ(of(BlockFate::sent), 4U);
  EXPECT_EQ(of(BlockFate::cut_off), 0U);
  EXPECT_EQ(sums.cut_short, 2U);
}

}  // namespace
}  // namespace rodeo::emulator
