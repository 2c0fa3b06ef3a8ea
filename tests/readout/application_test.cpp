// The order in which the application makes, starts, stops and releases its parts, and the setups that it refuses.
#include "readout/application.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "input/generator_input.h"
#include "readout/builder/gbt_builder.h"
#include "readout/check.h"
#include "readout/fragment_meter.h"
#include "readout/fragment_pool.h"
#include "readout/recording_components.h"

namespace rodeo::readout {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// While this object exists, the process has address space for the stacks of only this number of further threads.
class ThreadsLeft {
 public:
  explicit ThreadsLeft(std::size_t threads) {
    constexpr std::size_t kStack = std::size_t{512} << 20;
    pthread_getattr_default_np(&attributes_);
    pthread_attr_t large;
    pthread_getattr_default_np(&large);
    pthread_attr_setstacksize(&large, kStack);
    EXPECT_EQ(pthread_setattr_default_np(&large), 0);
    pthread_attr_destroy(&large);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &limit_);
    const rlimit little{pages * static_cast<std::size_t>(getpagesize()) + threads * kStack + kStack / 2, limit_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  ~ThreadsLeft() {
    setrlimit(RLIMIT_AS, &limit_);
    pthread_setattr_default_np(&attributes_);
    pthread_attr_destroy(&attributes_);
  }
  ThreadsLeft(const ThreadsLeft&) = delete;
  ThreadsLeft& operator=(const ThreadsLeft&) = delete;

 private:
  pthread_attr_t attributes_{};
  rlimit limit_{};
};

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

TEST_F(ApplicationTest, AConsumerThatHoldsUpTheEndIsToldToGiveUp) {
  script_.hold_stop = true;
  settings_.stop_limit = std::chrono::milliseconds{12};
  Application application(settings_, registry_);
  application.start();
  application.stop();
  EXPECT_TRUE(application.stopping());
  application.give_up();
  run_to_end(application);
  EXPECT_FALSE(script_.hold_stop);
}

TEST_F(ApplicationTest, SaysThatChunksMayWaitForLongerThanTheirEvents) {
  EXPECT_TRUE(warnings_of(settings_).empty());
  settings_.input.type = "generator";
  settings_.input.parameters.set("flush", std::int64_t{200'000'000});
  settings_.builder.parameters.set("timeout", std::int64_t{10'000'000});
  ASSERT_EQ(warnings_of(settings_).size(), 1U);
  EXPECT_THAT(warnings_of(settings_).front(), HasSubstr("readout.builder.timeout"));
  settings_.builder.parameters.set("timeout", std::int64_t{300'000'000});
  EXPECT_TRUE(warnings_of(settings_).empty());
}

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

// 65 threads use 64 lanes, so the first and the last thread share one.
TEST(FragmentMeter, CountsEveryFragmentOfMoreThreadsThanItHasLanes) {
  constexpr std::uint64_t kThreads = 65;
  constexpr std::uint64_t kMore = 500'000;
  const auto meter = std::make_unique<FragmentMeter>();
  const rodeo::test::FragmentPool pool;
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    std::atomic<bool> known{false};
    threads.emplace_back([&, i] {
      const FragmentPtr fragment = pool.make(i);
      meter->insert(fragment);
      known = true;
      known.notify_one();
      if (i != 0 && i != kThreads - 1) return;
      go.wait(false);
      for (std::uint64_t n = 0; n < kMore; ++n) meter->insert(fragment);
    });
    known.wait(false);
  }
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(meter->fragments(), kThreads + 2 * kMore);
}

TEST_F(ApplicationTest, OneThatIsHeldHasMadeEverythingAndStartsNothing) {
  Application application(settings_, registry_);
  application.hold();
  EXPECT_EQ(application.phase(), Phase::ready);
  application.step();
  application.stop();
  EXPECT_EQ(application.phase(), Phase::ready) << "there is nothing to stop";
  EXPECT_TRUE(script_.noted().empty());
  EXPECT_EQ(application.set_link(Fid::of(0, 1, 0, 0), LinkState::removed).error().code, "readout.not_running");
}

TEST_F(ApplicationTest, AHeldOneTakesItsRunBeforeItStarts) {
  Application application(settings_, registry_);
  application.hold();
  application.set_run(1234, 2);
  EXPECT_EQ(application.status().run_number, 1234U);
  EXPECT_EQ(run_info().run_number, 1234U);
  EXPECT_EQ(run_info().run_type, 2U);
  application.start();
  EXPECT_EQ(application.phase(), Phase::running);
  application.hold();
  EXPECT_EQ(application.phase(), Phase::running) << "a run that goes on is not held";
  application.stop();
  run_to_end(application);
}

TEST_F(ApplicationTest, AHeldOneThatIsNotWantedLeavesWithoutARun) {
  {
    Application(settings_, registry_).hold();
  }
  EXPECT_THAT(script_.noted(), ElementsAre("second destroyed", "first destroyed", "builder destroyed", "input destroyed"));
}

TEST_F(ApplicationTest, EndsByItselfWhenTheInputEnds) {
  script_.events = 1;
  Application application(settings_, registry_);
  application.start();
  run_to_end(application);
  EXPECT_EQ(application.status().phase, Phase::stopped);
  EXPECT_TRUE(application.status().failure.empty());
}

TEST_F(ApplicationTest, ARunWhoseInputEndedByItselfIsDraining) {
  script_.events = 1;
  script_.hold_stop = true;
  Application application(settings_, registry_);
  application.start();
  while (std::ranges::count(script_.noted(), "first holds") == 0) std::this_thread::yield();
  application.step();
  EXPECT_EQ(application.status().phase, Phase::draining);
  EXPECT_FALSE(application.set_link(script_.links_seen[1].fid, LinkState::removed));
  script_.hold_stop = false;
  script_.hold_stop.notify_all();
  run_to_end(application);
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

TEST_F(ApplicationTest, AConsumerThatThrowsAtTheEndFailsTheRunAndTheOthersEndInOrder) {
  Application application(settings_, registry_);
  application.start();
  script_.fail_stop = true;
  application.stop();
  run_to_end(application);
  EXPECT_EQ(application.status().failure, "first: the last block was not written");
  EXPECT_THAT(script_.noted(), ::testing::IsSupersetOf({"first stopped", "second stopped"}));
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

// The fewer threads are possible, the earlier the start fails: in the first worker, in a worker with a peer, in the next
// ROB, in the input (which then never starts), or in the waiting thread.
TEST_F(ApplicationTest, AStartThatRunsOutOfThreadsIsUndone) {
  const std::vector<Fid> fids = input::generated_fids(8, 1, 2, false);
  const auto added = registry_.add_library("real", [&](Registry& r) {
    r.add_input({.name = "generator", .help = "for tests"}, [&](const Parameters&) {
      input::GeneratorSettings generator;
      generator.links = fids;
      generator.memory_bytes = 4U << 20;
      generator.complete();
      return std::make_unique<input::InternalDataGenerator>(std::move(generator));
    });
    r.add_builder({.name = "gbt", .help = "for tests"}, [](const Parameters&, const BuilderContext& context) {
      return std::make_unique<GbtBuilder>(GbtSettings{.workers = 2, .window = 256}, context);
    });
  });
  ASSERT_TRUE(added) << added.error().message();
  settings_.input.type = "generator";
  settings_.builder.type = "gbt";
  settings_.robs.push_back(settings_.robs[0]);
  settings_.robs[1].source_id = SourceId{0x610002};
  settings_.robs[0].links.assign(fids.begin(), fids.begin() + 4);
  settings_.robs[1].links.assign(fids.begin() + 4, fids.end());
  for (std::size_t threads = 0; threads < 6; ++threads) {
    Application application(settings_, registry_);
    const ThreadsLeft limit(threads);
    try {
      application.start();
      ADD_FAILURE() << "started with " << threads << " more threads";
    } catch (const SetupError& error) {
      EXPECT_THAT(error.error().next, HasSubstr("ulimit -v")) << "the limit that was reached: " << error.what();
    }
    EXPECT_EQ(application.phase(), Phase::prepared);
  }
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
  script_.duplicates = 9'000;  // a link sends some chunks twice
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
  application.step();  // this step looks at the counters for the first time
  script_.link_missing = 1000;
  step_until(LinkState::removed);
  EXPECT_TRUE(application.status().robs[0].builder.links[0].removed_by_policy);
  script_.link_chunks = 1;
  step_until(LinkState::active);
  EXPECT_THAT(application.take_messages(), ElementsAre(HasSubstr("removed by policy"), HasSubstr("restored by policy")));
}

}  // namespace
}  // namespace rodeo::readout
