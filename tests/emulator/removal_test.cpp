// A card, or its reader, disappears during a run: the triggers of the other cards continue, and the counts balance.
#include "emulator/card_fixture.h"
#include "emulator/cru_host.h"
#include "emulator/felix_host.h"

#include <optional>

namespace {

using namespace rodeo;
using namespace rodeo::test;
using emulator::FaultKind;

class RemovalTest : public CardTest {
 protected:
  static std::vector<std::uint16_t> elinks() { return {0, 1, 2, 64, 65, 66}; }

  static std::uint64_t counter(const emulator::FunctionReport& function, std::string_view name) {
    return counter_value(function.counters, name);
  }

  static void run(FelixHost& host, FelixProver& prover, std::uint64_t chunks) {
    ASSERT_TRUE(wait_until([&] {
      prover.prove(host.take());
      return prover.chunks() >= chunks;
    })) << prover.chunks();
  }
};

TEST_F(RemovalTest, AFullCardThatIsRemovedHoldsNobodyAndComesBack) {
  auto all = settings(felix());
  all.cards.push_back(felix());
  all.cards[1].name = "other";
  all.cards[1].address = "3c:00.0";
  all.trigger.wait_for = 1;
  all.trigger.rate_hz = 100'000;
  start(std::move(all));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(), {}, 1);
  {
    FelixHost other(socket("0000:3c:00.0"), 1 << 16);
    ASSERT_TRUE(other.enable());
    ASSERT_TRUE(host.enable());
    // The other card has no reader: it becomes full, and then busy.
    ASSERT_TRUE(wait_until([&] {
      prover.prove(host.take());
      return emulator_->report().functions[1].vetoed > 0;
    }));
    ASSERT_TRUE(emulator_->inject("other", {.kind = FaultKind::removal}).has_value());
  }
  run(host, prover, prover.chunks() + 100'000);  // more chunks than the other card holds triggers
  const auto report = emulator_->report();
  const auto& gone = report.functions[1];
  EXPECT_FALSE(gone.running);
  EXPECT_EQ(report.trigger.followers.at(1).ready, 0U);
  EXPECT_GT(report.trigger.followers.at(1).missed, 0U) << "triggers without room";
  EXPECT_EQ(report.trigger.followers.at(1).triggers, gone.triggers);
  EXPECT_EQ(6 * gone.triggers, gone.chunks + counter(gone, "chunks_cut_off"));

  ASSERT_TRUE(emulator_->inject("other", {.kind = FaultKind::replug}).has_value());
  FelixHost again(socket("0000:3c:00.0"), 1 << 20);
  FelixProver check(elinks(), {}, 1);
  ASSERT_TRUE(again.enable());
  ASSERT_TRUE(wait_until([&] {
    prover.prove(host.take());
    check.prove(again.take());
    return check.chunks() > 10'000;
  }));
  EXPECT_EQ(check.wrong() + prover.wrong(), 0U);
  EXPECT_TRUE(emulator_->report().functions[1].running);
}

TEST_F(RemovalTest, AReaderThatDiesHoldsNobodyAndAnotherMayTakeItsCard) {
  auto cru_card = felix();
  cru_card.type = emulator::CardType::cru;
  cru_card.rdh.frame_bytes = 4096;
  cru_card.drop = false;
  for (const bool of_a_cru : {false, true}) {
    emulator_.reset();  // frees its addresses for the next emulator
    auto all = settings(felix());
    all.cards.push_back(of_a_cru ? cru_card : felix());
    all.cards[1].name = "other";
    all.cards[1].address = "3c:00.0";
    all.cards[1].fifo_triggers = 256;
    all.trigger.wait_for = 1;
    all.trigger.rate_hz = 100'000;
    start(std::move(all));
    FelixHost host(socket(), 1 << 20);
    FelixProver prover(elinks(), {}, 1);
    {
      std::optional<FelixHost> felix_reader;
      std::optional<CruHost> cru_reader;
      if (of_a_cru) {
        cru_reader.emplace(socket("0000:3c:00.0"), 1 << 16, 4);
        cru_reader->start(0);
        cru_reader->push(0);
      } else {
        felix_reader.emplace(socket("0000:3c:00.0"), 1 << 16);
        ASSERT_TRUE(felix_reader->enable());
      }
      ASSERT_TRUE(host.enable());
      // The host does not read: its card becomes full, then busy. Then the host disappears without a message.
      ASSERT_TRUE(wait_until([&] {
        prover.prove(host.take());
        return emulator_->report().functions[1].vetoed > 0;
      }));
    }
    run(host, prover, prover.chunks() + 100'000);
    const auto report = emulator_->report();
    EXPECT_FALSE(report.functions[1].running);
    EXPECT_EQ(report.trigger.followers.at(1).ready, 0U);
    EXPECT_EQ(counter(report.functions[1], "readers_lost"), 1U);
    EXPECT_EQ(counter(report.functions[0], "readers_lost"), 0U);
    if (!of_a_cru) {
      FelixHost again(socket("0000:3c:00.0"), 1 << 20);
      FelixProver check(elinks(), {}, 1);
      ASSERT_TRUE(again.enable());
      ASSERT_TRUE(wait_until([&] {
        prover.prove(host.take());
        check.prove(again.take());
        return check.chunks() > 10'000;
      }));
      EXPECT_EQ(check.wrong(), 0U);
      ASSERT_TRUE(again.disable());
    }
    EXPECT_EQ(prover.wrong(), 0U);
    ASSERT_TRUE(host.disable());
    EXPECT_EQ(counter(emulator_->report().functions[1], "readers_lost"), 1U) << "a reader that ends normally is not lost";
  }
}

TEST_F(RemovalTest, FramesThatARemovedCruWasGivenAreCutOff) {
  auto card = felix();
  card.type = emulator::CardType::cru;
  card.drop = false;
  card.fifo_triggers = 10;
  auto all = settings(card);
  all.trigger.rate_hz = 20'000;
  start(std::move(all));
  CruHost host(socket(), 32768, 2);
  host.start(0);
  ASSERT_TRUE(wait_until([&] { return emulator_->report().trigger.vetoed_busy > 0; }));
  ASSERT_TRUE(emulator_->inject("felix", {.kind = FaultKind::removal}).has_value());
  const auto report = emulator_->report();
  EXPECT_FALSE(report.functions[0].running);
  EXPECT_EQ(report.trigger.followers.at(0).ready, 0U);
  EXPECT_EQ(report.functions[0].chunks, 0U);
  EXPECT_EQ(counter(report.functions[0], "frames_cut_off"), 12 * report.trigger.followers.at(0).triggers);
  EXPECT_EQ(report.trigger.followers.at(0).triggers + report.trigger.followers.at(0).missed, report.trigger.accepted);
}

TEST_F(RemovalTest, ReportsBalanceInTheMidstOfARunAndAtItsEnd) {
  start(settings(felix()));
  FelixHost host(socket(), 1 << 20);
  FelixProver prover(elinks(), {}, 1);
  ASSERT_TRUE(host.enable());
  for (int i = 0; i < 50; ++i) {
    run(host, prover, prover.chunks() + 1000);
    const auto now = emulator_->report().functions[0];
    ASSERT_EQ(6 * now.triggers, now.chunks + counter(now, "chunks_open"));
  }
  emulator_->finish();
  prover.prove(host.take());
  prover.finish();
  const auto last = emulator_->report();
  const auto& function = last.functions[0];
  EXPECT_FALSE(function.running);
  EXPECT_EQ(function.chunks, prover.chunks());
  EXPECT_EQ(counter(function, "chunks_open"), 0U);
  EXPECT_EQ(6 * function.triggers, function.chunks + counter(function, "chunks_cut_off"));
  EXPECT_EQ(last.trigger.followers.at(0).triggers + last.trigger.followers.at(0).missed, last.trigger.accepted);
  EXPECT_EQ(emulator_->report().functions[0].triggers, function.triggers) << "the count is final";
}

}  // namespace
