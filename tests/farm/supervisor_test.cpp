// The supervisor over the network, with everything that nodes, readouts and the trigger may do.
#include "farm/supervised_farm.h"

#include <fstream>

namespace rodeo::test {
namespace {

using formats::Verdict;

TEST_F(SupervisedFarm, EachEventIsAssignedDecidedAndClearedOnceAndTheRunEndsInOrder) {
  serve_triggers(500);
  KeepingReadout& one = readout("readout1.hlt");
  KeepingReadout& two = readout("readout2.hlt");
  ToldNode& a = node("a");
  ToldNode& b = node("b");
  auto with = settings();
  with.recorders = {"recorder"};
  with.decisions = directory_.file("decisions");
  supervise(with);
  ASSERT_TRUE(until([&] { return all_done(500); }));
  supervisor_->stop();
  ASSERT_TRUE(over());
  const auto status = supervisor_->status();
  EXPECT_TRUE(status.adds_up);
  EXPECT_EQ(status["offered"], 500U);
  EXPECT_EQ(status["assignments"], 500U);
  EXPECT_EQ(status["accepted"], 167U);
  EXPECT_EQ(status["rejected"], 333U);
  EXPECT_EQ(status["cleared"], 500U);
  EXPECT_EQ(status.undecided + status.waiting + status.assigned + status.uncleared, 0U);
  EXPECT_EQ(a.all.size() + b.all.size(), 500U);
  EXPECT_GT(a.all.size(), 0U);
  EXPECT_GT(b.all.size(), 0U);
  EXPECT_TRUE(until([&] { return a.over && b.over; }));
  for (const auto* readout : {&one, &two}) {
    EXPECT_EQ(readout->cleared.size(), 500U);
    EXPECT_TRUE(std::ranges::all_of(readout->cleared, [](const auto& id) { return id.second == 1; }));
  }
  ASSERT_TRUE(a.welcome);
  EXPECT_EQ(a.welcome->run_number, 7U);
  EXPECT_EQ(a.welcome->readouts, (std::vector<std::string>{"readout1.hlt", "readout2.hlt"}));
  EXPECT_EQ(a.welcome->recorders, (std::vector<std::string>{"recorder"}));
  // The file of decisions has each event once.
  std::ifstream file(directory_.file("decisions"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(bytes.size(), 500U * farm::DecisionFile::kRecordBytes);
  std::map<std::uint64_t, Verdict> decided;
  for (std::size_t at = 0; at < bytes.size(); at += 9) {
    std::uint64_t id = 0;
    std::memcpy(&id, bytes.data() + at, sizeof id);
    EXPECT_TRUE(decided.emplace(id, static_cast<Verdict>(bytes[at + 8])).second);
  }
  for (const auto& [id, verdict] : decided) EXPECT_EQ(verdict, id % 3 == 0 ? Verdict::accepted : Verdict::rejected);
}

TEST_F(SupervisedFarm, EventsCarryWhatTheTriggerSaysOfThem) {
  serve_triggers(20);
  readout("readout.hlt");
  ToldNode& a = node("a");
  authority_->advance_marks({.lumi_block = 5, .scan_step = 6}, base::steady_now_ns());
  supervise(settings());
  ASSERT_TRUE(until([&] { return a.all.size() == 20; }));
  for (const auto& event : a.all) {
    EXPECT_EQ(event.lumi_block, 5U);
    EXPECT_EQ(event.scan_step, 6U);
    EXPECT_LT(event.bcid, 3564U);
  }
}

TEST_F(SupervisedFarm, TheTriggerWaitsWhenThereIsNoRoom) {
  serve_triggers(10'000);
  readout("readout.hlt");
  ToldNode& a = node("a");
  a.decides = false;
  supervise(settings());
  ASSERT_TRUE(until([&] { return seen("offered") == 60 && a.events.size() == 8; }));
  EXPECT_EQ(now().room, 0U);
  EXPECT_EQ(ids_.size(), 60U) << "the other slots are reserved for events without known triggers";
  a.decides = true;
  ASSERT_TRUE(until([&] { return ids_.size() > 200; }));
}

TEST_F(SupervisedFarm, WhatWasAcceptedBeforeTheEndIsDecidedThoughThereWasNoRoomForIt) {
  serve_triggers(1000);
  detector_->set_ready(false);
  readout("readout.hlt");
  ToldNode& a = node("a", 64);
  a.decides = false;
  auto with = settings();
  with.rebuild_time = 50ms;
  supervise(with);
  for (std::uint64_t id = 0xf00000; id < 0xf00000 + 64; ++id) happened(id);  // no trigger announces these events
  ASSERT_TRUE(until([&] { return a.events.size() == 64; }));
  detector_->set_ready(true);
  ASSERT_TRUE(until([&] { return ids_.size() == 124; }));
  supervisor_->stop();
  ASSERT_TRUE(until([&] { return supervisor_->status().stage != farm::Stage::running; }));
  for (int i = 0; i < 300; ++i) {
    poll();
    std::this_thread::sleep_for(100us);
  }
  a.decides = true;
  ASSERT_TRUE(over());
  EXPECT_EQ(supervisor_->status()["offered"], ids_.size());
  EXPECT_EQ(a.decided.size(), ids_.size());
  EXPECT_EQ(supervisor_->status().undecided, 0U);
}

TEST_F(SupervisedFarm, WhatANodeThatDiedHadIsOnlyBuiltByAnother) {
  serve_triggers(60);
  readout("readout.hlt");
  ToldNode& a = node("a");
  ToldNode& b = node("b");
  a.decides = b.decides = false;
  auto with = settings();
  with.node_grace = 50ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return a.events.size() == 8 && b.events.size() == 8; }));
  std::set<std::uint64_t> had;
  for (const auto& event : a.events) had.insert(event.id);
  nodes_[0].reset();
  b.decides = true;
  ASSERT_TRUE(until([&] { return all_done(60); }));
  EXPECT_EQ(counter("node_gone"), 8U);
  EXPECT_EQ(counter("debug"), 8U);
  for (const auto& event : b.all) EXPECT_EQ(event.build_only(), had.contains(event.id));
}

TEST_F(SupervisedFarm, WhatANodeThatStandsStillHasIsOnlyBuiltByAnotherAndItsWordsAreLate) {
  serve_triggers(40);
  readout("readout.hlt");
  ToldNode& a = node("a");
  ToldNode& b = node("b");
  a.decides = b.decides = false;
  auto with = settings();
  with.node_grace = 100ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return a.events.size() == 8 && b.events.size() == 8; }));
  a.stands_still = true;
  b.decides = true;
  ASSERT_TRUE(until([&] { return seen("debug") == 8; }));
  a.stands_still = false;
  a.decides = true;
  ASSERT_TRUE(until([&] { return all_done(40); }));
  EXPECT_EQ(counter("accepted") + counter("rejected") + counter("debug"), 40U);
  EXPECT_TRUE(supervisor_->status().adds_up);
}

