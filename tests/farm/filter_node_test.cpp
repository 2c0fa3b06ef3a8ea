// A filter node with a scripted supervisor, scripted readouts and a real recorder: the result of each event.
#include "farm/node/filter_node.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "farm/node/configuration.h"
#include "farm/recorder/read_back.h"
#include "farm/recorder/recorder_server.h"
#include "farm/scripted_farm.h"
#include "formats/full_event.h"
#include "formats/temporary_directory.h"
#include "formats/whole_event.h"
#include "storage/event_file_reader.h"
#include "storage/file_verify.h"

namespace {

using namespace rodeo::farm;
using namespace rodeo::test;
using rodeo::Selected;
using rodeo::SourceId;
using rodeo::WholeEvent;
using rodeo::formats::AssignedEvent;
using rodeo::formats::EventDecision;
using rodeo::formats::Verdict;

/// A selection that calls a function.
class Selecting final : public rodeo::EventSelection {
 public:
  using Function = std::function<Selected(const WholeEvent&)>;
  Selecting(Function function, std::vector<SourceId> first) : function_(std::move(function)), first_(std::move(first)) {}
  std::vector<SourceId> first_robs() const override { return first_; }
  Selected select(const WholeEvent& event) override { return function_(event); }

 private:
  Function function_;
  std::vector<SourceId> first_;
};

struct Farm {
  TemporaryDirectory directory;
  std::string bus = directory.file("bus");
  ScriptedReadout one{made(bus), "one.hlt", {{0x510001}, {0x510002}}};
  ScriptedReadout two{bus, "two.hlt", {{0x520001}}};
  ScriptedSupervisor supervisor{bus, {"one.hlt", "two.hlt"}, {"recorder"}};
  RecorderSettings recorder_settings;
  std::unique_ptr<RecorderServer> recorder;
  NodeSettings settings;
  bool two_is_there = true;
  Selecting::Function selection = [](const WholeEvent&) { return Selected::accept(); };
  std::vector<SourceId> first;
  std::unique_ptr<FilterNode> node;

  static std::string made(const std::string& path) {
    std::filesystem::create_directories(path);
    return path;
  }

