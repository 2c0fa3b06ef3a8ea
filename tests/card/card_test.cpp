#include "card/card.h"
#include "card/pci/lock.h"

#include <gtest/gtest.h>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "formats/temporary_directory.h"
#include "scripted_function.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
using doubles::ScriptedFunction;

TEST(Card, ReadsAndWritesDeclaredRegisters) {
  auto scripted = std::make_unique<ScriptedFunction>(cru::kPciId, cru::kBars);
  auto& words = scripted->words;
  auto card = Card::adopt(std::move(scripted), {});
  ASSERT_TRUE(card) << card.error().message();
  EXPECT_EQ((*card)->type(), CardType::cru);
  ASSERT_TRUE((*card)->write(cru::reg("superpages_done"), 7, 15));
  EXPECT_EQ((words[{0, 0x83c}]), 7u);
  EXPECT_EQ((*card)->read(cru::reg("superpages_done"), 15).value(), 7u);
  EXPECT_EQ((*card)->read(cru::reg("superpages_done"), 16).error().code, "card.bad_access");
}

TEST(Card, ChangesOneFieldAndLeavesTheOthers) {
  auto scripted = std::make_unique<ScriptedFunction>(cru::kPciId, cru::kBars);
  auto& words = scripted->words;
  words[{2, 0x18}] = 0xf000ffff;
  auto card = Card::adopt(std::move(scripted), {});
  ASSERT_TRUE(card);
  EXPECT_EQ((*card)->modify(cru::reg("user_control"), cru::kCruId, 0x123).value(), 0xf123ffffu);
  EXPECT_EQ((words[{2, 0x18}]), 0xf123ffffu);
  EXPECT_EQ((*card)->modify(cru::reg("user_control"), cru::kCruId, 0x1000).error().code, "card.bad_access");
  EXPECT_EQ((*card)->modify_at(2, 0x18, {31, 2}, 1).error().code, "card.bad_access");
  EXPECT_EQ((*card)->modify_at(2, 0x18, {0, 32}, 5).value(), 5u);
}

TEST(Card, AChangeWaitsForAnotherProcessesChange) {
  const test::TemporaryDirectory directory;
  pci::FoundFunction found;
  found.lock_file = directory.file("card.lock");
  auto scripted = std::make_unique<ScriptedFunction>(cru::kPciId, cru::kBars);
  bool locked = false;
  scripted->before_read = [&](unsigned bar, std::uint64_t offset) {
    if (bar == 2 && offset == 0x18) locked = !pci::ByteLock::acquire(found.lock_file, pci::kConfigurationByte, "it");
  };
  auto card = Card::adopt(std::move(scripted), found);
  ASSERT_TRUE(card);
  ASSERT_TRUE((*card)->modify(cru::reg("user_control"), cru::kRunEnable, 1));
  EXPECT_TRUE(locked);
  EXPECT_TRUE(pci::ByteLock::acquire(found.lock_file, pci::kConfigurationByte, "it"));
}

TEST(Card, TheIndexOfACrorcIsItsChannel) {
  auto scripted = std::make_unique<ScriptedFunction>(crorc::kPciId, crorc::kBars);
  auto& words = scripted->words;
  auto card = Card::adopt(std::move(scripted), {});
  ASSERT_TRUE(card);
  ASSERT_TRUE((*card)->write(crorc::reg("configuration"), 3, 5));
  EXPECT_EQ((words[{5, 0x1f0}]), 3u);
  EXPECT_FALSE((*card)->write(crorc::reg("configuration"), 3, 6));
}

TEST(Card, AnUnknownDeviceIsNone) {
  const auto card = Card::adopt(std::make_unique<ScriptedFunction>(card_registers::PciId{0x8086, 0x1533}, cru::kBars), {});
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().code, "card.unknown_type");
}

TEST(Card, ABarThatIsNotThereIsAnError) {
  auto card = Card::adopt(std::make_unique<ScriptedFunction>(cru::kPciId, cru::kBars), {});
  ASSERT_TRUE(card);
  EXPECT_EQ((*card)->bar(1).error().code, "card.no_region");
  EXPECT_EQ((*card)->bar(7).error().code, "card.no_region");
  const Bar* bar = (*card)->bar(2).value();
  EXPECT_TRUE(bar->read32(bar->bytes() - 4)) << "the last word belongs to the BAR";
  EXPECT_FALSE(bar->read32(bar->bytes()));
}

}  // namespace
}  // namespace rodeo::card
