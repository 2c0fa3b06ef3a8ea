#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card_registers {
namespace {

struct Card {
  const RegisterMap* map;
  std::span<const BarSize> bars;
};

void PrintTo(const Card& card, std::ostream* out) { *out << card.map->card(); }

class EveryMap : public testing::TestWithParam<Card> {};

TEST_P(EveryMap, HasNoTwoRegistersInOnePlace) {
  std::set<std::pair<unsigned, std::uint32_t>> words;
  for (const Register& reg : GetParam().map->registers()) {
    for (std::uint32_t i = 0; i < reg.total(); ++i) {
      for (std::uint32_t byte = 0; byte < reg.width_bytes; byte += 4)
        EXPECT_TRUE(words.emplace(reg.bar, reg.at(i) + byte).second) << reg.name << " " << i;
    }
  }
}

TEST_P(EveryMap, LiesWithinItsBars) {
  for (const Register& reg : GetParam().map->registers()) {
    std::uint64_t size = 0;
    for (const BarSize& bar : GetParam().bars) {
      if (bar.bar == reg.bar) size = bar.bytes;
    }
    EXPECT_LE(reg.at(reg.total() - 1) + reg.width_bytes, size) << reg.name;
    EXPECT_EQ(reg.offset % reg.width_bytes, 0u) << reg.name;
  }
}

TEST_P(EveryMap, FindsEachByNameAndByPlace) {
  std::set<std::string_view> names;
  for (const Register& reg : GetParam().map->registers()) {
    EXPECT_TRUE(names.insert(reg.name).second) << reg.name;
    EXPECT_FALSE(reg.help.empty()) << reg.name;
    for (std::uint32_t i = 0; i < reg.total(); ++i) {
      const auto by_place = GetParam().map->at(reg.bar, reg.at(i));
      ASSERT_TRUE(by_place) << reg.name << " " << i;
      EXPECT_EQ(by_place->description->name, reg.name);
      EXPECT_EQ(by_place->index, i);
      const auto by_name = GetParam().map->find(std::string(reg.name) + "[" + std::to_string(i) + "]");
      ASSERT_TRUE(by_name) << reg.name << " " << i;
      EXPECT_EQ(by_name->offset, reg.at(i));
    }
    EXPECT_FALSE(GetParam().map->find(std::string(reg.name) + "[" + std::to_string(reg.total()) + "]")) << reg.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cards, EveryMap,
                         testing::Values(Card{&cru::kMap, cru::kBars}, Card{&crorc::kMap, crorc::kBars},
                                         Card{&felix::kMap, felix::kBars}),
                         [](const auto& card) {
                           return card.param.map->card() == "C-RORC" ? "Crorc" : std::string(card.param.map->card());
                         });

TEST(RegisterMap, LinksOfACruLieInTheirEndpointsBanks) {
  EXPECT_EQ(cru::reg("gbt_link_status").at(cru::gbt_index(0, 0)), 0x422000u);
  EXPECT_EQ(cru::reg("gbt_link_status").at(cru::gbt_index(0, 1)), 0x442000u);
  EXPECT_EQ(cru::reg("gbt_link_status").at(cru::gbt_index(0, 2)), 0x424000u);
  EXPECT_EQ(cru::reg("gbt_link_status").at(cru::gbt_index(1, 11)), 0x48c000u);
  EXPECT_EQ(cru::reg("datapath_link_ids").at(cru::datapath_index(1, 2)), 0x744004u);
}

TEST(RegisterMap, FieldsAreCutOutAndPutIn) {
  EXPECT_EQ(cru::kCruId.of(0x0abc0001), 0xabcu);
  EXPECT_EQ(cru::kCruId.in(0xffffffff, 0x123), 0xf123ffffu);
}

TEST(RegisterMap, KnowsNoOtherNamesAndPlaces) {
  EXPECT_FALSE(cru::kMap.find("dma_contro"));
  EXPECT_FALSE(cru::kMap.find("dma_control[x]"));
  EXPECT_FALSE(cru::kMap.find("dma_control[0"));
  EXPECT_FALSE(cru::kMap.at(0, 0x201));
  EXPECT_FALSE(cru::kMap.at(1, 0x200));
}

}  // namespace
}  // namespace rodeo::card_registers