TEST_F(SupervisedFarm, AnEventWhoseTimeIsOutGoesToAnother) {
  serve_triggers(20);
  readout("readout.hlt");
  ToldNode& a = node("a", 1);
  auto with = settings();
  with.event_timeout = 50ms;
  supervise(with);
  a.decides = false;
  ASSERT_TRUE(until([&] { return a.events.size() == 1; }));
  const std::uint64_t hung = a.events[0].id;
  ToldNode& b = node("b");
  ASSERT_TRUE(until([&] { return seen("accepted") + seen("rejected") + seen("debug") == 20; }));
  EXPECT_EQ(b.decided.at(hung), Verdict::debug);
  EXPECT_GE(counter("timed_out"), 1U);
}

TEST_F(SupervisedFarm, AnEventThatWasFirstAssignedLongAgoIsAssignedForTheLastTime) {
  serve_triggers(1);
  readout("readout.hlt");
  ToldNode& a = node("a");
  a.decides = false;
  auto with = settings();
  with.event_timeout = 50ms;
  with.lost_after = 120ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return !a.all.empty() && a.all.back().last(); }));
  EXPECT_FALSE(a.all.front().last());
  EXPECT_TRUE(a.all.back().build_only());
}

TEST_F(SupervisedFarm, ANodeWhoseConnectionBreaksGoesOnWithWhatItHas) {
  serve_triggers(100);
  readout("readout.hlt");
  ToldNode& a = node("a");
  supervise(settings());
  ASSERT_TRUE(until([&] { return a.all.size() > 20; }));
  a.decides = false;
  ASSERT_TRUE(until([&] { return a.events.size() == 8; }));
  a.reconnect();
  ASSERT_TRUE(until([&] { return a.hellos > 1 && a.welcome; }));
  EXPECT_EQ(a.events.size(), 8U);
  EXPECT_TRUE(a.let_go.empty());
  a.decides = true;
  ASSERT_TRUE(until([&] { return all_done(100); }));
  EXPECT_EQ(counter("assignments") - counter("undelivered"), 100U);
  EXPECT_EQ(counter("accepted") + counter("rejected"), 100U);
  EXPECT_EQ(counter("debug"), 0U);
}

