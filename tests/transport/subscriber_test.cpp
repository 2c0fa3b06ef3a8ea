// A publisher and a subscriber of one thread, whose time is the test's.
#include "transport/subscriber.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/named_counters.h"
#include "formats/network_page.h"
#include "transport/publisher.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

class Subscribers : public testing::Test {
 protected:
  Subscribers() { std::filesystem::create_directories(bus_); }
  ~Subscribers() override { std::filesystem::remove_all(bus_); }

  SubscriberSettings subscriber() const { return {.name = "reader", .bus = bus_, .pages = 8}; }
  PublisherSettings publisher() const { return {.name = "test.0", .bus = bus_, .page_bytes = 4096, .pages = 8}; }

  void step(std::uint64_t by = 1'000'000) {
    now_ += by;
    if (publisher_) publisher_->progress(now_, now_);
    subscriber_->progress(now_);
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { subscriber_->take(port, event); });
    while (const auto page = subscriber_->next()) {
      formats::NetworkPageReader reader(links_.size(), 4096);
      ASSERT_TRUE(reader.read(page->bytes));
      for (const ChunkRun& run : reader.runs()) chunks_ += run.count;
      subscriber_->give_back(page->slot);
    }
  }
  template <typename Condition>
  bool until(Condition&& condition) {
    for (int i = 0; i < 100'000 && !condition(); ++i) step();
    return condition();
  }
  void start() {
    publisher_.emplace(publisher(), links_);
    subscriber_.emplace(subscriber(), links_, ports_);
    ASSERT_TRUE(until([&] { return subscriber_->flowing() && publisher_->all_links_subscribed(); }));
  }
  void publish(std::uint32_t count) {
    static const std::vector<std::byte> data(400);
    const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = count};
    ASSERT_TRUE(publisher_->publish({&run, 1}));
  }

  std::filesystem::path bus_ = std::filesystem::temp_directory_path() / ("rodeo-subscriber-" + std::to_string(::getpid()));
  std::vector<Fid> links_ = {Fid::of(1, 0, 0, 0), Fid::of(1, 0, 0, 1)};
  FabricPorts ports_;
  std::optional<Publisher> publisher_;
  std::optional<Subscriber> subscriber_;
  std::uint64_t now_ = 1000 * kSecond;
  std::uint64_t chunks_ = 0;
};

TEST_F(Subscribers, TheEndOfALongConversationIsItsEnd) {
  start();
  publish(10);
  ASSERT_TRUE(until([&] { return chunks_ == 10; }));
  step(10 * kSecond);
  publish(5);
  publisher_->end();
  ASSERT_TRUE(until([&] { return subscriber_->ended(); }));
  EXPECT_EQ(chunks_, 15);
  EXPECT_EQ(subscriber_->connections(), 1);
  EXPECT_TRUE(until([&] { return publisher_->ended(); }));
  step(10 * kSecond);
  EXPECT_TRUE(subscriber_->ended()) << "it looks for nobody any more";
}

TEST_F(Subscribers, WhoLeavesGetsWhatThereIsAndThenTheEnd) {
  start();
  publish(10);
  subscriber_->leave();
  ASSERT_TRUE(until([&] { return subscriber_->ended(); }));
  EXPECT_EQ(chunks_, 10);
  publish(7);
  EXPECT_EQ(base::counter_value(publisher_->counters(), "no_subscriber"), 7);
}

TEST_F(Subscribers, WhatIsInPagesOfOneThatLeavesInTheMiddleOfARunIsItsAndTheRestIsNobodys) {
  start();
  const std::vector<std::byte> data(40 * 20'000);
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 20'000};
  ASSERT_FALSE(publisher_->publish({&run, 1})) << "it is more than eight pages";
  subscriber_->leave();
  bool published = false;
  ASSERT_TRUE(until([&] {
    published = published || publisher_->publish({&run, 1});
    return published && subscriber_->ended();
  }));
  const auto counters = publisher_->counters();
  const std::uint64_t wanted = base::counter_value(counters, "chunks_wanted");
  EXPECT_EQ(wanted + base::counter_value(counters, "no_subscriber"), 20'000);
  EXPECT_EQ(wanted, chunks_ + base::counter_value(counters, "undelivered"));
  EXPECT_GT(chunks_, 0);
  EXPECT_LT(chunks_, 20'000);
}

TEST_F(Subscribers, APublisherThatDoesNotAnswerIsGivenUpAndLookedForAgain) {
  publisher_.emplace(publisher(), links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  subscriber_->progress(now_);
  for (int i = 0; i < 7; ++i) subscriber_->progress(now_ += kSecond);  // nobody lets the publisher answer
  EXPECT_EQ(subscriber_->trouble(), "publisher test.0 does not answer");
  EXPECT_TRUE(until([&] { return subscriber_->flowing(); }));
  EXPECT_EQ(subscriber_->trouble(), "");
}

TEST_F(Subscribers, WhatAReturningSubscriberWantedIsHeldForAsLongAsGraceSays) {
  start();
  subscriber_.emplace(subscriber(), links_, ports_);  // the first has gone without a word
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  publish(3);
  ASSERT_TRUE(until([&] { return chunks_ == 3; }));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0);
  step(6 * kSecond);
  step();
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 3) << "for the one that did not come back";
}

}  // namespace
}  // namespace rodeo::transport
