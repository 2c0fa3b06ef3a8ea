// Fragments that are kept, fetched and cleared over the network between two threads of this process.
#include "readout/consumer/hlt_request_handler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "formats/event_frame.h"
#include "formats/temporary_directory.h"
#include "readout/collecting_consumer.h"
#include "readout/fragment_pool.h"
#include "readout/fragments_client.h"

namespace rodeo::readout {
namespace {

using namespace std::chrono_literals;
using formats::FragmentRefusal;
using formats::FragmentRequest;
using formats::GlobalIdRange;
using test::counter_of;
using test::FragmentPool;
using test::FragmentsClient;
using Outcome = FragmentsClient::Outcome;

constexpr SourceId kRob{0x00610001};  // the pool's ROB
constexpr SourceId kOther{0x00610002};

class HltRequestHandlerTest : public testing::Test {
 protected:
  ~HltRequestHandlerTest() override {
    handler_.reset();
    end_.clear();
    EXPECT_EQ(pool_.out() + large_.out(), 0u) << "every reference returned";
  }
  HltRequestHandlerSettings settings() const {
    return {
        .name = "hlt",
        .retention = {.max_fragments = 64, .queue = 16, .sending = 32},
        .service =
            {.replier = {.name = "readout.hlt", .service = "fragments", .bus = bus_.path(), .page_bytes = 4096, .pages = 8},
             .robs = {kRob},
             .book = {.reorder_fragments = 4, .reorder_ns = 3'600'000'000'000},
             .most_waiting = 2,
             .frame = {.run_number = 77}},
        .linger = 50ms};
  }
  HltRequestHandler& start(HltRequestHandlerSettings settings) {
    handler_ = std::make_unique<HltRequestHandler>(std::move(settings));
    handler_->link(&end_);
    handler_->start();
    return *handler_;
  }
  FragmentsClient client(const std::string& name = "node") const { return {bus_.path(), "readout.hlt", name}; }
  FragmentPtr make(Sequence id, SourceId rob = kRob) const {
    FragmentPtr fragment = pool_.make(id);
    fragment->source_id = rob;
    return fragment;
  }
  void insert(Sequence first, Sequence last, SourceId rob = kRob) {
    for (Sequence id = first; id <= last; ++id) handler_->insert(make(id, rob));
  }
  /// Inserts fragments, each larger than the room of a connection.
  void insert_large(Sequence first, Sequence last) {
    for (Sequence id = first; id <= last; ++id) handler_->insert(large_.make(id));
  }
  /// Sends requests and reads no answers.
  static void ask_and_look_away(FragmentsClient& node, std::initializer_list<std::uint32_t> ids, std::uint32_t wait_us = 0) {
    (void)node.describe();  // now it is connected and knows the number of pages of the other side
    for (const std::uint32_t id : ids) {
      const auto request = FragmentsClient::fetch_request(id, wait_us);
      ASSERT_TRUE(node.requester().ask(node.service(), static_cast<std::uint16_t>(FragmentRequest::fetch), request, 60s));
    }
  }
  /// The ROB of this fragment as the file writer would write it.
  std::vector<std::byte> rob_of(Sequence id, SourceId rob = kRob) const {
    const FragmentPtr fragment = make(id, rob);
    formats::EventEnds ends;
    formats::EventFrame({.run_number = 77, .event_checksum = formats::ChecksumType::none}).store(*fragment, {}, ends);
    std::vector<std::byte> event = ends.head;
    event.resize(ends.head.size() + fragment->payload_bytes());
    fragment->copy_to(event.data() + ends.head.size());
    event.insert(event.end(), ends.tail.begin(), ends.tail.end());
    return {event.begin() + 24 * 4, event.end()};  // leaves out the event's header
  }
  std::uint64_t count(std::string_view name) const { return counter_of(handler_->status().counters, name); }
  void wait_until(std::string_view counter, std::uint64_t value) const {
    while (count(counter) != value) std::this_thread::sleep_for(1ms);
  }

