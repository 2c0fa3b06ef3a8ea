// The distribution of links to readers.
#include "router/reader_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace rodeo::router {
namespace {

std::vector<Fid> card(std::uint32_t connector, std::uint32_t links, std::uint32_t detector = 0) {
  std::vector<Fid> out;
  for (std::uint32_t i = 0; i < links; ++i) out.push_back(Fid::of(detector, connector, i / 8, i % 8));
  return out;
}

std::vector<Fid> operator+(std::vector<Fid> one, const std::vector<Fid>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

/// The links of this input differ only in their FIDs.
Result<ReaderLinks> cut(std::span<const Fid> links, std::uint32_t readers) {
  return cut_into_readers(links, std::array<std::size_t, 1>{0}, readers);
}

std::vector<std::size_t> sizes(const ReaderLinks& readers) {
  std::vector<std::size_t> out;
  for (const auto& links : readers) out.push_back(links.size());
  return out;
}

using Sizes = std::vector<std::size_t>;

TEST(ReaderCut, OneCardHasOneReader) {
  const auto links = card(3, 192);
  EXPECT_EQ(cut(links, 0), ReaderLinks{links});
}

TEST(ReaderCut, EachCardHasAReaderInTheInputsOrder) {
  const auto links = card(7, 5) + card(2, 3);
  EXPECT_EQ(cut(links, 0), (ReaderLinks{card(7, 5), card(2, 3)}));
  EXPECT_EQ(cut(links, 2), (ReaderLinks{card(7, 5), card(2, 3)}));
}

TEST(ReaderCut, DetectorsWithTheSameConnectorAreTwoCards) {
  EXPECT_EQ(sizes(*cut(card(0, 4, 1) + card(0, 4, 2), 0)), (Sizes{4, 4}));
}

TEST(ReaderCut, LinksOfACardThatStandApartAreOneReaders) {
  auto links = card(0, 2) + card(1, 2) + card(0, 4);
  links.erase(links.begin() + 4, links.begin() + 6);  // card 0: links 0 1, card 1: links 0 1, card 0: links 2 3
  EXPECT_EQ(cut(links, 0), (ReaderLinks{card(0, 4), card(1, 2)}));
}

TEST(ReaderCut, MoreReadersThanCardsShareTheLinksOfACardEvenly) {
  EXPECT_EQ(sizes(*cut(card(0, 192), 2)), (Sizes{96, 96}));
  EXPECT_EQ(sizes(*cut(card(0, 10), 3)), (Sizes{3, 3, 4}));
  EXPECT_EQ(sizes(*cut(card(0, 100) + card(1, 10), 3)), (Sizes{50, 50, 10}));
}

TEST(ReaderCut, ReadersThatCannotBeAreRefused) {
  for (const auto& [links, readers] : {std::pair{card(0, 4) + card(1, 4), 1U}, {card(0, 4), 5U}}) {
    const auto refused = cut(links, readers);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "router.readers");
  }
  EXPECT_EQ(cut({}, 0).error().code, "router.no_links");
}

TEST(ReaderCut, EachDmaChannelOfACardHasAReader) {
  const auto links = card(0, 20) + card(1, 12);
  const std::array<std::size_t, 3> groups{0, 7, 20};
  EXPECT_EQ(sizes(*cut_into_readers(links, groups, 0)), (Sizes{7, 13, 12}));
  EXPECT_EQ(sizes(*cut_into_readers(links, groups, 4)), (Sizes{7, 6, 7, 12}));
  EXPECT_EQ(cut_into_readers(links, groups, 2).error().code, "router.readers");
}

TEST(ReaderCut, EveryLinkHasOneReaderAndNoReaderTwoChannels) {
  std::minstd_rand engine(1);
  const auto random = [&](std::size_t below) { return static_cast<std::uint32_t>(engine() % below); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Fid> links;
    std::vector<std::size_t> groups;
    std::vector<std::size_t> group_of;
    const std::uint32_t cards = 1 + random(6);
    for (std::uint32_t i = 0; i < cards; ++i) {
      const auto of = card(i, 1 + random(100));
      const std::size_t second = random(of.size());  // 0: the first card has one channel
      for (std::size_t link = 0; link < of.size(); ++link) {
        if (link == 0 || link == second) groups.push_back(links.size() + link);
        group_of.push_back(groups.size());
      }
      links = links + of;
    }
    const auto readers = static_cast<std::uint32_t>(groups.size() + random(links.size() - groups.size() + 1));
    const auto made = cut_into_readers(links, groups, readers);
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ(made->size(), readers);
    std::vector<Fid> found;
    for (const auto& one : *made) {
      ASSERT_FALSE(one.empty());
      EXPECT_EQ(group_of[found.size()], group_of[found.size() + one.size() - 1]);
      found.insert(found.end(), one.begin(), one.end());
    }
    EXPECT_EQ(found, links);
  }
}

TEST(TriggerListFid, IsAVirtualLinkOfTheFirstCard) {
  const Fid list = trigger_list_fid(card(5, 3, 9));
  EXPECT_TRUE(list.is_virtual());
  EXPECT_EQ(list.version(), Fid::kVersion);
  EXPECT_EQ(list.detector(), 9U);
  EXPECT_EQ(list.connector(), 5U);
  EXPECT_EQ(list.link() + list.elink() + list.stream() + list.protocol(), 0U);
  EXPECT_EQ(trigger_list_fid(card(0, 1)).value, 0x1000000800000000U);
}

}  // namespace
}  // namespace rodeo::router