TEST_F(SupervisedFarm, WhatWasAssignedAnewAndNeverCameIsAssignedOnceMore) {
  serve_triggers(1);
  readout("readout.hlt");
  ToldNode& a = node("a");
  a.decides = false;
  auto with = settings();
  with.event_timeout = 300ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return a.events.size() == 1; }));
  const std::uint64_t id = a.events[0].id;
  // The event may time out again before the node is back. Then it belongs to the node again, and the test repeats this.
  for (int i = 0; i < 20 && a.let_go.empty(); ++i) {
    const std::uint64_t before = counter("assignments");
    a.stands_still = true;  // messages to this node are lost
    ASSERT_TRUE(until([&] { return seen("assignments") > before; }));
    a.stands_still = false;
    a.reconnect();  // the node reports the event of the first assignment
    ASSERT_TRUE(until([&] { return a.welcome.has_value(); }));
  }
  EXPECT_EQ(a.let_go, std::vector<std::uint64_t>{id});
  ASSERT_TRUE(until([&] { return a.events.size() == 1 && a.events[0].build_only(); }));
  EXPECT_GE(counter("undelivered"), 1U);
  a.decides = true;
  ASSERT_TRUE(until([&] { return all_done(1); }));
  EXPECT_EQ(counter("debug"), 1U);
}

TEST_F(SupervisedFarm, ADecisionOfTheFirstTimeCountsWhereTheSecondNeverCame) {
  serve_triggers(1);
  readout("readout.hlt");
  ToldNode& a = node("a");
  a.decides = false;
  auto with = settings();
  with.event_timeout = 200ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return a.events.size() == 1; }));
  a.stands_still = true;
  ASSERT_TRUE(until([&] { return seen("assignments") >= 2; }));
  a.decide(a.events[0], Verdict::rejected);
  a.events.clear();
  a.stands_still = false;
  a.reconnect();
  ASSERT_TRUE(until([&] { return all_done(1); }));
  EXPECT_EQ(counter("rejected"), 1U);
  EXPECT_EQ(counter("late_decisions"), 0U);
}

TEST_F(SupervisedFarm, WhatWasNeverSentToANodeThatIsLostIsProcessedByAnother) {
  serve_triggers(20);
  detector_->set_ready(false);
  readout("readout.hlt");
  ToldNode& a = node("a");
  auto with = settings();
  with.node_grace = 2s;
  supervise(with);
  ASSERT_TRUE(until([&] { return a.welcome && seen("works") > 0; }));
  a.stands_still = true;
  int still = 0;  // counts steps in which every request has its answer
  ASSERT_TRUE(until([&] { return seen("works") == seen("orders") && ++still > 1000; }));
  detector_->set_ready(true);
  ASSERT_TRUE(until([&] { return seen("assignments") >= 8; }));
  ToldNode& b = node("b");
  ASSERT_TRUE(until([&] { return all_done(20); }));
  EXPECT_EQ(b.decided.size(), 20U);
  EXPECT_GE(counter("undelivered"), 8U);
  EXPECT_EQ(counter("node_gone"), 0U);
  EXPECT_EQ(counter("debug"), 0U);
}

