#include "card/pci/express_link.h"

#include <gtest/gtest.h>

#include "card_registers/felix.h"
#include "scripted_function.h"

namespace rodeo::card::pci {
namespace {

namespace felix = card_registers::felix;
using doubles::ScriptedFunction;

TEST(ExpressLink, IsReadFromTheCapability) {
  ScriptedFunction function(felix::kPciIds[0], felix::kBars);
  for (const unsigned bytes : {128U, 256U, 512U, 4096U}) {
    function.set_express(bytes, 4);
    const auto link = read_express_link(function);
    ASSERT_TRUE(link && *link);
    EXPECT_EQ((*link)->payload_bytes, bytes);
    EXPECT_EQ((*link)->longest_payload_bytes, 4096U);
    EXPECT_EQ((*link)->read_request_bytes, 512U);
    EXPECT_EQ((*link)->speed, 8);
    EXPECT_EQ((*link)->lanes, 4U);
    EXPECT_EQ((*link)->most_lanes, 8U);
    EXPECT_TRUE((*link)->degraded());
  }
  function.set_express(256);
  EXPECT_FALSE((*read_express_link(function))->degraded());
}

TEST(ExpressLink, AFunctionWithoutTheCapabilityHasNone) {
  ScriptedFunction function(felix::kPciIds[0], felix::kBars);
  EXPECT_FALSE(read_express_link(function).value());
}

TEST(ExpressLink, AListThatGoesRoundEnds) {
  ScriptedFunction function(felix::kPciIds[0], felix::kBars);
  function.words[{kConfigurationRegion, 4}] = 1U << 20;
  function.words[{kConfigurationRegion, 0x34}] = 0x40;
  function.words[{kConfigurationRegion, 0x40}] = 0x0001 | 0x50 << 8;
  function.words[{kConfigurationRegion, 0x50}] = 0x0005 | 0x40 << 8;
  EXPECT_FALSE(read_express_link(function).value());
}

TEST(ExpressLink, ReservedCodesAreNoSizes) {
  ScriptedFunction function(felix::kPciIds[0], felix::kBars);
  function.set_express(128);
  function.words[{kConfigurationRegion, 0x68}] = 7U << 5 | 6U << 12;
  const auto link = read_express_link(function).value();
  EXPECT_EQ(link->payload_bytes, 0U);
  EXPECT_EQ(link->read_request_bytes, 0U);
}

TEST(ExpressLink, WhereNoCardAnswersIsAnError) {
  ScriptedFunction function(felix::kPciIds[0], felix::kBars);
  function.words[{kConfigurationRegion, 0}] = UINT32_MAX;
  EXPECT_EQ(read_express_link(function).error().code, "card.all_ones");
}

}  // namespace
}  // namespace rodeo::card::pci