  Farm() {
    settings.network.bus = bus;
    settings.workers = 2;
    settings.slots = 8;
    recorder_settings.network.bus = bus;
    recorder_settings.files.directory = directory.file("files");
    recorder_settings.files.min_free_bytes = 0;
    recorder_settings.files.buffer_bytes = 64 << 10;
    start_recorder();
  }
  void start_recorder() {
    recorder = std::make_unique<RecorderServer>(recorder_settings);
    recorder->start(kRun);
  }
  void start() {
    node = std::make_unique<FilterNode>(settings, [this] { return std::make_unique<Selecting>(selection, first); });
    node->start(kRun);
  }
  void until(const std::function<bool()>& done) {
    while (!done()) {
      supervisor.poll();
      one.poll();
      if (two_is_there) two.poll();
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }
  void until_decided(std::size_t events) {
    until([&] { return supervisor.decisions.size() >= events; });
  }
  /// Waits until the node has built a whole event, and until no event is in flight or decided. Slow hosts need this if the
  /// grace of readouts is short.
  void until_it_knows_all() {
    std::uint64_t id = 1'000'000;
    until([&] {
      const bool whole =
          std::ranges::any_of(supervisor.decisions, [](const auto& said) { return !said.second.front().partial(); });
      if (!whole && supervisor.events.empty()) supervisor.assign(id++, 1);
      return whole && supervisor.events.empty() && node->status().slots_used == 0 && node->status().unsafe_decisions == 0 &&
             node->status()["assigned"] == id - 1'000'000;
    });
    supervisor.decisions.clear();
  }
  EventDecision only(std::uint64_t id) {
    const auto& said = supervisor.decisions[id];
    EXPECT_EQ(said.size(), 1U) << id;
    return said.empty() ? EventDecision{} : said.front();
  }
  /// Waits for a value of the status, which shows changes a moment late.
  void expect_counted(std::string_view name, std::uint64_t expected) {
    until([&] { return node->status()[name] >= expected; });
    EXPECT_EQ(node->status()[name], expected) << name;
  }

  struct Found {
    std::vector<std::byte> event;
    std::string file;
  };
  /// Ends the recorder, verifies each file, and returns the events by id.
  std::map<std::uint64_t, Found> recorded() {
    recorder->end();
    until([&] { return recorder->ended(); });
    recorder.reset();
    std::map<std::uint64_t, Found> events;
    for (const auto& entry : std::filesystem::directory_iterator(recorder_settings.files.directory)) {
      const auto bytes = read_file(entry.path());
      const auto report = rodeo::storage::verify_event_file(bytes);
      EXPECT_TRUE(report.sound() && report.ours())
          << entry.path() << ": " << (report.findings.total() > 0 ? report.findings.listed().front().what : "");
      auto reader = rodeo::storage::EventFileReader::open(bytes);
      for (auto block = reader->next(); block && *block; block = reader->next()) {
        const auto event = rodeo::formats::decode_full_event((*block)->stored);
        EXPECT_TRUE(events
                        .emplace(event->global_id,
                                 Found{{(*block)->stored.begin(), (*block)->stored.end()}, entry.path().filename()})
                        .second)
            << event->global_id << " occurs twice";
      }
    }
    return events;
  }
};

std::vector<std::uint32_t> robs_in(const std::vector<std::byte>& event) {
  std::vector<std::uint32_t> ids;
  const auto view = rodeo::formats::decode_full_event(event);
  std::vector<std::byte> buffer;
  (void)rodeo::formats::for_each_rob(*view->robs(buffer),
                                     [&](const auto& rob, auto) { ids.push_back(rob.source_id.value); });
  return ids;
}

TEST(FilterNode, WhatIsAcceptedIsInVerifiedFilesWithAllItsFragmentsBeforeItIsDecided) {
  Farm farm;
  farm.selection = [](const WholeEvent& event) {
    return event.robs.size() == 3 && event.find({0x520001}) != nullptr && event.global_id % 4 != 0
               ? Selected::accept({{.name = event.global_id % 4 == 1 ? "Main" : "Other"}})
               : Selected::reject();
  };
  farm.supervisor.assign(0x1'0000'0100, 200);
  farm.start();
  farm.until_decided(200);
  farm.until([&] { return farm.node->status().unsafe_decisions == 0; });
  const auto events = farm.recorded();
  EXPECT_EQ(events.size(), 150U);
  for (std::uint64_t id = 0x1'0000'0100; id < 0x1'0000'0100 + 200; ++id) {
    const bool accepted = id % 4 != 0;
    EXPECT_EQ(farm.only(id).verdict, accepted ? Verdict::accepted : Verdict::rejected);
    EXPECT_EQ(farm.only(id).flags, 0);
    ASSERT_EQ(events.contains(id), accepted) << id;
    if (!accepted) continue;
    EXPECT_EQ(farm.only(id).bytes, events.at(id).event.size());
    EXPECT_NE(events.at(id).file.find(id % 4 == 1 ? "physics_Main" : "physics_Other"), std::string::npos);
  }
  const auto event = rodeo::formats::decode_full_event(events.at(0x1'0000'0101).event);
  EXPECT_EQ(robs_in(events.at(0x1'0000'0101).event), (std::vector<std::uint32_t>{0x510001, 0x510002, 0x520001}));
  EXPECT_EQ(event->run_number, kRun);
  EXPECT_EQ(event->lumi_block, 1U);
  EXPECT_EQ(event->l1id.value, 0x101U);
  EXPECT_EQ(event->bcid, 5U);
  EXPECT_EQ(event->trigger_type, 9U);
  EXPECT_EQ(event->status[0], 0U);
  EXPECT_EQ(event->hlt_info.to_vector(), (std::vector<std::uint32_t>{rodeo::formats::kFarmInfo, 3, 0}));
  EXPECT_TRUE(event->checksum_holds());
}

TEST(FilterNode, FragmentsThatAreLateAreAskedForAgain) {
  Farm farm;
  farm.two.says = [](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t times) {
    if (times < 3) return append_absent(answer, rob, id, rodeo::formats::kRobPending);
    rodeo::formats::append_bytes(answer, rob_of(rob, id));
  };
  farm.supervisor.assign(1, 20);
  farm.start();
  farm.until_decided(20);
  for (std::uint64_t id = 1; id <= 20; ++id) EXPECT_EQ(farm.only(id).flags, 0) << id;
  farm.expect_counted("pending", 60);
  EXPECT_EQ(farm.recorded().size(), 20U);
}

TEST(FilterNode, WhatLacksFragmentsIsFlaggedAndGoesToADebugStreamUnseenByTheSelection) {
  Farm farm;
  std::atomic<int> seen{0};
  farm.selection = [&](const WholeEvent& event) {
    if (event.global_id % 6 != 0) ++seen;
    return Selected::accept();
  };
  farm.two.says = [](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t) {
    switch (id.value % 6) {
      case 0: return rodeo::formats::append_bytes(answer, rob_of(rob, id));
      case 1: return append_absent(answer, rob, id, rodeo::formats::kRobLost);
      case 2: return rodeo::formats::append_bytes(answer, rob_of(rob, {id.value + 1}));
      case 3: return rodeo::formats::append_bytes(answer, rob_of(rob, id, kRun + 1));
      case 4: return rodeo::formats::append_bytes(answer, std::vector<std::byte>(40, std::byte{0x5a}));
      default: return rodeo::formats::append_bytes(answer, rob_of({0x990000}, id));
    }
  };
  farm.supervisor.assign(60, 60);
  farm.start();
  farm.until_decided(60);
  EXPECT_EQ(seen, 0);
  for (const char* counter : {"lost_by_readout", "wrong_l1id", "wrong_run", "unreadable_replies", "unknown_robs"})
    farm.expect_counted(counter, 10);
  farm.until([&] { return farm.node->status().readouts.at(1).lost_fragments == 50; });
  EXPECT_EQ(farm.node->status().readouts.at(0).lost_fragments, 0U);
  const auto events = farm.recorded();
  ASSERT_EQ(events.size(), 60U);
  for (std::uint64_t id = 60; id < 120; ++id) {
    const bool partial = id % 6 != 0;
    EXPECT_EQ(farm.only(id).verdict, partial ? Verdict::debug : Verdict::accepted);
    EXPECT_EQ(farm.only(id).partial(), partial);
    const auto& found = events.at(id);
    EXPECT_EQ(found.file.find("debug_NodePartial") != std::string::npos, partial) << found.file;
    EXPECT_EQ(robs_in(found.event), (std::vector<std::uint32_t>{0x510001, 0x510002, 0x520001}))
        << "an empty ROB stands for the missing ones";
    const auto event = rodeo::formats::decode_full_event(found.event);
    EXPECT_EQ((event->status[0] & rodeo::formats::event_status::kPartial) != 0, partial);
  }
}

TEST(FilterNode, AReadoutThatDoesNotAnswerCostsItsFragmentsAndNothingElse) {
  Farm farm;
  farm.supervisor.event_timeout = std::chrono::milliseconds{600};
  farm.two.silent = true;
  farm.supervisor.assign(1, 10);
  farm.start();
  farm.until_decided(10);
  for (std::uint64_t id = 1; id <= 10; ++id) {
    EXPECT_EQ(farm.only(id).verdict, Verdict::debug);
    EXPECT_TRUE(farm.only(id).partial());
  }
  farm.expect_counted("lost_timed_out", 10);
  EXPECT_EQ(farm.two.fetches, 10U) << "a slow readout gets each request once";
  EXPECT_EQ(farm.recorded().size(), 10U);
}

TEST(FilterNode, AReadoutThatIsSlowIsAskedOnceAndItsAnswersAreTaken) {
  Farm farm;
  farm.supervisor.event_timeout = std::chrono::minutes{10};
  farm.two.slow = true;
  farm.supervisor.assign(1, 8);
  farm.start();
  farm.until([&] { return farm.two.fetches == 8; });
  const auto asked = std::chrono::steady_clock::now();
  farm.until([&] { return std::chrono::steady_clock::now() > asked + std::chrono::milliseconds{700}; });
  farm.two.slow = false;
  farm.until_decided(8);
  for (std::uint64_t id = 1; id <= 8; ++id) EXPECT_FALSE(farm.only(id).partial());
  farm.expect_counted("network_late_replies", 0);
  farm.expect_counted("asked_again", 0);
  EXPECT_EQ(farm.two.fetches, 8U);
}

TEST(FilterNode, WhatWasBegunBeforeAllReadoutsWereKnownIsPartial) {
  Farm farm;
  farm.settings.readout_grace = std::chrono::milliseconds{100};
  farm.two_is_there = false;
  farm.start();
  // On a slow host the node may not know the only readout yet, and gives the event up: then the test assigns another event.
  std::uint64_t id = 0;
  farm.until([&] {
    if (farm.supervisor.decisions.empty() && farm.supervisor.events.empty()) farm.supervisor.assign(++id, 1);
    return !farm.supervisor.decisions.empty();
  });
  const std::uint64_t decided = farm.supervisor.decisions.begin()->first;
  EXPECT_EQ(farm.only(decided).verdict, Verdict::debug);
  EXPECT_TRUE(farm.only(decided).partial());
  const auto events = farm.recorded();
  ASSERT_TRUE(events.contains(decided));
  const auto& event = events.at(decided).event;
  EXPECT_EQ(robs_in(event), (std::vector<std::uint32_t>{0x510001, 0x510002})) << "unknown ROBs of a readout are not listed";
  EXPECT_NE(rodeo::formats::decode_full_event(event)->status[0] & rodeo::formats::event_status::kPartial, 0U);
}

TEST(FilterNode, WhatNoReadoutHasIsLostAndNothingIsRecorded) {
  Farm farm;
  for (ScriptedReadout* readout : {&farm.one, &farm.two})
    readout->says = [](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t) {
      append_absent(answer, rob, id, rodeo::formats::kRobLost);
    };
  farm.supervisor.assign(1, 5);
  farm.start();
  farm.until_decided(5);
  for (std::uint64_t id = 1; id <= 5; ++id) EXPECT_EQ(farm.only(id).verdict, Verdict::lost);
  EXPECT_TRUE(farm.recorded().empty());
}

TEST(FilterNode, OlderEventsGetTheRoomOfTheNewestThatWaitForFragments) {
  Farm farm;
  bool pending = false;
  farm.two.says = [&](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t) {
    if (pending && id.value >= 100) return append_absent(answer, rob, id, rodeo::formats::kRobPending);
    rodeo::formats::append_bytes(answer, rob_of(rob, id));
  };
  farm.supervisor.event_timeout = std::chrono::minutes{10};
  farm.start();
  farm.until_it_knows_all();
  pending = true;
  farm.supervisor.assign(100, 8);
  const std::uint64_t fetches = farm.two.fetches;
  farm.until([&] { return farm.two.fetches >= fetches + 8; });
  farm.supervisor.newer_than = 103;
  farm.supervisor.give_back = 3;
  farm.until_decided(3);
  for (const std::uint64_t id : {105, 106, 107}) EXPECT_EQ(farm.only(id).verdict, Verdict::given_back);
  farm.supervisor.assign(1, 3);
  farm.until_decided(6);
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_EQ(farm.only(id).verdict, Verdict::accepted);
  farm.supervisor.give_back = 100;
  farm.until([&] { return farm.supervisor.decisions.contains(104); });
  farm.expect_counted("given_back", 4);
  EXPECT_EQ(farm.only(104).verdict, Verdict::given_back);
  pending = false;
  farm.until_decided(11);
  for (std::uint64_t id = 100; id < 104; ++id) EXPECT_EQ(farm.only(id).verdict, Verdict::accepted);
}

TEST(FilterNode, WhatHasBeenLookedForLongEnoughIsLostWhenNoReadoutBringsIt) {
  Farm farm;
  bool pending = false;
  for (ScriptedReadout* readout : {&farm.one, &farm.two})
    readout->says = [&](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t) {
      if (pending) return append_absent(answer, rob, id, rodeo::formats::kRobPending);
      rodeo::formats::append_bytes(answer, rob_of(rob, id));
    };
  farm.start();
  farm.until_it_knows_all();
  pending = true;
  farm.supervisor.event_timeout = std::chrono::milliseconds{400};
  farm.supervisor.start_anew();  // the welcome has the time-out
  farm.supervisor.assign(1, 1, AssignedEvent::kBuildOnly);
  farm.supervisor.assign(2, 1, AssignedEvent::kBuildOnly | AssignedEvent::kLast);
  farm.until_decided(1);
  EXPECT_EQ(farm.only(2).verdict, Verdict::lost);
  farm.expect_counted("given_up", 1);
  EXPECT_FALSE(farm.supervisor.decisions.contains(1)) << "its fragments may still come";
}

TEST(FilterNode, WhatReadoutsThatCannotBeReachedMayHoldIsNotLost) {
  Farm farm;
  farm.settings.readout_grace = std::chrono::milliseconds{100};
  farm.supervisor.event_timeout = std::chrono::minutes{10};  // lasts on a slow host from the assignments to the two cuts
  farm.start();
  farm.until_it_knows_all();
  const std::uint64_t before = farm.node->status()["given_up"];
  const std::uint64_t fetches = farm.one.fetches;
  farm.one.silent = farm.two.silent = true;
  farm.supervisor.assign(1, 5);
  farm.until([&] { return farm.one.fetches >= fetches + 5; });
  farm.one.cut();
  farm.two.cut();
  farm.until([&] { return farm.node->status()["given_up"] >= before + 5; });
  EXPECT_TRUE(farm.supervisor.decisions.empty()) << "a decision that it is lost would make readouts clear it";
  EXPECT_GE(farm.node->status()["lost_readout_away"], 15U);
}

TEST(FilterNode, WhileNoReadoutCanBeReachedANodeOffersNoRoom) {
  Farm farm;
  farm.settings.readout_grace = std::chrono::milliseconds{100};
  farm.start();
  farm.until_it_knows_all();
  const std::uint64_t before = farm.node->status()["assigned"];
  farm.one.cut();
  farm.two.cut();
  farm.until([&] { return std::ranges::none_of(farm.node->status().readouts, &NodeStatus::Peer::connected); });
  farm.supervisor.assign(2, 1000);
  // The supervisor may use room that the node has offered before. The node gives up events that arrive now.
  farm.until([&] { return farm.node->status()["assigned"] > before && farm.node->status().slots_used == 0; });
  EXPECT_LE(farm.node->status()["assigned"], before + farm.settings.slots);
  EXPECT_GE(farm.supervisor.events.size(), 1000U - farm.settings.slots);
}

TEST(FilterNode, AnEventMayBeLargerThanMessagesAreElsewhereAndCostsNoConnection) {
  Farm farm;
  farm.settings.most_event_bytes = std::uint64_t{128} << 20;
  farm.settings.record_timeout = std::chrono::minutes{5};  // suffices for a slow host
  farm.supervisor.event_timeout = std::chrono::minutes{20};
  farm.one.says = [](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t) {
    rodeo::formats::append_bytes(answer, rob_of(rob, id, kRun, id.value == 3 ? std::size_t{33} << 20 : 100));
  };
  farm.supervisor.assign(1, 10);
  farm.start();
  farm.until_decided(10);
  EXPECT_EQ(farm.node->status()["network_connections"], 4U) << "supervisor, two readouts, recorder: one each";
  const auto events = farm.recorded();
  ASSERT_EQ(events.size(), 10U);
  EXPECT_GT(events.at(3).event.size(), std::size_t{66} << 20);
}

TEST(FilterNode, AnEventOfWhichNothingCanBeTakenEndsAtItsSecondAssignment) {
  Farm farm;
  for (ScriptedReadout* readout : {&farm.one, &farm.two})
    readout->says = [](auto& answer, SourceId rob, rodeo::L1Id id, std::uint32_t) {
      rodeo::formats::append_bytes(answer, rob_of(rob, id, kRun + 1));
    };
  farm.supervisor.assign(1, 3);
  farm.start();
  farm.until([&] { return farm.node->status()["given_up"] >= 3; });
  EXPECT_TRUE(farm.supervisor.decisions.empty()) << "another node may get the fragments";
  farm.supervisor.assign(1, 3, AssignedEvent::kBuildOnly);
  farm.until_decided(3);
  const auto events = farm.recorded();
  ASSERT_EQ(events.size(), 3U);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(farm.only(id).verdict, Verdict::debug);
    EXPECT_TRUE(farm.only(id).partial());
    EXPECT_EQ(robs_in(events.at(id).event).size(), 3U) << "an empty ROB stands for each missing one";
  }
}

TEST(FilterNode, WhatIsAssignedASecondTimeIsBuiltAndNotSelected) {
  Farm farm;
  std::atomic<bool> seen{false};
  farm.selection = [&](const WholeEvent&) {
    seen = true;
    return Selected::reject();
  };
  farm.supervisor.assign(1, 5, AssignedEvent::kBuildOnly);
  farm.start();
  farm.until_decided(5);
  EXPECT_FALSE(seen);
  EXPECT_EQ(farm.only(3).verdict, Verdict::debug);
  EXPECT_TRUE(farm.only(3).build_only());
  const auto events = farm.recorded();
  ASSERT_EQ(events.size(), 5U);
  EXPECT_NE(events.at(3).file.find("debug_NodeBuildOnly"), std::string::npos);
  EXPECT_EQ(rodeo::formats::decode_full_event(events.at(3).event)->status[0], rodeo::formats::event_status::kRecovered);
}

TEST(FilterNode, ASelectionThatThrowsOrTalksNonsenseFailsItsEventAlone) {
  Farm farm;
  farm.selection = [](const WholeEvent& event) -> Selected {
    switch (event.global_id % 6) {
      case 0: throw std::runtime_error("no");
      case 1: throw 5;
      case 2: return Selected::accept({});
      case 3: return Selected::accept({{.name = "../../etc"}});
      case 4: return Selected::more({{0x990000}});
      default: return Selected::accept();
    }
  };
  farm.supervisor.assign(60, 60);
  farm.start();
  farm.until_decided(60);
  for (std::uint64_t id = 60; id < 120; ++id)
    EXPECT_EQ(farm.only(id).verdict, id % 6 == 5 ? Verdict::accepted : Verdict::debug) << id;
  farm.expect_counted("selection_failed", 20);
  farm.expect_counted("bad_selection", 30);
  EXPECT_FALSE(farm.node->take_messages().empty());
  const auto events = farm.recorded();
  EXPECT_EQ(events.size(), 60U);
  EXPECT_NE(events.at(60).file.find("debug_NodeSelection"), std::string::npos);
  EXPECT_EQ(rodeo::formats::decode_full_event(events.at(60).event)->status[0],
            rodeo::formats::event_status::kProcessingProblem);
}

TEST(FilterNode, InStepsOnlyWhatTheSelectionWantsIsFetchedUntilItAccepts) {
  Farm farm;
  farm.settings.building = Building::steps;
  farm.first = {{0x510002}};
  farm.selection = [](const WholeEvent& event) {
    if (event.step == 0) {
      EXPECT_EQ(event.robs.size(), 1U);
      return event.global_id % 3 == 0 ? Selected::reject() : Selected::more({{0x520001}});
    }
    EXPECT_EQ(event.robs.size(), 2U);
    return event.global_id % 3 == 1 ? Selected::accept() : Selected::reject();
  };
  farm.supervisor.assign(30, 30);
  farm.start();
  farm.until_decided(30);
  EXPECT_EQ(farm.two.fetches, 20U) << "two thirds of the events need it";
  EXPECT_EQ(farm.one.fetches, 40U) << "and once more for the accepted third";
  const auto events = farm.recorded();
  EXPECT_EQ(events.size(), 10U);
  EXPECT_EQ(robs_in(events.at(31).event).size(), 3U);
}

TEST(FilterNode, DecisionsAreKeptUntilTheyAreSafeAndToldToASupervisorThatWasStartedAnew) {
  Farm farm;
  farm.supervisor.makes_safe = false;
  farm.supervisor.assign(1, 20);
  farm.start();
  farm.until_decided(20);
  farm.supervisor.decisions.clear();
  farm.supervisor.start_anew();
  farm.until_decided(20);
  ASSERT_GE(farm.supervisor.hellos.size(), 2U);
  EXPECT_EQ(farm.supervisor.hellos.back().decisions.size(), 20U);
  EXPECT_TRUE(farm.supervisor.hellos.back().events.empty());
  EXPECT_EQ(farm.supervisor.hellos.front().instance, farm.supervisor.hellos.back().instance);
  farm.supervisor.makes_safe = true;
  farm.supervisor.assign(21, 20);
  farm.supervisor.over_when_done = true;
  farm.until([&] { return farm.node->ended(); });
  EXPECT_TRUE(farm.node->status().over);
  EXPECT_EQ(farm.node->status().unsafe_decisions, 0U);
  EXPECT_EQ(farm.recorded().size(), 40U);
}

TEST(FilterNode, ARecorderThatIsStartedAnewGetsWhatItHasNotAcknowledged) {
  Farm farm;
  farm.recorder.reset();
  farm.supervisor.assign(1, 8);
  farm.start();
  farm.until([&] { return farm.node->status().recording == 8; });
  EXPECT_TRUE(farm.supervisor.decisions.empty()) << "no decision before the event is safe";
  farm.start_recorder();
  farm.until_decided(8);
  EXPECT_EQ(farm.recorded().size(), 8U);
}

// The recorder was killed before it answered, and is back before it has read its files.
TEST(FilterNode, ARecorderThatMayHaveAnEventAndIsNotReadyIsAskedAgainAndNoOther) {
  using rodeo::formats::RecordStatus;
  Farm farm;
  farm.supervisor.recorders = {"first", "second"};
  farm.settings.record_timeout = std::chrono::milliseconds{50};
  ScriptedRecorder first(farm.bus, "first");
  ScriptedRecorder second(farm.bus, "second");
  for (ScriptedRecorder* recorder : {&first, &second}) {
    recorder->script = {std::nullopt, RecordStatus::not_ready, RecordStatus::not_ready};
    recorder->after_script = RecordStatus::had_already;
  }
  farm.supervisor.assign(1, 1);
  farm.start();
  farm.until([&] {
    first.poll();
    second.poll();
    return !farm.supervisor.decisions.empty();
  });
  EXPECT_EQ(farm.only(1).verdict, Verdict::accepted);
  EXPECT_GE(std::max(first.asked.size(), second.asked.size()), 4U);  // a slow machine asks again, and so more often
  EXPECT_EQ(std::min(first.asked.size(), second.asked.size()), 0U) << "else the event would be recorded twice";
  farm.expect_counted("had_already", 1);
}

// An earlier node had the event recorded and died. Its decision is lost, but the result is in the file.
TEST(FilterNode, AnEventThatARecorderHasAlreadyIsWhatThatCopyWasRecordedAs) {
  using rodeo::formats::RecordStatus;
  Farm farm;
  farm.supervisor.recorders = {"first"};
  ScriptedRecorder first(farm.bus, "first");
  first.script = {RecordStatus::had_already, RecordStatus::had_already_debug};
  farm.supervisor.assign(1, 1, AssignedEvent::kBuildOnly);
  farm.start();
  const auto until_decided = [&](std::size_t events) {
    farm.until([&] {
      first.poll();
      return farm.supervisor.decisions.size() == events;
    });
  };
  until_decided(1);
  EXPECT_EQ(farm.only(1).verdict, Verdict::accepted) << "this node only built it, and an earlier node accepted it";
  farm.supervisor.assign(2, 1);
  until_decided(2);
  EXPECT_EQ(farm.only(2).verdict, Verdict::debug) << "this node would accept it, but the file has it as debug";
  farm.expect_counted("had_already", 2);
}

TEST(FilterNode, AnEventThatARecorderSaysIsAnotherNodesIsLetGo) {
  using rodeo::formats::RecordStatus;
  Farm farm;
  farm.supervisor.recorders = {"first", "second"};
  ScriptedRecorder first(farm.bus, "first");
  ScriptedRecorder second(farm.bus, "second");
  first.script = second.script = {RecordStatus::taken_over};
  farm.supervisor.assign(1, 1);
  farm.start();
  farm.until([&] {
    first.poll();
    second.poll();
    return farm.node->status()["let_go"] == 1;
  });
  EXPECT_EQ(first.asked.size() + second.asked.size(), 1U) << "the node tries no other recorder";
  EXPECT_TRUE(farm.supervisor.decisions.empty());
}

TEST(FilterNode, ARecorderThatIsNotReadyAndCannotHaveTheEventIsPassedOver) {
  using rodeo::formats::RecordStatus;
  Farm farm;
  farm.supervisor.recorders = {"first", "second"};
  ScriptedRecorder first(farm.bus, "first");
  ScriptedRecorder second(farm.bus, "second");
  first.script.assign(100, RecordStatus::not_ready);
  farm.supervisor.assign(1, 20);
  farm.start();
  farm.until([&] {
    first.poll();
    second.poll();
    return farm.supervisor.decisions.size() == 20;
  });
  EXPECT_EQ(second.asked.size(), 20U);
}

TEST(FilterNode, AnEventThatIsAssignedAgainWhileItIsSelectedIsBuiltOnly) {
  Farm farm;
  farm.settings.workers = 1;
  std::atomic<bool> go{false};
  std::atomic<int> shown{0};
  farm.selection = [&](const WholeEvent&) {
    ++shown;
    while (!go) std::this_thread::yield();
    return Selected::reject();
  };
  farm.supervisor.assign(1, 1);
  farm.start();
  farm.until([&] { return shown == 1; });
  farm.supervisor.assign(1, 1, AssignedEvent::kBuildOnly);
  farm.until_decided(1);
  EXPECT_EQ(farm.only(1).verdict, Verdict::debug);
  EXPECT_TRUE(farm.only(1).build_only());
  go = true;
  farm.until([&] { return farm.node->status().slots_used == 0; });
  EXPECT_EQ(farm.only(1).verdict, Verdict::debug) << "the result of the first assignment is not used";
}

TEST(FilterNode, SelectionsThatDoNotComeBackAreSaidAndSoIsThatTheyDid) {
  Farm farm;
  farm.settings.workers = 2;
  farm.supervisor.event_timeout = std::chrono::milliseconds{100};
  std::atomic<int> shown{0};
  std::atomic<bool> go{false};
  farm.selection = [&](const WholeEvent&) {
    ++shown;
    while (!go) std::this_thread::yield();
    return Selected::reject();
  };
  farm.supervisor.assign(1, 1);
  farm.start();
  farm.until([&] { return farm.node->status().hanging == 1; });
  farm.supervisor.assign(2, 1);
  farm.until([&] { return shown == 2; });
  farm.until([&] { return farm.node->status().hanging == 2; });
  EXPECT_NE(farm.node->take_messages().back().find(" hangs: "), std::string::npos);
  EXPECT_GE(farm.node->status().selecting_longest_ns, 100'000'000U);
  go = true;
  farm.until([&] { return farm.node->status().hanging == 0; });
  farm.until_decided(2);
  EXPECT_NE(farm.node->take_messages().back().find("works again"), std::string::npos);
}

TEST(FilterNode, AnotherRunEndsTheNodeWithAReason) {
  Farm farm;
  farm.node =
      std::make_unique<FilterNode>(farm.settings, [&] { return std::make_unique<Selecting>(farm.selection, farm.first); });
  farm.node->start(kRun + 1);
  farm.until([&] { return farm.node->ended(); });
  EXPECT_NE(farm.node->status().failure.find("run 7"), std::string::npos) << farm.node->status().failure;
}

TEST(FilterNode, WhatIsUnderWayIsFinishedAtTheEnd) {
  Farm farm;
  farm.supervisor.assign(1, 1000);
  farm.start();
  farm.until_decided(50);
  farm.node->end();
  farm.until([&] { return farm.node->ended(); });
  EXPECT_EQ(farm.node->status().slots_used, 0U);
  EXPECT_EQ(farm.node->status().unsafe_decisions, 0U);
  EXPECT_EQ(farm.recorded().size(), farm.supervisor.decisions.size());
}

TEST(FilterNodeSettings, AReadoutIsToldToWaitForNoLongerThanARequestCanSay) {
  const auto keys = node_settings().keys();
  const auto wait = std::ranges::find(keys, "fetch_wait", &rodeo::Key::name);
  ASSERT_NE(wait, keys.end());
  EXPECT_EQ(wait->minimum, 0);
  EXPECT_EQ(wait->maximum, 1e3 * rodeo::formats::kMostFetchWaitUs);
}

}  // namespace