// ---- a supervisor that was killed

TEST_F(SupervisedFarm, OneThatIsStartedAnewLosesNothingAndCountsEachDecisionOnce) {
  serve_triggers(2000);
  readout("readout1.hlt");
  readout("readout2.hlt");
  ToldNode& a = node("a");
  ToldNode& b = node("b");
  auto with = settings();
  with.nodes = 2;
  with.decisions = directory_.file("decisions");
  for (int life = 0; life < 4; ++life) {
    supervise(with);
    const std::uint64_t enough = std::min<std::uint64_t>(2000, ids_.size() + 300);
    ASSERT_TRUE(until([&] { return ids_.size() >= enough; })) << life;
    b.decides = life % 2 == 0;  // the killed supervisor leaves events and unsafe decisions, or only events
  }
  b.decides = true;
  ASSERT_TRUE(until([&] { return all_done(2000); }));
  supervisor_->stop();
  ASSERT_TRUE(over());
  const auto status = supervisor_->status();
  EXPECT_TRUE(status.adds_up);
  EXPECT_EQ(status.undecided + status.uncleared + status.waiting + status.assigned, 0U);
  // Each event is decided once, by either node.
  std::map<std::uint64_t, int> decided;
  for (const ToldNode* node : {&a, &b}) {
    for (const auto& [id, verdict] : node->decided) ++decided[id];
  }
  EXPECT_EQ(decided.size(), 2000U);
  for (const auto& [id, times] : decided) {
    const auto had = [id = id](const auto& event) { return event.id == id; };
    EXPECT_EQ(times, 1) << id << " came " << std::ranges::count_if(a.all, had) << " times to a, "
                        << std::ranges::count_if(b.all, had) << " to b";
  }
  std::ifstream file(directory_.file("decisions"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::set<std::uint64_t> kept;
  for (std::size_t at = 0; at + 9 <= bytes.size(); at += 9) {
    std::uint64_t id = 0;
    std::memcpy(&id, bytes.data() + at, sizeof id);
    kept.insert(id);
  }
  EXPECT_EQ(kept.size(), 2000U);
}

TEST_F(SupervisedFarm, WhatOnlyReadoutsKnowOfIsAssignedAfterAKill) {
  readout("readout.hlt");
  for (std::uint64_t id = 100; id < 130; ++id) happened(id);
  serve_triggers(0);
  ToldNode& a = node("a");
  auto with = settings();
  with.rebuild_time = 700ms;
  supervise(with);
  ASSERT_TRUE(until([&] {
    const std::set<std::uint64_t> ids = [&] {
      std::set<std::uint64_t> all;
      for (const auto& event : a.all) all.insert(event.id);
      return all;
    }();
    return ids.contains(100) && ids.contains(129);
  }));
}

TEST_F(SupervisedFarm, WhatWasNotToldOfAndComesToAReadoutLaterIsAssignedAsWell) {
  serve_triggers(60);
  KeepingReadout& one = readout("readout.hlt");
  // The trigger accepts the first twenty while the supervisor is absent.
  auto other = std::make_unique<trigger::TriggerSource>(*authority_, "other", 20);
  other->set_ready(true);
  std::vector<trigger::TriggerRange> taken;
  std::uint64_t before = 0;
  while (before < 20) before += other->take(20, taken);
  other.reset();
  ToldNode& a = node("a");
  auto with = settings();
  with.rebuild_time = 50ms;
  one.stands_still = true;
  supervise(with);
  ASSERT_TRUE(until([&] { return ids_.size() == 60; }));
  // All fragments are in the readout's builder.
  one.held.clear();
  one.newest.reset();
  one.stands_still = false;
  ASSERT_TRUE(until([&] { return seen("surveys") >= 3 && supervisor_->status().stage == farm::Stage::running; }));
  for (const std::uint64_t id : ids_) one.hold(id);
  ASSERT_TRUE(until([&] { return all_done(60); }));
  EXPECT_EQ(a.decided.size(), 60U);
  supervisor_->stop();
  ASSERT_TRUE(over());
  EXPECT_EQ(supervisor_->status().undecided, 0U);
}

TEST_F(SupervisedFarm, ReadoutsThatAreFullOfUntoldEventsAreDrainedThoughNewTriggersFillTheBooks) {
  KeepingReadout& one = readout("one.hlt");
  KeepingReadout& two = readout("two.hlt");
  one.most = 8;
  two.most = 5;
  serve_triggers(200);
  // The trigger accepts a hundred while the supervisor does not follow.
  auto other = std::make_unique<trigger::TriggerSource>(*authority_, "other", 100);
  other->set_ready(true);
  std::vector<trigger::TriggerRange> taken;
  while (ids_.size() < 100) {
    (void)other->take(100, taken);
    poll();
  }
  other.reset();
  ToldNode& a = node("a");
  a.can_decide = [&](std::uint64_t id) { return one.held.contains(id) && two.held.contains(id); };
  auto with = settings();
  with.rebuild_time = 50ms;
  // New triggers fill the supervisor before readouts say what they hold.
  one.stands_still = two.stands_still = true;
  supervise(with);
  ASSERT_TRUE(until([&] { return seen("offered") == 60 && a.events.size() == 8; }));
  one.stands_still = two.stands_still = false;
  ASSERT_TRUE(until([&] { return all_done(200) && one.outside.empty() && two.outside.empty(); }));
  EXPECT_GE(a.given_back, 8U);
  EXPECT_EQ(a.decided.size(), 200U);
  supervisor_->stop();
  ASSERT_TRUE(over());
  const auto status = supervisor_->status();
  EXPECT_TRUE(status.adds_up);
  EXPECT_EQ(status["given_back"], a.given_back);
  EXPECT_EQ(status["untold"], 100U) << "each is found several times and counts once";
  EXPECT_EQ(status.undecided, 0U);
}

TEST_F(SupervisedFarm, WhatIsUndecidedAtTheEndIsCountedOnce) {
  KeepingReadout& one = readout("one.hlt");
  serve_triggers(0);
  ToldNode& a = node("a");
  a.decides = false;
  auto with = settings();
  with.rebuild_time = 0s;
  with.drain_time = 200ms;
  supervise(with);
  for (std::uint64_t id = 1000; id < 1100; ++id) happened(id);
  ASSERT_TRUE(until([&] { return seen("surveys") >= 20; }));
  supervisor_->stop();
  ASSERT_TRUE(over());
  EXPECT_EQ(supervisor_->status().undecided, one.held.size());
}

TEST_F(SupervisedFarm, TriggersOfEventsThatReadoutsHadToldOfBeforeTakeNoRoom) {
  KeepingReadout& ahead = readout("readout.hlt");
  for (std::uint64_t id = 0; id < 200; ++id) happened(id);
  serve_triggers(10'000);
  authority_->hold_run(base::steady_now_ns());
  node("a");
  auto with = settings();
  with.rebuild_time = 0s;
  supervise(with);
  ASSERT_TRUE(until([&] { return ahead.held.empty(); }));
  authority_->release({}, base::steady_now_ns());
  EXPECT_TRUE(
      until([&] { return ids_.size() > 1000; }));  // the room for events that were over before their trigger is smaller
}

/// A recorder that sends invalid answers to questions about its ids.
class ConfusedRecorder {
 public:
  explicit ConfusedRecorder(const std::filesystem::path& bus)
      : replier_(
            {.name = "recorder", .service = "events", .bus = bus, .providers = {"tcp"}, .page_bytes = 4096, .pages = 8}) {}
  void poll() {
    std::vector<transport::Replier::Request> requests;
    std::vector<transport::Replier::Dropped> dropped;
    replier_.poll(base::steady_now_ns(), requests, dropped);
    const std::vector<std::byte> nonsense(1000, std::byte{0xee});
    const std::span<const std::byte> parts[] = {nonsense};
    for (const auto& request : requests) replier_.reply(request.client, request.number, 0, parts);
  }

 private:
  transport::Replier replier_;
};

TEST_F(SupervisedFarm, WhatARecorderDoesNotSpeakOfIsOnlyBuilt) {
  readout("readout.hlt");
  serve_triggers(1);
  detector_->set_ready(false);
  ConfusedRecorder recorder(bus_);
  ToldNode& a = node("a");
  auto with = settings();
  with.recorders = {"recorder"};
  with.rebuild_time = 50ms;
  supervise(with);
  for (std::uint64_t id = 0xf00000; id < 0xf00000 + 30; ++id) happened(id);
  ASSERT_TRUE(until([&] {
    recorder.poll();
    return all_done(30);
  }));
  EXPECT_EQ(counter("debug"), 30U);
  EXPECT_EQ(counter("untold"), 30U);
  EXPECT_EQ(counter("unasked"), 30U);
  EXPECT_TRUE(std::ranges::all_of(a.all, [](const auto& event) { return event.build_only(); }));
}

// ---- readouts

TEST_F(SupervisedFarm, WhatAReadoutSaidItHeldBeforeTheEndIsNotWhatItHoldsThen) {
  readout("other.hlt");
  KeepingReadout& one = readout("readout.hlt");
  serve_triggers(1);
  ToldNode& a = node("a");
  auto with = settings();
  with.rebuild_time = 50ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return all_done(1) && supervisor_->status().stage == farm::Stage::running; }));
  one.keeps_holdings = true;
  ASSERT_TRUE(until([&] { return one.kept() > 0; }));
  happened(0xf00000);
  supervisor_->stop();
  ASSERT_TRUE(until([&] { return supervisor_->status().stage == farm::Stage::draining; }));
  readouts_["other.hlt"]->held.clear();  // now no other readout reports the event
  one.send_holdings();
  ASSERT_TRUE(over());
  EXPECT_EQ(a.decided.count(0xf00000), 1U);
  EXPECT_EQ(supervisor_->status().undecided, 0U);
}

