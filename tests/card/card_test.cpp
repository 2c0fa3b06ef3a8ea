#include "card/card.h"
#include "card/pci/lock.h"
#include "card/register_target.h"

#include <gtest/gtest.h>

#include "card/dma/channel.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "formats/temporary_directory.h"
#include "scripted_function.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;
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

TEST(Card, OneThatReadsAllOnesIsNotOpenedUnlessItIsToBeListed) {
  for (const card_registers::PciId id : {cru::kPciId, crorc::kPciId, felix::kPciIds[0]}) {
    const auto dead = [&] {
      using Bars = std::span<const card_registers::BarSize>;
      auto scripted = std::make_unique<ScriptedFunction>(id, id == cru::kPciId     ? Bars(cru::kBars)
                                                             : id == crorc::kPciId ? Bars(crorc::kBars)
                                                                                   : Bars(felix::kBars));
      auto& words = scripted->words;
      scripted->before_read = [&words](unsigned bar, std::uint64_t offset) {
        if (bar < 6) words[{bar, offset}] = words[{bar, offset + 4}] = UINT32_MAX;
      };
      return scripted;
    };
    EXPECT_EQ(Card::adopt(dead(), {}).error().code, "card.all_ones");
    EXPECT_TRUE(Card::adopt(dead(), {.unasked = true}));
  }
}

TEST(Card, AWordOfAllOnesIsBelievedOnlyOfACardThatAnswers) {
  auto scripted = std::make_unique<ScriptedFunction>(cru::kPciId, cru::kBars);
  auto& words = scripted->words;
  words[{2, cru::reg("firmware_hash").offset}] = 0x1234;
  words[{2, 0x18}] = UINT32_MAX;
  const auto card = Card::adopt(std::move(scripted), {}).value();
  EXPECT_EQ(card->read(cru::reg("user_control")).value(), UINT32_MAX);
  ASSERT_TRUE(card->modify(cru::reg("user_control"), cru::kRunEnable, 0));
  words[{2, 0x18}] = words[{2, cru::reg("firmware_hash").offset}] = UINT32_MAX;
  EXPECT_EQ(card->read(cru::reg("user_control")).error().code, "card.all_ones");
  EXPECT_EQ(card->modify(cru::reg("user_control"), cru::kRunEnable, 0).error().code, "card.all_ones");
  EXPECT_EQ((words[{2, 0x18}]), UINT32_MAX) << "nothing was written back";
  const RegisterTarget target{.bar = 2, .offset = 0x18};
  EXPECT_EQ(read_register(*card, target).error().code, "card.all_ones");
  EXPECT_EQ(modify_register(*card, target, 0, 1, 0).error().code, "card.all_ones");
  EXPECT_EQ((words[{2, 0x18}]), UINT32_MAX);
  words[{2, cru::reg("firmware_hash").offset}] = 0x1234;
  EXPECT_EQ(modify_register(*card, target, 0, 1, 0).value(), UINT32_MAX - 1);
}

std::unique_ptr<ScriptedFunction> felix_of_map(std::uint32_t version) {
  auto scripted = std::make_unique<ScriptedFunction>(felix::kPciIds[0], felix::kBars);
  scripted->words[{2, 0}] = version;
  return scripted;
}

TEST(Card, OfAFelixWhoseMapIsNotKnownOnlyWhatAllMapsHaveIsUsed) {
  const auto card = Card::adopt(felix_of_map(0x040a), {}).value();
  EXPECT_EQ(card->map_version(), 0x040a);
  EXPECT_EQ(card->check_map().error().code, "card.unknown_map");
  EXPECT_EQ(card->read64(felix::reg("temperature")).error().code, "card.unknown_map");
  EXPECT_EQ(card->write(felix::reg("generator_control"), 1).error().code, "card.unknown_map");
  EXPECT_TRUE(card->read64(felix::reg("register_map_version")));
  EXPECT_TRUE(card->read64(felix::reg("dma_status")));
  EXPECT_TRUE(card->bar(2).value()->read64(0x1330)) << "by address";
  EXPECT_TRUE(card->map().find("dma_enable"));
  EXPECT_FALSE(card->map().find("temperature"));
  EXPECT_EQ(DmaChannel::check(*card, 0, DataSource::fee).error().code, "card.unknown_map");
}

TEST(Card, AUserMaySayWhichMapAFelixHas) {
  EXPECT_TRUE(Card::adopt(felix_of_map(felix::kRegisterMapVersion), {}).value()->check_map());
  EXPECT_TRUE(Card::adopt(felix_of_map(0x040a), {.register_map = register_map_of("254.0")}).value()->check_map());
  EXPECT_EQ(register_map_of("254.0"), felix::kRegisterMapVersion);
  EXPECT_FALSE(register_map_of("4.0"));
}

TEST(Card, DescriptorsAreSwitchedUnderALockOfTheirOwn) {
  const test::TemporaryDirectory directory;
  pci::FoundFunction found;
  found.lock_file = directory.file("card.lock");
  auto scripted = felix_of_map(felix::kRegisterMapVersion);
  bool locked = false;
  scripted->before_read = [&](unsigned bar, std::uint64_t offset) {
    if (bar == 0 && offset == felix::reg("dma_enable").offset)
      locked = !pci::ByteLock::acquire(found.lock_file, pci::kDescriptorsByte, "it");
  };
  const auto card = Card::adopt(std::move(scripted), found).value();
  const auto configuring = card->lock(pci::kConfigurationByte, "a configuration");
  ASSERT_TRUE(card->modify_at(0, felix::reg("dma_enable").offset, {3, 1}, 1));
  EXPECT_TRUE(locked);
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
