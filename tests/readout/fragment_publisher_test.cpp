// Fragments sent over the network from one thread of this process to another.
#include "readout/consumer/fragment_publisher.h"

#include <gtest/gtest.h>

#include <thread>

#include "formats/temporary_directory.h"
#include "readout/collecting_consumer.h"
#include "readout/consumer/event_subscriber.h"
#include "readout/consumer/fragment_stream.h"
#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

using namespace std::chrono_literals;
using test::CollectingConsumer;
using test::counter_of;
using test::FragmentPool;

class FragmentPublisherTest : public testing::Test {
 protected:
  ~FragmentPublisherTest() override {
    publisher_.reset();
    end_.clear();
    EXPECT_EQ(pool_.out(), 0u) << "every reference returned";
  }
  FragmentPublisherSettings settings() const {
    return {.publisher = {.bus = bus_.path(), .page_bytes = 4096, .pages = 4, .grace = 50ms},
            .frame = {.source_id = SourceId{0x007c0003}, .run_number = 77}};
  }
  FragmentPublisher& start(FragmentPublisherSettings settings) {
    publisher_ = std::make_unique<FragmentPublisher>(std::move(settings));
    publisher_->link(&end_);
    publisher_->start();
    return *publisher_;
  }
  EventSubscriber subscribe(bool monitor) {
    auto subscriber = EventSubscriber::subscribe({.bus = bus_.path(), .monitor = monitor});
    EXPECT_TRUE(subscriber) << subscriber.error().message();
    return std::move(*subscriber);
  }
  /// Makes fragments with a fixed time, the same for all readers.
  FragmentPtr make(Sequence sequence) const {
    FragmentPtr fragment = pool_.make(sequence);
    fragment->handed_over_ns = 1'000'000'000 + sequence;
    return fragment;
  }
  std::vector<std::byte> event_of(Sequence sequence) const {
    const FragmentPtr fragment = make(sequence);
    formats::EventEnds ends;
    formats::EventFrame(settings().frame).store(*fragment, event_stamp(*fragment), ends);
    std::vector<std::byte> event = ends.head;
    event.resize(ends.head.size() + fragment->payload_bytes());
    fragment->copy_to(event.data() + ends.head.size());
    event.insert(event.end(), ends.tail.begin(), ends.tail.end());
    return event;
  }
  std::uint64_t count(std::string_view name) const { return counter_of(publisher_->status().counters, name); }

  test::TemporaryDirectory bus_;
  FragmentPool pool_{{.links = 60, .chunk_bytes = 100, .links_per_part = 7}};  // a fragment is larger than a page
  CollectingConsumer end_;
  std::unique_ptr<FragmentPublisher> publisher_;
};

TEST_F(FragmentPublisherTest, EveryFragmentComesAsAFileWouldHaveItAndThenTheEnd) {
  FragmentPublisherSettings waits = settings();
  waits.wait_for_subscriber = true;
  waits.queue.capacity = 4;
  start(waits);
  EventSubscriber subscriber = subscribe(false);
  constexpr Sequence kEvents = 300;
  std::jthread inserter([&] {
    for (Sequence i = 0; i < kEvents; ++i) publisher_->insert(make(i));
    publisher_->stop();
  });
  Sample sample;
  Sequence next = 0;
  for (;;) {
    const auto outcome = subscriber.next(sample, 1s);
    ASSERT_TRUE(outcome) << outcome.error().message();
    if (*outcome == EventSubscriber::Outcome::end) break;
    if (*outcome == EventSubscriber::Outcome::nothing) continue;
    ASSERT_EQ(sample.event, event_of(next)) << next;
    EXPECT_EQ(sample.header.sequence, next++);
    EXPECT_EQ(sample.header.missed, 0u);
  }
  inserter.join();
  EXPECT_EQ(next, kEvents);
  EXPECT_EQ(subscriber.lost(), 0u);
  EXPECT_EQ(count("chunks_wanted"), kEvents);
  EXPECT_EQ(count("not_taken") + count("undelivered") + count("no_subscriber"), 0u);
  EXPECT_EQ(end_.size(), kEvents) << "all fragments were passed on";
}