TEST_F(SupervisedFarm, ADecisionIsSafeOnlyWhenEachReadoutHasClearedTheEvent) {
  serve_triggers(10);
  readout("readout1.hlt");
  KeepingReadout& slow = readout("readout2.hlt");
  ToldNode& a = node("a", 20);
  a.decides = false;
  supervise(settings());
  ASSERT_TRUE(until([&] { return a.events.size() == 10; }));
  ASSERT_TRUE(until([&] { return now().readouts[1].connected; }));
  slow.stands_still = true;
  a.decides = true;
  ASSERT_TRUE(until([&] { return seen("accepted") + seen("rejected") == 10; }));
  for (int i = 0; i < 300; ++i) {
    poll();
    std::this_thread::sleep_for(100us);
  }
  EXPECT_EQ(a.kept(), 10U);
  slow.stands_still = false;
  ASSERT_TRUE(until([&] { return a.kept() == 0; }));
}

TEST_F(SupervisedFarm, NobodyWaitsForAReadoutThatHasDiedAndWhatItMissedItIsToldWhenItIsBack) {
  serve_triggers(200);
  readout("readout1.hlt");
  KeepingReadout& two = readout("readout2.hlt");
  ToldNode& a = node("a");
  auto with = settings();
  with.readout_silence = 100ms;
  supervise(with);
  ASSERT_TRUE(until([&] { return a.all.size() > 20; }));
  two.stands_still = true;
  ASSERT_TRUE(until([&] { return ids_.size() == 200 && a.kept() == 0; }));
  EXPECT_GE(counter("readouts_lost"), 1U);
  EXPECT_FALSE(two.held.empty());
  two.stands_still = false;
  ASSERT_TRUE(until([&] { return two.held.empty(); }));
  EXPECT_EQ(counter("accepted") + counter("rejected"), 200U);
  EXPECT_GE(counter("readouts_back"), 1U);
}

