// A supervisor without a trigger: counts of readouts, events that all readouts can have, and the end while data continue.
#include <gmock/gmock.h>

#include "farm/supervised_farm.h"

namespace {

using namespace rodeo;
using namespace rodeo::test;
using testing::HasSubstr;

class ContinuousFarm : public SupervisedFarm {
 protected:
  farm::SupervisorSettings continuous() const {
    auto with = settings();
    with.rebuild_time = 50ms;
    with.assign_after = 20s;
    return with;
  }
  /// Waits until the supervisor has asked all readouts again.
  void look() {
    const std::uint64_t surveys = counter("surveys");
    EXPECT_TRUE(until([&] { return seen("surveys") >= surveys + 4; }));
  }
};

TEST_F(ContinuousFarm, AReadoutThatCountsTimeFramesIsRefusedUnderATriggerBeforeAnyEvent) {
  serve_triggers(100);
  readout("readout1.hlt");
  readout("readout2.hlt").numbering = {.orbits = 8};
  node("a");
  supervise(settings());
  ASSERT_TRUE(over());
  const auto refused = supervisor_->refused();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, "farm.other_numbering");
  EXPECT_THAT(refused->what, HasSubstr("readout2.hlt count time frames of 8 orbits"));
  EXPECT_EQ(ids_.size(), 0U) << "no trigger was accepted";
  EXPECT_EQ(supervisor_->status()["offered"], 0U);
}

TEST_F(ContinuousFarm, ItIsRefusedBeforeTheRunWhereTheSupervisorIsHeld) {
  serve_triggers(100);
  readout("readout.hlt").numbering = {.orbits = 1};
  supervise(settings(), false);
  ASSERT_TRUE(over());
  ASSERT_TRUE(supervisor_->refused());
  EXPECT_THAT(supervisor_->refused()->what, HasSubstr("heartbeat frames"));
}

TEST_F(ContinuousFarm, ReadoutsWhoseTimeFramesDifferAreRefused) {
  for (const formats::Numbering other : {formats::Numbering{.orbits = 4, .phase = 3}, {.orbits = 8, .phase = 4}, {}}) {
    readouts_.clear();
    readout("readout1.hlt").numbering = {.orbits = 8, .phase = 3};
    readout("readout2.hlt").numbering = other;
    supervise(continuous());
    ASSERT_TRUE(over()) << other.text();
    ASSERT_TRUE(supervisor_->refused());
    EXPECT_EQ(supervisor_->refused()->code, "farm.other_numbering");
  }
}

TEST_F(ContinuousFarm, TheRunIsWhatAllReadoutsCanHave) {
  KeepingReadout& one = readout("readout1.hlt");
  KeepingReadout& two = readout("readout2.hlt");
  for (KeepingReadout* each : {&one, &two}) each->numbering = {.orbits = 8, .phase = 3};
  ToldNode& a = node("a");
  supervise(continuous());
  for (std::uint64_t id = 10; id <= 100; ++id) one.hold(id);
  look();
  EXPECT_EQ(now().waiting + now().assigned + seen("before_common_start"), 0U) << "the other readout may begin at any event";
  for (std::uint64_t id = 40; id <= 120; ++id) two.hold(id);
  one.ended = two.ended = true;
  ASSERT_TRUE(over());
  const auto status = supervisor_->status();
  EXPECT_EQ(status["before_common_start"], 30U);
  EXPECT_EQ(status["after_common_end"], 20U);
  EXPECT_EQ(status["offered"], 61U);
  EXPECT_EQ(status["accepted"] + status["rejected"], 61U);
  EXPECT_EQ(status.undecided, 0U);
  EXPECT_TRUE(status.adds_up);
  EXPECT_TRUE(until([&] { return one.held.empty() && two.held.empty(); })) << "waiting ids are cleared, too";
  ASSERT_EQ(a.decided.size(), 61U);
  EXPECT_EQ(a.decided.begin()->first, 40U);
  EXPECT_EQ(a.decided.rbegin()->first, 100U);
}

TEST_F(ContinuousFarm, AnEventTakesNoSlotBeforeAllReadoutsHaveIt) {
  KeepingReadout& one = readout("readout1.hlt");
  KeepingReadout& two = readout("readout2.hlt");
  ToldNode& a = node("a", 64);
  a.decides = false;
  supervise(continuous());
  happened(0);
  for (std::uint64_t id = 1; id <= 40; ++id) one.hold(id);
  ASSERT_TRUE(until([&] { return a.events.size() == 1; }));
  look();
  EXPECT_EQ(now().waiting + now().assigned, 1U);
  for (std::uint64_t id = 1; id <= 40; ++id) two.hold(id);
  EXPECT_TRUE(until([&] { return a.events.size() == 41; }));
}

TEST_F(ContinuousFarm, WhatOneReadoutLacksIsAssignedAfterALimit) {
  KeepingReadout& one = readout("readout1.hlt");
  KeepingReadout& two = readout("readout2.hlt");
  node("a");
  auto with = continuous();
  with.assign_after = 50ms;
  supervise(with);
  happened(0);
  one.hold(1);
  for (std::uint64_t id = 2; id <= 5; ++id) happened(id);
  one.ended = two.ended = true;
  ASSERT_TRUE(over());
  EXPECT_EQ(supervisor_->status()["accepted"] + supervisor_->status()["rejected"], 6U);
}

TEST_F(ContinuousFarm, OneThatIsStoppedFirstEndsThoughDataGoOn) {
  readout("readout1.hlt");
  readout("readout2.hlt");
  node("a");
  auto with = continuous();
  with.drain_time = 300s;
  supervise(with);
  std::uint64_t next = 0;
  const auto flows = [&] {
    for (int i = 0; i < 5; ++i) happened(next++);
  };
  ASSERT_TRUE(until([&] {
    flows();
    return seen("cleared") > 100;
  }));
  supervisor_->stop();
  EXPECT_TRUE(until([&] {
    flows();
    return supervisor_->over();
  }));
  const auto status = supervisor_->status();
  EXPECT_EQ(status.undecided, 0U);
  EXPECT_EQ(status.uncleared, 0U);
  EXPECT_EQ(status["offered"], status["accepted"] + status["rejected"]);
  EXPECT_TRUE(status.adds_up);
}

}  // namespace
