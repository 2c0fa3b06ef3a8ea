#include "card/card_id.h"

#include <gtest/gtest.h>

namespace rodeo::card {
namespace {

template <typename Kind>
Kind parsed(std::string_view text) {
  const auto id = parse_card_id(text);
  if (!id) {
    ADD_FAILURE() << id.error().message();
    return {};
  }
  const Kind* kind = std::get_if<Kind>(&*id);
  if (kind == nullptr) ADD_FAILURE() << text << " is parsed as another kind of name";
  return kind == nullptr ? Kind{} : *kind;
}

TEST(CardId, IsAPciAddressWithOrWithoutItsDomain) {
  EXPECT_EQ(parsed<pci::Address>("3b:00.0"), (pci::Address{0, 0x3b, 0, 0}));
  EXPECT_EQ(parsed<pci::Address>("0001:3b:00.1"), (pci::Address{1, 0x3b, 0, 1}));
}

TEST(CardId, IsAPlaceInTheListWithAnyDigits) {
  EXPECT_EQ(parsed<SequenceId>("#2").number, 2u);
  EXPECT_EQ(parsed<SequenceId>("#8").number, 8u);
  EXPECT_EQ(parsed<SequenceId>("#19").number, 19u);
}

TEST(CardId, IsASerialNumberWithAnEndpointThatIsZeroIfLeftOut) {
  EXPECT_EQ(parsed<SerialId>("0233:1"), (SerialId{233, 1}));
  EXPECT_EQ(parsed<SerialId>("0233"), (SerialId{233, 0}));
  EXPECT_EQ(parsed<SerialId>("0001:1"), (SerialId{1, 1})) << "an endpoint that equals the serial is kept";
  EXPECT_EQ(parsed<SerialId>(" \t10245:0 "), (SerialId{10245, 0}));
}

TEST(CardId, IsNothingElse) {
  for (const char* text : {"", " ", "#", "#x", "#12345", "#-1", "12", "0233:", "0233:2", "0233:11", "123456", "02x3",
                           "3b:00.0junk", "0233 :1", "3b:00", "3b:20.0", "0x233"}) {
    const auto id = parse_card_id(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().code, "card.bad_id");
  }
}

}  // namespace
}  // namespace rodeo::card