TEST_F(SupervisedFarm, ARefusedClearIsToldAgain) {
  serve_triggers(10);
  KeepingReadout& refusing = readout("readout.hlt");
  refusing.refuses = true;
  node("a");
  supervise(settings());
  ASSERT_TRUE(until([&] { return seen("clears_refused") > 1; }));
  refusing.refuses = false;
  ASSERT_TRUE(until([&] { return all_done(10); }));
}

TEST_F(SupervisedFarm, WhatNoReadoutHasAnyMoreCountsAsReadoutDied) {
  serve_triggers(10);
  readout("readout.hlt");
  node("a").always = Verdict::lost;
  supervise(settings());
  ASSERT_TRUE(until([&] { return all_done(10); }));
  EXPECT_EQ(counter("readout_died"), 10U);
}

// ---- no trigger

TEST_F(SupervisedFarm, WithoutATriggerEventsAreThoseThatReadoutsHoldAndTheRunEndsWithThem) {
  KeepingReadout& one = readout("readout1.hlt");
  KeepingReadout& two = readout("readout2.hlt");
  ToldNode& a = node("a");
  auto with = settings();
  with.rebuild_time = 50ms;
  supervise(with);
  std::uint64_t next = 0;
  ASSERT_TRUE(until([&] {
    if (next < 400) happened((next / 100 << 24) + next % 100), ++next;  // event counters are reset, too
    return next == 400 && all_done(400);
  }));
  one.ended = two.ended = true;
  ASSERT_TRUE(over());
  const auto status = supervisor_->status();
  EXPECT_EQ(status["offered"], 400U);
  EXPECT_EQ(status["accepted"] + status["rejected"], 400U);
  EXPECT_TRUE(status.adds_up);
  EXPECT_TRUE(until([&] { return a.over; }));
  std::set<std::uint64_t> all;
  for (const auto& event : a.all) EXPECT_TRUE(all.insert(event.id).second);
  EXPECT_EQ(all, ids_);
}