TEST_F(FragmentPublisherTest, WithoutASubscriberNobodyWaitsAndNothingIsMade) {
  start(settings());
  for (Sequence i = 0; i < 5000; ++i) publisher_->insert(make(i));
  publisher_->stop();
  EXPECT_EQ(end_.size(), 5000u);
  EXPECT_EQ(count("no_subscriber") + count("unpublished_queue_full"), 5000u);
  EXPECT_EQ(count("no_subscriber"), publisher_->status().consumed);
  EXPECT_EQ(count("pages_sent"), 0u);
}

TEST_F(FragmentPublisherTest, ASubscriberThatNeverComesIsNotWaitedForBeyondGraceOnceTheRunEnds) {
  FragmentPublisherSettings waits = settings();
  waits.wait_for_subscriber = true;
  start(waits);
  for (Sequence i = 0; i < 10; ++i) publisher_->insert(make(i));
  publisher_->stop();
  EXPECT_EQ(count("not_taken"), 10u);
  EXPECT_EQ(end_.size(), 10u) << "the next consumers still get them";
}

TEST_F(FragmentPublisherTest, OneThatTakesNothingAtTheEndIsNotWaitedForBeyondGrace) {
  FragmentPublisherSettings waits = settings();
  waits.wait_for_subscriber = true;
  waits.queue.capacity = 8;
  start(waits);
  EventSubscriber subscriber = subscribe(false);
  Sample sample;
  publisher_->insert(make(0));
  for (;;) {
    const auto outcome = subscriber.next(sample, 1s);
    ASSERT_TRUE(outcome);
    if (*outcome == EventSubscriber::Outcome::sample) break;
  }
  // These are more than credit and sockets have room for. The subscriber does not read.
  constexpr Sequence kEvents = 8000;
  std::jthread inserter([&] {
    for (Sequence i = 1; i <= kEvents; ++i) publisher_->insert(make(i));
  });
  while (publisher_->status().queue_fill < 1) std::this_thread::sleep_for(1ms);
  publisher_->run_ends();
  inserter.join();  // insert() waits no longer
  publisher_->stop();
  EXPECT_GT(count("not_taken"), 0u);
  EXPECT_EQ(count("chunks_wanted") + count("no_subscriber") + count("not_taken"), kEvents + 1);
  EXPECT_EQ(end_.size(), kEvents + 1);
}

TEST_F(FragmentPublisherTest, AShareIsTakenOutBeforeTheQueue) {
  FragmentPublisherSettings some = settings();
  some.share.fraction = 0.25;
  start(some);
  for (Sequence i = 0; i < 400; ++i) publisher_->insert(make(i));
  publisher_->stop();
  EXPECT_EQ(count("unpublished_beyond_fraction"), 300u);
  EXPECT_EQ(publisher_->status().consumed + count("unpublished_queue_full"), 100u);
}

TEST_F(FragmentPublisherTest, TwoOfOneNameAreRefusedAndSoIsAnOpenAddressWithoutASecret) {
  start(settings());
  const auto code = [](FragmentPublisherSettings settings) {
    try {
      const FragmentPublisher second(std::move(settings));
    } catch (const SetupError& error) {
      return error.error().code;
    }
    return std::string("none");
  };
  EXPECT_EQ(code(settings()), "transport.name_taken");
  FragmentPublisherSettings open = settings();
  open.publisher.address = "0.0.0.0";
  EXPECT_EQ(code(open), "transport.no_secret");
}

TEST_F(FragmentPublisherTest, TheStreamIsAVirtualLinkOfTheReadout) {
  const Fid fid = fragment_stream_fid(SourceId{0x007c0003});
  EXPECT_EQ(fid.value, 0x17c0003800000001u);
  const auto is_stream = [](std::vector<Fid> links, bool list = false) {
    return is_fragment_stream({.name = "some", .trigger_list = list, .links = std::move(links)});
  };
  EXPECT_TRUE(is_stream({fid}));
  EXPECT_FALSE(is_stream({fid}, true));
  EXPECT_FALSE(is_stream({Fid{fid.value - 1}}));
  EXPECT_FALSE(is_stream({fid, Fid::of(1, 0, 0, 0)}));
  EXPECT_FALSE(is_stream({}));
}

}  // namespace
}  // namespace rodeo::readout
