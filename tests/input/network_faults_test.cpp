// A network stream with publishers that repeat pages, send invalid ones or become silent; one thread, real provider.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/named_counters.h"
#include "input/losses.h"
#include "input/network_input.h"
#include "input/network_stream.h"
#include "scripted_publisher.h"

namespace rodeo::input {
namespace {

using test::ScriptedPublisher;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSilenceNs = 300 * kMs;

class NetworkFaults : public testing::Test {
 protected:
  NetworkFaults() { std::filesystem::create_directories(bus_); }
  ~NetworkFaults() override { std::filesystem::remove_all(bus_); }

  void start(std::size_t publishers) {
    std::vector<NetworkStream::Publisher> of;
    for (std::size_t i = 0; i < publishers; ++i) {
      const auto index = static_cast<LinkIndex>(i);
      const Fid link = Fid::of(1, 0, 0, index);
      publishers_.push_back(std::make_unique<ScriptedPublisher>(bus_, "test." + std::to_string(i), std::vector{link}));
      of.push_back({{link}, {index}});
    }
    stream_.emplace(transport::SubscriberSettings{.name = "reader", .bus = bus_, .provider = "tcp", .pages = 16}, of,
                    kSilenceNs);
    ASSERT_TRUE(until([&] { return std::ranges::all_of(publishers_, [](const auto& one) { return one->flowing(); }); }));
  }
  void step() {
    for (const auto& publisher : publishers_) publisher->progress(base::steady_now_ns());
    Page* page = nullptr;
    if (stream_->poll(page) != PollStatus::page) return;
    for (const ChunkRun& run : page->runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        came_.push_back(std::to_integer<int>(run.chunk(i).front()));
        flagged_.push_back((run.status & chunk_status::kSoftwareTruncated) != 0);
      }
    }
    page->drop();
  }
  template <typename Condition>
  bool until(Condition&& condition) {
    for (const auto begin = base::steady_now_ns(); base::steady_now_ns() - begin < 10'000 * kMs;) {
      if (condition()) return true;
      step();
    }
    return false;
  }
  ScriptedPublisher& publisher(std::size_t i = 0) { return *publishers_[i]; }
  const NetworkCounts& counts() const { return stream_->counts(); }

  std::filesystem::path bus_ = std::filesystem::temp_directory_path() / ("rodeo-faults-" + std::to_string(::getpid()));
  std::vector<std::unique_ptr<ScriptedPublisher>> publishers_;
  std::optional<NetworkStream> stream_;
  std::vector<int> came_;
  std::vector<bool> flagged_;
};

TEST_F(NetworkFaults, APageThatComesOnceMoreIsNotDeliveredAgain) {
  start(1);
  for (const std::uint32_t number : {0, 1, 2, 1, 2, 3}) publisher().send_chunk(number, number, number);
  ASSERT_TRUE(until([&] { return came_.size() >= 4 && counts().repeated_pages.get() == 2; }));
  EXPECT_EQ(came_, (std::vector{0, 1, 2, 3}));
  EXPECT_TRUE(until([&] { return publisher().taken() == 6; })) << "sent although the credit is sufficient";
  EXPECT_EQ(counts().lost_pages.get() + counts().lost_chunks.get(), 0U);
}

TEST_F(NetworkFaults, PagesThatDoNotComeAreCountedWithTheirChunks) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  publisher().send_chunk(3, 5, 0);
  ASSERT_TRUE(until([&] { return came_.size() == 2; }));
  EXPECT_EQ(counts().lost_pages.get(), 2U);
  EXPECT_EQ(counts().lost_chunks.get(), 4U);
}

TEST_F(NetworkFaults, WhatIsLostOfTheTriggersListIsCountedAsLossesOfTheList) {
  const ScriptedPublisher data(bus_, "test.0", {Fid::of(1, 0, 0, 0)});
  ScriptedPublisher list(bus_, "list", {Fid::of(1, 0, 0, 1)}, true);
  NetworkInputSettings settings;
  settings.bus = bus_;
  settings.provider = "tcp";
  NetworkInput input(settings);
  const auto stream = input.open_trigger_list();
  const auto poll_until = [&](const auto& condition) {
    for (const auto begin = base::steady_now_ns(); !condition() && base::steady_now_ns() - begin < 10'000 * kMs;) {
      list.progress(base::steady_now_ns());
      if (Page* page = nullptr; stream->poll(page) == PollStatus::page) page->drop();
    }
    return condition();
  };
  ASSERT_TRUE(poll_until([&] { return list.flowing(); }));
  list.send_chunk(0, 0, 0);
  list.send_chunk(3, 5, 0);
  const auto count = [&](const char* name) { return base::counter_value(input.counters(), name, 999); };
  ASSERT_TRUE(poll_until([&] { return count("list_network_lost") == 4; }));
  EXPECT_EQ(count("list_network_lost_pages"), 2U);
  EXPECT_EQ(count("network_lost"), 999U) << "no loss is counted for the links";
  EXPECT_TRUE(is_loss("list_network_lost"));
}

TEST_F(NetworkFaults, WhatIsNoPageEndsTheConnectionAndTheNextGoesOn) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  publisher().send_garbage();
  ASSERT_TRUE(until([&] { return publisher().subscriptions() == 2 && publisher().flowing(); }));
  EXPECT_EQ(counts().bad_pages.get(), 1U);
  EXPECT_GE(publisher().taken(), 2U) << "an invalid page is not requested again";
  publisher().send_chunk(0, 0, 0);
  publisher().send_chunk(1, 1, 0);
  ASSERT_TRUE(until([&] { return came_.size() >= 2 && counts().repeated_pages.get() == 1; }));
  EXPECT_EQ(came_, (std::vector{0, 1}));
}