TEST_F(SupervisedFarm, WithoutATriggerTheRunEndsWhenAllReadoutsHaveGone) {
  readout("readout.hlt");
  ToldNode& a = node("a");
  auto with = settings();
  with.rebuild_time = 50ms;
  with.readout_grace = 100ms;
  supervise(with);
  for (std::uint64_t id = 0; id < 20; ++id) happened(id);
  ASSERT_TRUE(until([&] { return all_done(20); }));
  readouts_["readout.hlt"].reset();  // the readout ends without a message
  ASSERT_TRUE(over());
  EXPECT_EQ(a.decided.size(), 20U);
}

// ---- impossible nodes

TEST_F(SupervisedFarm, ANodeIsToldThatThereIsNoRunYet) {
  readout("readout.hlt");
  ToldNode& a = node("a");
  supervise(settings(), false);
  ASSERT_TRUE(until([&] { return a.refusal == static_cast<std::uint16_t>(formats::AssignmentRefusal::not_yet); }));
  supervisor_->start(8);
  ASSERT_TRUE(until([&] { return a.welcome && a.welcome->run_number == 8; }));
}

TEST_F(SupervisedFarm, ANameBelongsToOneNodeAndOneThatWasStartedAnewHoldsNothing) {
  serve_triggers(30);
  readout("readout.hlt");
  ToldNode& a = node("a");
  a.decides = false;
  supervise(settings());
  ASSERT_TRUE(until([&] { return a.events.size() == 8; }));
  ToldNode& other = node("a", 8, 2);
  ASSERT_TRUE(until([&] { return other.refusal == static_cast<std::uint16_t>(formats::AssignmentRefusal::name_taken); }));
  nodes_[0].reset();
  ASSERT_TRUE(until([&] { return all_done(30); }));
  EXPECT_EQ(counter("debug"), 8U);
}