  test::TemporaryDirectory bus_;
  FragmentPool pool_{{.links = 60, .chunk_bytes = 100, .links_per_part = 7}};  // larger than a page
  FragmentPool large_{{.links = 60, .chunk_bytes = 20'000, .links_per_part = 7}};
  test::CollectingConsumer end_;
  std::unique_ptr<HltRequestHandler> handler_;
};

TEST_F(HltRequestHandlerTest, WhatIsFetchedIsTheRobThatAFileWouldHave) {
  start(settings());
  FragmentsClient node = client();
  insert(1, 20);
  for (std::uint32_t id = 20; id >= 1; --id) {
    const auto answer = node.fetch(id, 10'000'000);
    ASSERT_EQ(answer.outcome, Outcome::answered);
    EXPECT_EQ(answer.status, 0);
    ASSERT_EQ(answer.bytes, rob_of(id)) << id;
  }
  EXPECT_EQ(end_.size(), 20u) << "all were passed on at once";
  EXPECT_EQ(count("kept"), 20u);
  node.clear({.ranges = {{1, 19}}, .bitmaps = {{20, 1}}});
  wait_until("kept", 0);
  EXPECT_EQ(count("cleared"), 20u);
  end_.clear();
  wait_until("fragments_sending", 0);
  EXPECT_EQ(pool_.out(), 0u);
  handler_->stop();
  EXPECT_EQ(count("uncleared"), 0u);
  EXPECT_EQ(handler_->status().consumed, 20u);
}

TEST_F(HltRequestHandlerTest, SeveralRobsComeInTheOrderThatIsAskedFor) {
  auto two = settings();
  two.service.robs = {kRob, kOther};
  start(two);
  FragmentsClient node = client();
  insert(5, 5, kOther);
  insert(5, 5);
  const auto expected = [&](std::initializer_list<SourceId> robs) {
    std::vector<std::byte> all;
    for (const SourceId rob : robs) {
      const auto one = rob_of(5, rob);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  EXPECT_EQ(node.fetch(5, 10'000'000).bytes, expected({kRob, kOther})) << "all ROBs, in the order of DESCRIBE";
  EXPECT_EQ(node.fetch(5, 10'000'000, {kOther, kRob}).bytes, expected({kOther, kRob}));
  EXPECT_EQ(node.fetch(5, 10'000'000, {kOther}).bytes, expected({kOther}));
  auto description = node.describe();
  description.first.reset();  // the first id may be known by now
  EXPECT_EQ(description, (formats::DescribeReply{.run_number = 77, .robs = {kRob, kOther}}));
  const auto unknown = node.fetch(5, 0, {SourceId{1}});
  EXPECT_EQ(unknown.outcome, Outcome::refused);
  EXPECT_EQ(unknown.status, static_cast<std::uint16_t>(FragmentRefusal::unknown_rob));
  EXPECT_EQ(node.fetch(5, 0, {kRob, kRob}).outcome, Outcome::refused);
  EXPECT_EQ(count("refused_unknown_rob"), 2u);
  EXPECT_EQ(node.fetch(5, 0, {kRob}).status, 0) << "each request names the ROB once";
  EXPECT_EQ(node.fetch(5, 0, {kRob}).status, 0);
}

TEST_F(HltRequestHandlerTest, WhatIsNotThereIsARobOfItsOwnThatSaysWhy) {
  auto two = settings();
  two.service.robs = {kRob, kOther};
  start(two);
  FragmentsClient node = client();
  insert(1, 1);
  insert(3, 8);
  insert(1, 2, kOther);
  wait_until("kept", 9);
  // The first ROB has lost 2, because 3 to 6 have overtaken it; the other ROB has 2. In the other ROB, 7 is pending.
  const auto two_of = node.fetch(2);
  EXPECT_EQ(two_of.status, formats::fetch_status::kLost);
  const auto robs = FragmentsClient::robs(two_of);
  ASSERT_EQ(robs.size(), 2u);
  EXPECT_EQ(robs[0].source_id, kRob);
  EXPECT_EQ(robs[0].status[0], formats::kRobLost);
  const auto rod = robs[0].rod();
  ASSERT_TRUE(rod) << rod.error().message();
  EXPECT_EQ(rod->header.l1id, L1Id{2});
  EXPECT_EQ(rod->header.run_number, 77u);
  EXPECT_TRUE(rod->data.empty());
  EXPECT_EQ(robs[1].status[0], 0u);
  const auto seven = node.fetch(7, 1000);
  EXPECT_EQ(seven.status, formats::fetch_status::kPending);
  EXPECT_EQ(FragmentsClient::robs(seven)[1].status[0], formats::kRobPending);
  EXPECT_EQ(count("robs_lost"), 1u);
  EXPECT_EQ(count("robs_pending"), 1u);
}

TEST_F(HltRequestHandlerTest, ARequestWaitsForItsFragment) {
  start(settings());
  FragmentsClient node = client();
  const auto asked = node.ask(FragmentRequest::fetch, FragmentsClient::fetch_request(9, 60'000'000));
  while (count("requests_waiting") == 0) node.poll();
  insert(9, 9);
  EXPECT_EQ(node.wait_for(asked).bytes, rob_of(9));
  while (count("requests_waiting") != 0) node.poll();  // the counter changes a moment later
}

TEST_F(HltRequestHandlerTest, ARequestThatWaitsIsToldWhenTheFragmentIsLost) {
  start(settings());
  FragmentsClient node = client();
  const auto asked = node.ask(FragmentRequest::fetch, FragmentsClient::fetch_request(9, 60'000'000));
  while (count("requests_waiting") == 0) node.poll();
  insert(10, 14);
  EXPECT_EQ(node.wait_for(asked).status, formats::fetch_status::kLost);
}

TEST_F(HltRequestHandlerTest, WhatWaitsInTheQueueOfAFullBookIsNotLostWhenThereIsRoomAgain) {
  auto of = settings();
  of.retention = {.max_fragments = 200, .queue = 256, .sending = 32};
  of.service.book = {.reorder_fragments = 1024, .reorder_ns = 200'000'000};
  start(of);
  insert(2, 201);
  wait_until("kept", 200);
  insert(202, 350);
  insert(1, 1);  // comes after more fragments than the handler takes at a time
  std::this_thread::sleep_for(300ms);
  client().clear({.ranges = {{2, 200}}});
  wait_until("kept", 150);
  EXPECT_EQ(count("late_fragments"), 0u);
}

TEST_F(HltRequestHandlerTest, MoreThanMayWaitAreRefused) {
  start(settings());
  FragmentsClient node = client();
  const auto first = node.ask(FragmentRequest::fetch, FragmentsClient::fetch_request(9, 60'000'000));
  node.ask(FragmentRequest::fetch, FragmentsClient::fetch_request(10, 60'000'000));
  const auto third = node.fetch(11, 60'000'000);
  EXPECT_EQ(third.outcome, Outcome::refused);
  EXPECT_EQ(third.status, static_cast<std::uint16_t>(FragmentRefusal::busy));
  node.requester().cancel(first);
  while (count("requests_dropped") == 0) node.poll();
  EXPECT_EQ(node.fetch(11).status, formats::fetch_status::kPending) << "a request that does not wait is answered";
}

TEST_F(HltRequestHandlerTest, AFullBookHoldsBackWhoInsertsUntilSomethingIsCleared) {
  start(settings());
  FragmentsClient node = client();
  constexpr Sequence kEvents = 150;
  std::jthread inserter([&] { insert(1, kEvents); });
  while (count("kept") < 64 || handler_->status().queue_fill < 1 || handler_->status().stalls == 0)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(count("retention_fill_percent"), 100u);
  for (std::uint32_t id = 1; id <= kEvents; ++id) {
    ASSERT_EQ(node.fetch(id, 60'000'000).bytes, rob_of(id)) << id;
    node.clear({.ranges = {{id, 1}}});
  }
  inserter.join();
  handler_->stop();
  EXPECT_EQ(count("cleared"), kEvents);
  EXPECT_EQ(count("uncleared"), 0u);
}

TEST_F(HltRequestHandlerTest, OneRobThatIsFullDoesNotHoldBackTheOthers) {
  auto two = settings();
  two.service.robs = {kRob, kOther};
  start(two);
  FragmentsClient node = client();
  std::jthread ahead([&] { insert(1, 200); });
  while (handler_->status().stalls == 0) std::this_thread::sleep_for(1ms);
  insert(1, 64, kOther);
  wait_until("kept", 128);
  for (std::uint32_t id = 1; id <= 64; ++id) ASSERT_EQ(node.fetch(id, 60'000'000).status, 0) << id;
  node.clear({.ranges = {{1, 200}}});
}

TEST_F(HltRequestHandlerTest, AClearBeforeTheFragmentAndOneThatComesTwiceAreNoHarm) {
  start(settings());
  FragmentsClient node = client();
  node.clear({.ranges = {{3, 2}}});
  insert(1, 5);
  wait_until("kept", 3);
  EXPECT_EQ(count("cleared_early"), 2u);
  node.clear({.ranges = {{1, 2}}});
  node.clear({.ranges = {{1, 2}}});
  EXPECT_EQ(node.holdings().ranges, (std::vector<GlobalIdRange>{{5, 1}}));
  EXPECT_EQ(node.holdings().newest, 5u);
  EXPECT_EQ(node.fetch(3).status, formats::fetch_status::kLost);
}

TEST_F(HltRequestHandlerTest, WhoReadsNoAnswersHoldsNoMoreThanHisShare) {
  auto small = settings();
  small.retention.sending = 8;
  start(small);
  insert_large(1, 4);
  insert(5, 40);
  wait_until("kept", 40);
  FragmentsClient slow = client("slow");
  ask_and_look_away(slow, {1, 2, 3, 4});
  wait_until("requests_held_back", 3);
  FragmentsClient node = client("node");
  for (std::uint32_t id = 5; id <= 40; ++id) ASSERT_EQ(node.fetch(id, 60'000'000).bytes, rob_of(id));
  EXPECT_EQ(count("fragments_sending"), 1u) << "an eighth of those that may be in flight";
}

TEST_F(HltRequestHandlerTest, WhoTakesNothingOfHisRepliesIsCutOff) {
  auto hasty = settings();
  hasty.service.patience_ns = 20'000'000;
  start(hasty);
  insert_large(1, 2);
  insert(3, 10);
  wait_until("kept", 10);
  FragmentsClient stuck = client("stuck");
  ask_and_look_away(stuck, {1, 2});
  wait_until("clients_cut_off", 1);
  wait_until("fragments_sending", 0);
  FragmentsClient node = client();
  EXPECT_EQ(node.fetch(5).bytes, rob_of(5));
}

TEST_F(HltRequestHandlerTest, AClientThatGoesAwayLetsGoOfWhatWasOnItsWay) {
  start(settings());
  insert_large(1, 3);
  wait_until("kept", 3);
  {
    FragmentsClient gone = client("gone");
    ask_and_look_away(gone, {100, 1, 2, 3}, 60'000'000);
    wait_until("requests_waiting", 1);
    while (count("fragments_sending") == 0) std::this_thread::sleep_for(1ms);
  }
  wait_until("fragments_sending", 0);
  wait_until("requests_waiting", 0);
  FragmentsClient node = client();
  node.clear({.ranges = {{1, 3}}});
  end_.clear();
  while (large_.out() != 0) std::this_thread::sleep_for(1ms);
}

TEST_F(HltRequestHandlerTest, GarbageIsRefusedAndCounted) {
  start(settings());
  FragmentsClient node = client();
  const std::vector<std::byte> junk(100, std::byte{0xff});
  for (const FragmentRequest kind :
       {FragmentRequest::describe, FragmentRequest::fetch, FragmentRequest::clear, FragmentRequest::holdings}) {
    const auto answer = node.asked(kind, junk);
    EXPECT_EQ(answer.outcome, Outcome::refused);
    EXPECT_EQ(answer.status, static_cast<std::uint16_t>(FragmentRefusal::unreadable));
  }
  const auto unknown = node.asked(static_cast<FragmentRequest>(99), {});
  EXPECT_EQ(unknown.status, static_cast<std::uint16_t>(FragmentRefusal::unknown_kind));
  EXPECT_EQ(count("refused_unreadable"), 4u);
  EXPECT_EQ(count("refused_unknown_kind"), 1u);
  EXPECT_EQ(node.describe().robs.size(), 1u) << "the handler still serves it";
}

TEST_F(HltRequestHandlerTest, APeerOfAnOlderVersionIsRefusedAndSaidByName) {
  start(settings());
  FragmentsClient old = client("old-node");
  for (const int kind : {2, 3, 4}) {
    const auto answer = old.asked(static_cast<FragmentRequest>(kind), std::vector<std::byte>(12));
    EXPECT_EQ(answer.outcome, Outcome::refused);
    EXPECT_EQ(answer.status, static_cast<std::uint16_t>(FragmentRefusal::old_version));
  }
  EXPECT_EQ(count("refused_old_version"), 3u);
}

TEST_F(HltRequestHandlerTest, AtTheEndWhatIsKeptIsServedUntilItIsCleared) {
  auto patient = settings();
  patient.linger = 3600s;
  start(patient);
  FragmentsClient node = client();
  insert(1, 10);
  EXPECT_EQ(node.fetch(1, 60'000'000).status, 0);
  std::jthread stopper([&] { handler_->stop(); });
  while (!node.describe().ended) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(node.fetch(10).bytes, rob_of(10));
  EXPECT_EQ(node.fetch(11, 60'000'000).status, formats::fetch_status::kLost) << "no more fragments come";
  node.clear({.ranges = {{1, 10}}});
  stopper.join();
  EXPECT_EQ(count("uncleared"), 0u);
}

TEST_F(HltRequestHandlerTest, AtTheEndNobodyWaitsBeyondLingerAndTheRestIsUncleared) {
  start(settings());
  FragmentsClient node = client();
  insert(1, 10);
  EXPECT_EQ(node.fetch(1, 60'000'000).status, 0);
  handler_->stop();
  EXPECT_EQ(count("uncleared"), 10u);
  EXPECT_EQ(count("kept"), 0u);
}

TEST_F(HltRequestHandlerTest, AtTheEndWhoOnlyLooksAtWhatIsKeptHoldsNobodyUp) {
  start(settings());
  FragmentsClient supervisor = client("supervisor");
  insert(1, 10);
  EXPECT_EQ(supervisor.holdings().ranges.size(), 1U);
  std::atomic<bool> stopped{false};
  std::jthread stopper([&] {
    handler_->stop();
    stopped = true;
  });
  std::vector<std::byte> request;
  formats::append_holdings_request(request, {});
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!stopped && std::chrono::steady_clock::now() < end) {
    (void)supervisor.requester().ask(supervisor.service(), static_cast<std::uint16_t>(FragmentRequest::holdings), request,
                                     60s);
    supervisor.poll();
  }
  EXPECT_TRUE(stopped);
  stopper.join();
  EXPECT_EQ(count("uncleared"), 10u);
}

TEST_F(HltRequestHandlerTest, ARunThatEndsIsNotHeldBackByAFullBook) {
  start(settings());
  std::jthread inserter([&] { insert(1, 500); });
  while (handler_->status().stalls == 0) std::this_thread::sleep_for(1ms);
  handler_->run_ends();
  inserter.join();
  handler_->stop();
  EXPECT_EQ(count("uncleared"), 500u) << "no client has asked";
  EXPECT_EQ(handler_->status().consumed, 500u);
  EXPECT_EQ(end_.size(), 500u);
}

TEST_F(HltRequestHandlerTest, FragmentsOfOtherRobsPassByIt) {
  start(settings());
  insert(1, 10, kOther);
  EXPECT_EQ(end_.size(), 10u);
  wait_until("other_robs", 10);
  insert(11, 11);
  EXPECT_FALSE(end_[10].writable) << "it is shared now";
  EXPECT_TRUE(end_[9].writable);
}

TEST_F(HltRequestHandlerTest, TwoOfOneNameAreRefused) {
  start(settings());
  try {
    const HltRequestHandler second(settings());
    FAIL() << "was accepted";
  } catch (const SetupError& error) {
    EXPECT_EQ(error.error().code, "transport.name_taken");
  }
}

TEST(RetentionSettings, AreSizedByRateAndTime) {
  EXPECT_EQ((RetentionSettings{.rate_hz = 12'345, .retention = 2s}.most_fragments()), 24'690u);
  EXPECT_EQ((RetentionSettings{.rate_hz = 12'345, .retention = 2s, .max_fragments = 7}.most_fragments()), 7u);
}

}  // namespace
}  // namespace rodeo::readout
