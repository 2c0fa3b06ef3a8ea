// ROBs in pieces with any cuts: the walk finds the same ROBs as the plain decoder in one piece.
#include "formats/rob_walk.h"

#include <gtest/gtest.h>

#include "formats/random_event.h"
#include "formats/rob.h"

namespace {

using namespace rodeo::formats;
using rodeo::test::RandomEvents;
using Bytes = std::vector<std::byte>;

std::vector<std::span<const std::byte>> cut(const Bytes& bytes, RandomEvents& random, std::uint32_t most) {
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t at = 0; at < bytes.size(); at += pieces.back().size())
    pieces.push_back(std::span(bytes).subspan(at, std::min<std::size_t>(1 + random.below(most), bytes.size() - at)));
  return pieces;
}

TEST(RobWalk, FindsWhatThePlainDecoderFindsInAnyPieces) {
  RandomEvents random(1);
  for (int round = 0; round < 300; ++round) {
    Bytes bytes = random.robs();
    if (round % 3 == 0 && !bytes.empty()) bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] ^= std::byte{0x11};
    const auto pieces = cut(bytes, random, round % 2 == 0 ? 7 : 3000);
    const Pieces all(pieces);
    ASSERT_EQ(all.bytes(), bytes.size());
    std::vector<FoundRob> found;
    const bool whole = walk_robs(all, found).has_value();
    std::size_t i = 0;
    const auto twin = for_each_rob(WordView(bytes), [&](const RobView& rob, std::size_t at) {
      ASSERT_LT(i, found.size());
      EXPECT_EQ(found[i].source_id, rob.source_id);
      EXPECT_EQ(found[i].offset, at);
      EXPECT_EQ(found[i].bytes, rob.words.size() * kWordBytes);
      EXPECT_EQ(found[i].status, rob.status.empty() ? 0 : rob.status[0]);
      const auto rod = rob.rod();
      EXPECT_EQ(found[i].sound, rod && rod->header.source_id == rob.source_id);
      if (found[i].sound) {
        EXPECT_EQ(found[i].rod, rod->header);
      }
      std::vector<std::span<const std::byte>> parts;
      all.append(found[i].offset, found[i].bytes, parts);
      Bytes joined;
      for (const auto part : parts) joined.insert(joined.end(), part.begin(), part.end());
      EXPECT_TRUE(std::ranges::equal(joined, rob.words.bytes()));
      ++i;
    });
    EXPECT_EQ(whole, twin.has_value());
    EXPECT_EQ(i, found.size());
  }
}

TEST(RobWalk, EachPrefixIsReadToTheLastWholeRob) {
  RandomEvents random(2);
  const Bytes one = random.rob();
  const Bytes two = random.rob();
  Bytes bytes = one;
  bytes.insert(bytes.end(), two.begin(), two.end());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const Bytes front(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    const std::span<const std::byte> piece(front);
    std::vector<FoundRob> found;
    EXPECT_EQ(walk_robs(Pieces({&piece, 1}), found).has_value(), n == 0 || n == one.size()) << n;
    EXPECT_EQ(found.size(), n < one.size() ? 0U : 1U) << n;
  }
}

}  // namespace
