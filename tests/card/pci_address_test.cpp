#include <gtest/gtest.h>

#include "card_registers/pci_address.h"

namespace rodeo::card_registers {
namespace {

TEST(PciAddress, IsReadWithAndWithoutItsDomain) {
  EXPECT_EQ(PciAddress::parse("3b:00.0").value().text(), "0000:3b:00.0");
  EXPECT_EQ(PciAddress::parse("0001:3B:1f.7").value().text(), "0001:3b:1f.7");
}

TEST(PciAddress, NothingMayFollowIt) { EXPECT_FALSE(PciAddress::parse("3b:00.0junk")); }

TEST(PciAddress, FieldsHaveLimits) {
  for (const char* text : {"3b:20.0", "3b:00.8", "100:00.0", "10000:3b:00.0", "3b.0", "3b:00", ":00.0", "3b:.0", "3b:00.",
                           "", "1:2:3:4.0", "+3:00.0"}) {
    EXPECT_FALSE(PciAddress::parse(text)) << text;
  }
}

}  // namespace
}  // namespace rodeo::card_registers
