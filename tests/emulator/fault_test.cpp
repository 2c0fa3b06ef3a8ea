// The cards do the faults of the configuration.
#include "emulator/fault.h"

#include "emulator/card_fixture.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
using emulator::FaultKind;

class FaultTest : public CardTest, public ::testing::WithParamInterface<emulator::CardType> {};

TEST_P(FaultTest, EachTypeOfCardHasTheFaultsThatItIsSaidToHave) {
  auto card = felix();
  card.type = GetParam();
  start(settings(card));
  const unsigned links = links_of(card);
  for (const auto& info : emulator::fault_infos()) {
    if (info.kind == FaultKind::removal || info.kind == FaultKind::replug) continue;
    const bool has = emulator::has_fault(card.type, info.kind);
    EXPECT_EQ(emulator_->inject("felix", {.kind = info.kind, .link = links - 1}).has_value(), has) << info.name;
    const bool no_link = has && !emulator::fault_has_link(info.kind);
    EXPECT_EQ(emulator_->inject("felix", {.kind = info.kind, .link = links}).has_value(), no_link) << info.name;
  }
}

TEST_P(FaultTest, ACardIsRemovedAndPluggedInOnce) {
  auto card = felix();
  card.type = GetParam();
  start(settings(card));
  const auto inject = [&](FaultKind kind) { return emulator_->inject("felix", {.kind = kind}).has_value(); };
  EXPECT_FALSE(inject(FaultKind::replug)) << "the card is plugged in";
  EXPECT_TRUE(inject(FaultKind::removal));
  EXPECT_FALSE(inject(FaultKind::removal));
  EXPECT_FALSE(inject(FaultKind::card_reset));
  EXPECT_FALSE(inject(FaultKind::link_down));
  EXPECT_TRUE(inject(FaultKind::replug));
  EXPECT_TRUE(inject(FaultKind::link_down));
}

TEST_P(FaultTest, FaultsOfSomeDurationEndByThemselvesAndOthersHaveNone) {
  auto card = felix();
  card.type = GetParam();
  start(settings(card));
  constexpr std::chrono::milliseconds kShort{1};
  for (const auto& info : emulator::fault_infos()) {
    if (!emulator::has_fault(card.type, info.kind) || emulator::fault_has_duration(info.kind)) continue;
    EXPECT_FALSE(emulator_->inject("felix", {.kind = info.kind, .duration = kShort}).has_value()) << info.name;
  }
  ASSERT_TRUE(emulator_->inject("3b:00.0", {.kind = FaultKind::removal, .duration = kShort}).has_value());
  EXPECT_FALSE(emulator_->inject("felix", {.kind = FaultKind::link_down}).has_value());
  EXPECT_TRUE(wait_until([&] {
    emulator_->poll();
    return emulator_->inject("felix", {.kind = FaultKind::link_down, .duration = kShort}).has_value();
  }));
}

INSTANTIATE_TEST_SUITE_P(Types, FaultTest,
                         ::testing::Values(emulator::CardType::felix, emulator::CardType::cru, emulator::CardType::crorc));

}  // namespace