TEST_F(NetworkFaults, WhatMayBeTheEndOfAChunkThatBeganInALostPageIsFlagged) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  publisher().send_chunk(2, 0, 0);  // repeats the chunk: its count is the same
  publisher().send_chunk(3, 1, 0);
  ASSERT_TRUE(until([&] { return came_.size() == 3; }));
  EXPECT_EQ(flagged_, (std::vector{false, true, false}));
  EXPECT_EQ(counts().cut_chunks.get(), 1U);
}

TEST_F(NetworkFaults, AChunkWhoseRestNeverComesEndsFlaggedWithItsPublisher) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  publisher().send_part(1, 1);
  publisher().end();
  std::uint8_t last = 0;
  PollStatus status = PollStatus::empty;
  for (const auto begin = base::steady_now_ns();
       status != PollStatus::end && base::steady_now_ns() - begin < 10'000 * kMs;) {
    publisher().progress(base::steady_now_ns());
    Page* page = nullptr;
    status = stream_->poll(page);
    if (status != PollStatus::page) continue;
    last = page->runs.back().status;
    page->drop();
  }
  EXPECT_EQ(status, PollStatus::end);
  EXPECT_EQ(last, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(counts().cut_chunks.get(), 1U);
  EXPECT_EQ(stream_->counters().chunks, 2U);
}

TEST(LossesOfInputs, OfWhatRoutersLostOnlyWhatTheirReadersGaveUp) {
  EXPECT_TRUE(is_loss("upstream_felix.0_not_taken"));
  EXPECT_FALSE(is_loss("upstream_felix_sequence_gaps"));
  EXPECT_TRUE(is_loss("network_cut_off"));
}

TEST_F(NetworkFaults, OneThatSaysTheEndAgainAndAgainIsCalledAnew) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  for (int i = 0; i < 100; ++i) publisher().end(1000);
  ASSERT_TRUE(until([&] { return publisher().subscriptions() == 2 && publisher().flowing(); }));
  publisher().send_chunk(1, 1, 0);
  ASSERT_TRUE(until([&] { return came_.size() == 2; }));
  EXPECT_EQ(came_, (std::vector{0, 1}));
}

TEST_F(NetworkFaults, AClockBeyondAllTimesEndsTheConnectionAndTheClockGoesOn) {
  start(1);
  publisher().send_clock(0, ~std::uint64_t{0});
  ASSERT_TRUE(until([&] { return publisher().subscriptions() == 2 && publisher().flowing(); }));
  EXPECT_EQ(counts().bad_pages.get(), 1U);
  publisher().send_clock(1, 5 * kMs);
  ASSERT_TRUE(until([&] { return stream_->clock_ns() == 5 * kMs; }));
}

TEST_F(NetworkFaults, TheClockGoesOnWithoutAPublisherWhoHasBeenSilentForLong) {
  start(2);
  const std::uint64_t begin = base::steady_now_ns();
  std::uint64_t told = 0;
  // The other publisher may have unsent data that are older than all data of this one. So the clock stops, but not for ever.
  ASSERT_TRUE(until([&] {
    if (told < 15 && base::steady_now_ns() - begin > told * 30 * kMs) {
      publisher(0).send_clock(told, (1000 + told) * kMs);
      ++told;
    }
    return stream_->clock_ns() > 0;
  }));
  EXPECT_GT(base::steady_now_ns() - begin, kSilenceNs / 3) << "the stream has waited for it";
}

TEST_F(NetworkFaults, TheClockDoesNotWaitForOneThatIsThereAgainToMakeUpForItsAbsence) {
  start(2);
  const std::uint64_t begin = base::steady_now_ns();
  std::uint64_t told = 0;
  ASSERT_TRUE(until([&] {
    if (told < 15 && base::steady_now_ns() - begin > told * 30 * kMs) {
      publisher(0).send_clock(told, (1000 + told) * kMs);
      ++told;
    }
    return stream_->clock_ns() > 0;
  })) << "without the silent one";
  publishers_.pop_back();
  publishers_.push_back(std::make_unique<ScriptedPublisher>(bus_, "test.1", std::vector{Fid::of(1, 0, 0, 1)}));
  ASSERT_TRUE(until([&] { return publisher(1).flowing(); }));
  const std::uint64_t before = stream_->clock_ns();
  publisher(1).send_clock(0, 1);  // this publisher has just begun
  publisher(0).send_clock(told, 2000 * kMs);
  ASSERT_TRUE(until([&] { return publisher(0).taken() == told + 1 && publisher(1).taken() == 1; }));
  for (int i = 0; i < 3; ++i) step();
  EXPECT_GT(stream_->clock_ns(), before);
}

TEST_F(NetworkFaults, AnEndBeforeTheLastPageWaitsForIt) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  publisher().send_chunk(1, 1, 0);
  publisher().end();
  ASSERT_TRUE(until([&] { return stream_->source_ended(0); }));
  EXPECT_EQ(came_.size(), 2U);
}

TEST_F(NetworkFaults, WhatIsNoPageAndTheLastThatComesMakesNobodyLookForMore) {
  start(1);
  publisher().send_chunk(0, 0, 0);
  publisher().send_garbage();
  publisher().end();
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    publisher().progress(base::steady_now_ns());  // everything has arrived when the stream polls
  }
  ASSERT_TRUE(until([&] { return stream_->source_ended(0); }));
  EXPECT_EQ(counts().bad_pages.get(), 1U);
  EXPECT_EQ(publisher().subscriptions(), 1);
}

}  // namespace
}  // namespace rodeo::input
