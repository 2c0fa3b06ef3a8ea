// What the configuration is told of faults is what the cards do.
#include "emulator/fault.h"

#include "emulator/card_fixture.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;

class FaultTest : public CardTest, public ::testing::WithParamInterface<emulator::CardType> {};

TEST_P(FaultTest, EachTypeOfCardHasTheFaultsThatItIsSaidToHave) {
  auto card = felix();
  card.type = GetParam();
  start(settings(card));
  const unsigned links = links_of(card);
  for (const auto& info : emulator::fault_infos()) {
    const bool has = emulator::has_fault(card.type, info.kind);
    EXPECT_EQ(emulator_->inject("felix", {.kind = info.kind, .link = links - 1}).has_value(), has) << info.name;
    const bool no_link = has && !emulator::fault_has_link(info.kind);
    EXPECT_EQ(emulator_->inject("felix", {.kind = info.kind, .link = links}).has_value(), no_link) << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FaultTest,
                         ::testing::Values(emulator::CardType::felix, emulator::CardType::cru, emulator::CardType::crorc));

}  // namespace