TEST_F(SupervisedFarm, OneConnectionIsOneNodeThoughItSaysTwoNames) {
  serve_triggers(50);
  detector_->set_ready(false);
  readout("readout.hlt");
  supervise(settings());
  transport::Requester stranger({.name = "stranger", .bus = bus_, .pages = 8});
  const auto service = stranger.add("supervisor");
  std::vector<transport::Requester::Reply> replies;
  const auto answered = [&](std::size_t count) {
    return until([&] {
      stranger.poll(base::steady_now_ns(), replies);
      return stranger.connected(service) && replies.size() == count;
    });
  };
  const auto ask = [&](int kind, const auto& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    return stranger.ask(service, static_cast<std::uint16_t>(kind), std::span<const std::byte>(bytes), 20s).has_value();
  };
  ASSERT_TRUE(answered(0));
  ASSERT_TRUE(ask(1, formats::NodeHello{.instance = 5, .slots = 4, .name = "x"}));
  ASSERT_TRUE(answered(1));
  std::vector<std::byte> whole;
  formats::NodeWelcome welcome;
  ASSERT_TRUE(decode(replies[0].message.in_one_piece(whole), welcome));
  replies.clear();
  ASSERT_TRUE(ask(2, formats::NodeWork{.session = welcome.session, .granted = 4}));
  ASSERT_TRUE(ask(1, formats::NodeHello{.instance = 6, .slots = 0, .name = "y"}));
  ASSERT_TRUE(answered(2));
  EXPECT_EQ(replies[0].status, static_cast<std::uint16_t>(formats::AssignmentRefusal::say_hello));
  EXPECT_EQ(replies[1].outcome, transport::Requester::Outcome::answered);
  replies.clear();
  detector_->set_ready(true);
  ToldNode& a = node("a");
  ASSERT_TRUE(until([&] { return all_done(50); }));
  EXPECT_EQ(a.decided.size(), 50U);
  EXPECT_EQ(counter("debug"), 0U);
}

TEST_F(SupervisedFarm, NonsenseIsRefusedAndNothingElseHappens) {
  serve_triggers(50);
  readout("readout.hlt");
  ToldNode& a = node("a");
  supervise(settings());
  transport::Requester stranger({.name = "stranger", .bus = bus_, .pages = 8});
  const auto service = stranger.add("supervisor");
  std::vector<transport::Requester::Reply> replies;
  ASSERT_TRUE(until([&] {
    stranger.poll(base::steady_now_ns(), replies);
    return stranger.connected(service);
  }));
  std::vector<std::byte> nonsense(100, std::byte{0xee});
  std::vector<std::byte> no_session;
  encode(formats::NodeWork{.session = 5, .granted = UINT64_MAX}, no_session);
  std::vector<std::byte> no_name;
  encode(formats::NodeHello{}, no_name);
  std::vector<std::byte> newer;
  encode(formats::NodeHello{.version = 9, .name = "x"}, newer);
  for (const auto& [kind, bytes] :
       {std::pair{1, &nonsense}, {2, &nonsense}, {3, &nonsense}, {2, &no_session}, {1, &no_name}, {1, &newer}})
    ASSERT_TRUE(stranger.ask(service, static_cast<std::uint16_t>(kind), std::span<const std::byte>(*bytes), 20s));
  ASSERT_TRUE(until([&] {
    stranger.poll(base::steady_now_ns(), replies);
    return replies.size() == 6;
  }));
  std::multiset<std::uint16_t> said;
  for (const auto& reply : replies) {
    EXPECT_EQ(reply.outcome, transport::Requester::Outcome::refused);
    said.insert(reply.status);
  }
  EXPECT_EQ(said, (std::multiset<std::uint16_t>{1, 1, 1, 2, 2, 5}));
  replies.clear();
  ASSERT_TRUE(until([&] { return all_done(50); }));
  EXPECT_EQ(a.decided.size(), 50U);
  EXPECT_EQ(counter("bad_messages"), 3U);
}

}  // namespace
}  // namespace rodeo::test
