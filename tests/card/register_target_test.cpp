#include "card/register_target.h"

#include <gtest/gtest.h>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card {
namespace {

const RegisterSpace kCru{&card_registers::cru::kMap, false, 4};
const RegisterSpace kCrorc{&card_registers::crorc::kMap, true, 4};
const RegisterSpace kFelix{&card_registers::felix::kMap, false, 8};

TEST(RegisterTarget, NamesAndAddressesLeadToTheSameRegister) {
  const auto named = find_register(kCru, "gbt_link_rx_hz[7]", std::nullopt);
  ASSERT_TRUE(named) << named.error().message();
  EXPECT_EQ(named->bar, 2u);
  const auto placed = find_register(kCru, std::to_string(named->offset), 2);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->name(), "gbt_link_rx_hz[7]");
  EXPECT_EQ(placed->offset, named->offset);
}

TEST(RegisterTarget, AnUnknownNameComesWithTheNearestOne) {
  const auto found = find_register(kCru, "temperatur", std::nullopt);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, "card.unknown_register");
  EXPECT_NE(found.error().next.find("temperature"), std::string::npos);
}

TEST(RegisterTarget, APlaceThatARowDoesNotHaveIsNamed) {
  const auto beyond = find_register(kCru, "superpages_done[16]", std::nullopt);
  ASSERT_FALSE(beyond);
  EXPECT_NE(beyond.error().what.find("[15]"), std::string::npos);
  EXPECT_EQ(find_register(kCru, "temperature[0x]", std::nullopt).error().code, "card.unknown_register");
}

TEST(RegisterTarget, AddressesNeedABarAndAlignment) {
  EXPECT_EQ(find_register(kCru, "0x400", std::nullopt).error().code, "card.bad_access");
  EXPECT_EQ(find_register(kCru, "0x401", 0).error().code, "card.bad_access");
  EXPECT_EQ(find_register(kCru, "0x100000000", 0).error().code, "card.bad_access");
  EXPECT_EQ(find_register(kCru, "", 0).error().code, "card.unknown_register");
}

TEST(RegisterTarget, ANameOfAnotherBarIsRefused) {
  EXPECT_EQ(find_register(kCru, "temperature", 0).error().code, "card.bad_access");
  EXPECT_TRUE(find_register(kCru, "temperature", 2));
}

TEST(RegisterTarget, EveryBarOfACrorcHasTheSameNames) {
  const auto found = find_register(kCrorc, "link_status", 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bar, 4u);
  EXPECT_EQ(find_register(kCrorc, "0xa0", 4)->name(), "link_status");
}

TEST(RegisterTarget, WidthIsTheRegisters) {
  EXPECT_EQ(find_register(kFelix, "card_type", std::nullopt)->width_bytes, 8u);
  EXPECT_EQ(find_register(kFelix, "0xff8", 2)->width_bytes, 8u);
  EXPECT_EQ(find_register(kFelix, "0xffc", 2)->width_bytes, 4u);
}

TEST(RegisterTarget, CommandsAreNotHarmlessToRead) {
  EXPECT_FALSE(find_register(kCrorc, "ddl_status", std::nullopt)->harmless_to_read());
  EXPECT_TRUE(find_register(kCru, "temperature", std::nullopt)->harmless_to_read());
}

TEST(RegisterTarget, WhatCanOnlyBeReadIsWrittenByForceAlone) {
  for (const char* text : {"temperature", "0x10008"}) {
    const auto target = find_register(kCru, text, 2).value();
    EXPECT_EQ(may_write(target).error().code, "card.read_only") << text;
    EXPECT_TRUE(may_write(target, true)) << text;
  }
  EXPECT_TRUE(may_write(find_register(kCru, "user_control", 2).value()));
  EXPECT_TRUE(may_write(find_register(kCru, "0x10", 0).value())) << "no register is declared there";
}

TEST(RegisterTarget, BitsThatDoNotFitAreRefused) {
  const auto target = find_register(kCru, "user_control", std::nullopt).value();
  EXPECT_EQ(with_bits(target, 0xf000ffff, 16, 12, 0x123).value(), 0xf123ffffu);
  EXPECT_EQ(with_bits(target, 0, 0, 32, 0xffffffff).value(), 0xffffffffu);
  for (const auto& [position, width, value] :
       {std::tuple{0U, 0U, 0U}, {31U, 2U, 0U}, {32U, 1U, 0U}, {0U, 1U, 2U}, {4U, 0xfffffffeU, 0U}})
    EXPECT_EQ(with_bits(target, 0, position, width, value).error().code, "card.bad_access");
}

TEST(RegisterTarget, NumbersAreReadWhole) {
  EXPECT_EQ(parse_number("0x2a").value(), 42u);
  EXPECT_EQ(parse_number("42").value(), 42u);
  for (const char* text : {"", "0x", "4 2", "-1", "42u", "0x1ffffffffffffffff"}) EXPECT_FALSE(parse_number(text)) << text;
}

}  // namespace
}  // namespace rodeo::card
