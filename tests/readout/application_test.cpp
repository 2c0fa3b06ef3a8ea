// The order in which the application makes, starts, stops and lets go, and what it refuses to set up.
#include "readout/application.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "readout/recording_components.h"

namespace rodeo::readout {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ApplicationTest : public ::testing::Test {
 protected:
  ApplicationTest() { testing::register_recording(registry_, script_); }

  static void run_to_end(Application& application) {
    while (application.phase() != Phase::stopped) {
      application.step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Error refusal(ReadoutSettings settings) {
    try {
      Application application(std::move(settings), registry_);
    } catch (const SetupError& error) {
      return error.error();
    }
    return {"", "was accepted"};
  }

  testing::Script script_;
  base::ComponentRegistry registry_;
  ReadoutSettings settings_ = testing::recording_settings();
};

TEST_F(ApplicationTest, StartsFromTheEndOfTheChainAndStopsFromItsBeginning) {
  {
    Application application(settings_, registry_);
    application.start();
    application.step();
    application.stop();
    run_to_end(application);
  }
  EXPECT_THAT(script_.noted(), ElementsAre("first started", "second started", "builder started", "input started",
                                           "input stopped", "builder joined", "first stopped", "second stopped",
                                           "second destroyed", "first destroyed", "builder destroyed", "input destroyed"));
}

TEST_F(ApplicationTest, EndsByItselfWhenTheInputEnds) {
  script_.events = 1;
  Application application(settings_, registry_);
  application.start();
  run_to_end(application);
  EXPECT_EQ(application.status().phase, Phase::stopped);
  EXPECT_TRUE(application.status().failure.empty());
}

TEST_F(ApplicationTest, AFailedConsumerStopsTheRunInOrder) {
  Application application(settings_, registry_);
  application.start();
  script_.fail_consumer = true;
  run_to_end(application);
  EXPECT_EQ(application.status().failure, "second: the disk is full");
  EXPECT_THAT(script_.noted(),
              ::testing::IsSupersetOf({"input stopped", "builder joined", "first stopped", "second stopped"}));
}

TEST_F(ApplicationTest, AFailedInputStopsTheRunInOrder) {
  Application application(settings_, registry_);
  application.start();
  script_.fail_input = true;
  run_to_end(application);
  EXPECT_EQ(application.status().failure, "The card is gone.");
  EXPECT_THAT(script_.noted(), ::testing::IsSupersetOf({"input stopped", "builder joined", "second stopped"}));
}

TEST_F(ApplicationTest, AConsumerThatCannotStartUndoesWhatWasStarted) {
  script_.refuse_start = true;
  Application application(settings_, registry_);
  EXPECT_THROW(application.start(), SetupError);
  EXPECT_THAT(script_.noted(), ElementsAre("first started", "first stopped"));
}

TEST_F(ApplicationTest, ADestroyedApplicationEndsItsRun) {
  {
    Application application(settings_, registry_);
    application.start();
  }
  EXPECT_THAT(script_.noted(), ::testing::IsSupersetOf({"input stopped", "second stopped", "input destroyed"}));
}

TEST_F(ApplicationTest, ARobWithoutLinksTakesAllOfTheInput) {
  Application application(settings_, registry_);
  ASSERT_EQ(script_.links_seen.size(), 4U);
  EXPECT_EQ(script_.links_seen[2].link_id, script_.links_seen[2].fid.default_link_id());
}

TEST_F(ApplicationTest, GroupsAreNeighbours) {
  settings_.robs[0].links_per_group = 2;
  Application application(settings_, registry_);
  EXPECT_EQ(script_.links_seen[1].group, 0U);
  EXPECT_EQ(script_.links_seen[2].group, 1U);
}

TEST_F(ApplicationTest, ALinkListedTwiceIsRefused) {
  settings_.robs[0].links = {Fid::of(0, 1, 0, 1), Fid::of(0, 1, 0, 1)};
  const Error error = refusal(settings_);
  EXPECT_EQ(error.code, "readout.duplicate_link");
  EXPECT_EQ(error.where, "test.toml:3:1");
  EXPECT_THAT(error.what, HasSubstr("0x1000001000010000"));
}

TEST_F(ApplicationTest, ALinkOfTwoRobsIsRefused) {
  settings_.robs.push_back(settings_.robs[0]);
  settings_.robs[1].source_id = SourceId{0x610002};
  EXPECT_EQ(refusal(settings_).code, "readout.duplicate_link");
}

TEST_F(ApplicationTest, TwoRobsWithOneSourceIdAreRefused) {
  settings_.robs.push_back(settings_.robs[0]);
  EXPECT_EQ(refusal(settings_).code, "readout.duplicate_rob");
}

TEST_F(ApplicationTest, ALinkThatTheInputDoesNotDeliverIsRefused) {
  settings_.robs[0].links = {Fid::of(0, 9, 0, 1)};
  const Error error = refusal(settings_);
  EXPECT_EQ(error.code, "readout.unknown_link");
  EXPECT_THAT(error.next, HasSubstr("4 links"));
}

TEST_F(ApplicationTest, WithoutARobNothingIsBuilt) {
  settings_.robs.clear();
  EXPECT_EQ(refusal(settings_).code, "readout.no_rob");
}

TEST_F(ApplicationTest, AnUnknownComponentIsRefusedWithItsPlace) {
  settings_.builder.type = "bild";
  const Error error = refusal(settings_);
  EXPECT_EQ(error.code, "base.unknown_component");
  EXPECT_EQ(error.where, "test.toml:2:1");
}

TEST_F(ApplicationTest, LinksAreRemovedAndRestoredByHand) {
  Application application(settings_, registry_);
  application.start();
  const Fid fid = Fid::of(0, 1, 0, 3);
  EXPECT_TRUE(application.set_link(fid, LinkState::removed));
  EXPECT_EQ(application.status().robs[0].builder.links[3].state, LinkState::removed);
  EXPECT_EQ(application.set_link(fid, LinkState::removed).error().code, "readout.link_state");
  EXPECT_TRUE(application.set_link(fid, LinkState::active));
  EXPECT_EQ(application.set_link(Fid::of(7, 7, 7, 7), LinkState::removed).error().code, "readout.no_such_link");
  EXPECT_EQ(application.take_messages().size(), 2U);
}

TEST_F(ApplicationTest, ALinkIsRemovedOnceAlsoWhileTheBuilderHasNotObeyedYet) {
  script_.builder_is_slow = true;
  Application application(settings_, registry_);
  application.start();
  const Fid fid = Fid::of(0, 1, 0, 3);
  EXPECT_TRUE(application.set_link(fid, LinkState::removed));
  EXPECT_EQ(application.status().robs[0].builder.links[3].state, LinkState::active);
  const Error again = application.set_link(fid, LinkState::removed).error();
  EXPECT_EQ(again.code, "readout.link_state");
  EXPECT_THAT(again.what, HasSubstr("is removed already"));
  EXPECT_TRUE(application.set_link(fid, LinkState::active));
  EXPECT_THAT(application.set_link(fid, LinkState::active).error().what, HasSubstr("is active already"));
}

TEST_F(ApplicationTest, ARobWhoseChunksAreDuplicatesIsTold) {
  Application application(settings_, registry_);
  application.start();
  script_.received = 100'000;
  script_.duplicates = 9'000;  // a link now and then
  application.step();
  EXPECT_TRUE(application.take_messages().empty());
  script_.duplicates = 90'000;
  application.stop();
  run_to_end(application);
  EXPECT_THAT(application.take_messages(),
              ElementsAre(HasSubstr("90000 of 100000 chunks of ROB 0x00610001 are duplicates")));
}

TEST_F(ApplicationTest, LinksAreNotChangedWhenNobodyWouldObey) {
  Application application(settings_, registry_);
  const Fid fid = Fid::of(0, 1, 0, 3);
  EXPECT_EQ(application.set_link(fid, LinkState::removed).error().code, "readout.not_running");
  application.start();
  application.stop();
  EXPECT_EQ(application.set_link(fid, LinkState::removed).error().code, "readout.not_running");
  run_to_end(application);
  EXPECT_EQ(application.set_link(fid, LinkState::removed).error().code, "readout.not_running");
  EXPECT_EQ(application.status().robs[0].builder.links[3].state, LinkState::active);
}

TEST_F(ApplicationTest, ASilentLinkIsRemovedByPolicyAndTakenBackWhenItDelivers) {
  settings_.link_policy.remove_after_events = 1000;
  Application application(settings_, registry_);
  application.start();
  const auto state = [&] { return application.status().robs[0].builder.links[0].state; };
  const auto step_until = [&](LinkState wanted) {
    while (state() != wanted) {
      application.step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  application.step();  // the first look
  script_.link_missing = 1000;
  step_until(LinkState::removed);
  EXPECT_TRUE(application.status().robs[0].builder.links[0].removed_by_policy);
  script_.link_chunks = 1;
  step_until(LinkState::active);
  EXPECT_THAT(application.take_messages(), ElementsAre(HasSubstr("removed by policy"), HasSubstr("restored by policy")));
}

}  // namespace
}  // namespace rodeo::readout
