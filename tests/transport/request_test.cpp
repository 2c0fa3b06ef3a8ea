// Requests and replies between a Requester and a Replier in one thread, over tcp; tests that break no connection also over
// shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/named_counters.h"
#include "formats/temporary_directory.h"
#include "transport/raw_requests.h"
#include "transport/replier.h"
#include "transport/requester.h"

namespace rodeo::transport {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 31 + seed + i / 251);
  return made;
}

Bytes whole(const ReceivedMessage& message) {
  Bytes bytes(message.bytes());
  message.copy_to(bytes.data());
  return bytes;
}

/// Records which memory was released.
class Owner final : public ReplyOwner {
 public:
  void sent(std::uint64_t tag) noexcept override { tags.push_back(tag); }
  std::vector<std::uint64_t> tags;
};

class Requests : public testing::Test {
 protected:
  Requests() { start(); }

  void start(ReplierSettings settings = {}) {
    settings.name = "echo";
    settings.service = "test";
    settings.bus = bus_.file("bus");
    if (settings.page_bytes == 64U << 10) settings.page_bytes = 4096;
    settings.pages = 8;
    replier_.emplace(std::move(settings));
  }

  Requester::Service connect(RequesterSettings settings = {}) {
    settings.name = "asker";
    settings.bus = bus_.file("bus");
    if (settings.pages == 64) settings.pages = 8;
    requester_.emplace(std::move(settings));
    const auto service = requester_->add("echo");
    EXPECT_TRUE(until([&] { return requester_->connected(service); })) << requester_->trouble(service);
    return service;
  }

  void poll() {
    const std::uint64_t now = base::steady_now_ns() + skipped_ns_;
    if (requester_) requester_->poll(now, ended_);
    if (!replier_) return;
    const std::size_t had = asked_.size();
    replier_->poll(now, asked_, dropped_);
    if (!answers_) return;
    for (std::size_t i = had; i < asked_.size(); ++i) echo(asked_[i]);
    asked_.clear();
  }
  void echo(const Replier::Request& request) {
    const Bytes bytes = whole(request.message);
    const std::span<const std::byte> part = bytes;
    replier_->reply(request.client, request.number, request.kind, {&part, 1});
  }
  bool until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      poll();
    }
    return true;
  }
  std::uint64_t counter(const std::vector<NamedCounter>& counters, std::string_view name) {
    return base::counter_value(counters, name, 999'999);
  }
  void expect_books() {
    const auto asked = requester_->counters();
    EXPECT_EQ(counter(asked, "requests"), counter(asked, "replies") + counter(asked, "refused") +
                                              counter(asked, "timed_out") + counter(asked, "cancelled") +
                                              counter(asked, "lost"));
  }

  test::TemporaryDirectory bus_;
  std::optional<Replier> replier_;
  std::optional<Requester> requester_;
  std::vector<Requester::Reply> ended_;
  std::vector<Replier::Request> asked_;
  std::vector<Replier::Dropped> dropped_;
  bool answers_ = true;
  std::uint64_t skipped_ns_ = 0;
};

/// The test's parameter is the name of a provider.
class RequestsOver : public Requests, public testing::WithParamInterface<const char*> {
 protected:
  RequestsOver() {
    ReplierSettings settings;
    settings.providers = {GetParam()};
    replier_.reset();
    start(std::move(settings));
  }
  /// Sends a message of these parts, which the replier echoes.
  void expect_echo(Requester::Service service, const std::vector<Bytes>& parts) {
    std::vector<std::span<const std::byte>> list;
    Bytes expected;
    for (const Bytes& part : parts) {
      list.emplace_back(part);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    ASSERT_TRUE(requester_->ask(service, 1, MessageParts(list), 60s));
    ASSERT_TRUE(until([&] { return !ended_.empty(); })) << parts.front().size();
    ASSERT_EQ(ended_[0].outcome, Requester::Outcome::answered);
    EXPECT_EQ(whole(ended_[0].message), expected) << parts.front().size();
    ended_.clear();
  }
  RequesterSettings asker() const {
    RequesterSettings settings;
    settings.provider = GetParam();
    return settings;
  }
};

INSTANTIATE_TEST_SUITE_P(Provider, RequestsOver, testing::Values("tcp", "shm"),
                         [](const auto& of) { return std::string(of.param); });

TEST_P(RequestsOver, EachIsAnsweredOnceWithWhatItSaid) {
  const auto service = connect(asker());
  std::vector<Bytes> sent;
  std::size_t next = 0;
  constexpr std::size_t kAll = 3000;
  std::vector<std::size_t> of_request;
  ASSERT_TRUE(until([&] {
    for (; next < kAll && ended_.size() + 100 > next; ++next) {
      sent.push_back(pattern(next % 900, static_cast<unsigned>(next)));
      if (!requester_->ask(service, static_cast<std::uint16_t>(next), sent.back(), 60s)) {
        sent.pop_back();
        break;
      }
    }
    return ended_.size() == kAll;
  })) << ended_.size();
  for (std::size_t i = 0; i < kAll; ++i) {
    ASSERT_EQ(ended_[i].outcome, Requester::Outcome::answered);
    ASSERT_EQ(ended_[i].status, static_cast<std::uint16_t>(i));
    ASSERT_EQ(whole(ended_[i].message), sent[i]) << i;
  }
  expect_books();
  ended_.clear();
}

// More connections than fit into one completion queue of libfabric, each with fewer pages than outstanding requests.
TEST_F(Requests, OfManyConnectionsEachHasItsOwnAnswers) {
  connect();
  std::vector<Requester::Service> services;
  for (int i = 0; i < 70; ++i) services.push_back(requester_->add("echo"));
  ASSERT_TRUE(until(
      [&] { return std::ranges::all_of(services, [&](const auto service) { return requester_->connected(service); }); }));
  constexpr std::size_t kEach = 20;
  std::map<Requester::Request, Bytes> sent;
  for (const auto service : services) {
    for (std::size_t i = 0; i < kEach; ++i) {
      Bytes bytes = pattern(50 + 200 * i, service);
      const auto request = requester_->ask(service, 1, bytes, 60s);
      ASSERT_TRUE(request);
      sent.emplace(*request, std::move(bytes));
    }
  }
  ASSERT_TRUE(until([&] { return ended_.size() == services.size() * kEach; })) << ended_.size();
  for (const auto& reply : ended_) {
    ASSERT_EQ(reply.outcome, Requester::Outcome::answered);
    ASSERT_EQ(whole(reply.message), sent.at(reply.request)) << reply.service;
    sent.erase(reply.request);
  }
  EXPECT_TRUE(sent.empty());
  expect_books();
  ended_.clear();
}

// A stopped process or a busy machine causes no time-out of requests whose answer has arrived.
TEST_F(Requests, NobodyIsLateWhoseAnswerHasComeWhileTheRequesterStoodStill) {
  connect();
  std::vector<Requester::Service> services;
  for (int i = 0; i < 70; ++i) services.push_back(requester_->add("echo"));
  ASSERT_TRUE(until(
      [&] { return std::ranges::all_of(services, [&](const auto service) { return requester_->connected(service); }); }));
  const std::uint64_t clients = replier_->clients().size();
  EXPECT_EQ(clients, services.size() + 1);
  for (int i = 0; i < 1000; ++i) poll();  // lets the credit arrive
  std::uint64_t asked = 0;
  for (const auto service : services) {
    for (int i = 0; i < 4; ++i) asked += requester_->ask(service, 1, pattern(20, 1), 30s) ? 1U : 0U;
  }
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (counter(replier_->counters(), "replies") < asked && std::chrono::steady_clock::now() < end) {
    replier_->poll(base::steady_now_ns(), asked_, dropped_);
    for (const auto& request : asked_) echo(request);
    asked_.clear();
  }
  skipped_ns_ = 100'000'000'000;
  ASSERT_TRUE(until([&] { return ended_.size() == asked; }));
  EXPECT_TRUE(std::ranges::all_of(
      ended_, [](const Requester::Reply& reply) { return reply.outcome == Requester::Outcome::answered; }));
  EXPECT_EQ(counter(requester_->counters(), "timed_out"), 0U);
  ended_.clear();
}

// The replier does not poll idle connections. It still notices when an idle connection sends a request, waits, cancels or
// ends.
TEST_F(Requests, OneThatWasIdleIsHeardWhenItSpeaks) {
  const auto service = connect();
  const auto other = requester_->add("echo");
  ASSERT_TRUE(until([&] { return requester_->connected(other); }));
  for (int i = 0; i < 5000; ++i) poll();  // no messages
  ASSERT_TRUE(requester_->ask(other, 1, pattern(10, 1), 60s));
  ASSERT_TRUE(until([&] { return ended_.size() == 1; }));
  EXPECT_EQ(ended_[0].service, other);
  ended_.clear();
  for (int i = 0; i < 5000; ++i) poll();
  answers_ = false;
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 1), 2s));
  ASSERT_TRUE(until([&] { return asked_.size() == 1; }));
  skipped_ns_ = 3'000'000'000;
  ASSERT_TRUE(until([&] { return ended_.size() == 1 && dropped_.size() == 1; }));
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::timed_out);
  EXPECT_EQ(replier_->clients().size(), 2U);
  requester_->remove(other);
  EXPECT_TRUE(until([&] { return replier_->clients().size() == 1; }));
  EXPECT_TRUE(requester_->connected(service));
  asked_.clear();
  ended_.clear();
}

// A page released long after its message returns to the other side, even if nothing else happens on the connection.
TEST_P(RequestsOver, PagesThatAreLetGoLaterComeBackToWhoSends) {
  const auto service = connect(asker());
  answers_ = false;
  std::size_t sent = 0;
  // The replier keeps all requests. When no page is left, further requests are copied.
  for (; sent < 40; ++sent) ASSERT_TRUE(requester_->ask(service, 1, pattern(3000, static_cast<unsigned>(sent)), 60s));
  ASSERT_TRUE(until([&] { return asked_.size() == sent; }));
  for (int i = 0; i < 2000; ++i) poll();
  std::vector<std::pair<Replier::Client, std::uint64_t>> open;
  for (const auto& request : asked_) open.emplace_back(request.client, request.number);
  asked_.clear();  // from here on the test replies outside of poll()
  const Bytes large = pattern(200'000, 5);
  const std::span<const std::byte> part = large;
  ASSERT_TRUE(requester_->ask(service, 2, {&part, 1}, 60s));
  ASSERT_TRUE(until([&] { return asked_.size() == 1; }));
  EXPECT_EQ(whole(asked_[0].message), large);
  for (const auto& [client, number] : open) replier_->refuse(client, number, 7);
  echo(asked_[0]);
  asked_.clear();
  ASSERT_TRUE(until([&] { return ended_.size() == sent + 1; }));
  expect_books();
  ended_.clear();
}

TEST_P(RequestsOver, MessagesOfManyPartsAndPagesArriveAsTheyWere) {
  const auto service = connect(asker());
  for (const std::size_t part_bytes : {1UL, 255UL, 256UL, 300UL, 4072UL, 5000UL, 100'000UL}) {
    std::vector<Bytes> parts;
    for (unsigned i = 0; i < 9; ++i) parts.push_back(pattern(i % 3 == 1 ? 40 : i == 5 ? 0 : part_bytes, i));
    expect_echo(service, parts);
  }
  expect_books();
}

// A piece holds a limited number of parts. So a message of many parts may need far more pieces than its bytes need pages.
TEST_P(RequestsOver, AMessageOfManyMorePartsThanThereArePagesArrives) {
  const auto service = connect(asker());
  for (const std::size_t part_bytes : {256UL, 300UL, 700UL}) {
    std::vector<Bytes> parts;
    for (unsigned i = 0; i < 40; ++i) parts.push_back(pattern(part_bytes, i));
    expect_echo(service, parts);
  }
  expect_books();
}

TEST_P(RequestsOver, MemoryOfAReplyIsLetGoOnceItHasGone) {
  const auto service = connect(asker());
  answers_ = false;
  ASSERT_TRUE(requester_->ask(service, 7, pattern(10, 0), 60s));
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  Owner owner;
  const Bytes memory = pattern(50'000, 3);
  const std::array<std::span<const std::byte>, 2> parts{std::span(memory).first(20'000), std::span(memory).subspan(20'000)};
  replier_->reply(asked_[0].client, asked_[0].number, 0, parts, &owner, 42);
  ASSERT_TRUE(until([&] { return !ended_.empty() && !owner.tags.empty(); }));
  EXPECT_EQ(owner.tags, std::vector<std::uint64_t>{42});
  EXPECT_EQ(whole(ended_[0].message), memory);
  // No request waits for this reply, so it is released at once.
  replier_->reply(asked_[0].client, asked_[0].number, 0, parts, &owner, 43);
  EXPECT_EQ(owner.tags, (std::vector<std::uint64_t>{42, 43}));
  EXPECT_EQ(counter(replier_->counters(), "copied_bytes"), 0U);
}

TEST_P(RequestsOver, WhatIsKeptStopsNothing) {
  const auto service = connect(asker());
  std::vector<Requester::Reply> kept;
  for (unsigned i = 0; i < 40; ++i) {  // five times as many as there are pages
    ASSERT_TRUE(requester_->ask(service, 1, pattern(3000, i), 60s));
    ASSERT_TRUE(until([&] { return !ended_.empty(); })) << i;
    kept.push_back(std::move(ended_[0]));
    ended_.clear();
  }
  for (unsigned i = 0; i < 40; ++i) EXPECT_EQ(whole(kept[i].message), pattern(3000, i)) << i;
}

TEST_F(Requests, WhatIsKeptStopsNothingHoweverFewOrFullThePagesAre) {
  for (const std::uint32_t pages : {2U, 3U, 4U, 8U}) {
    const auto service = connect({.name = "asker", .pages = pages});
    const std::size_t bytes = std::max<std::size_t>(pages / 2, 1) * 4000;  // the most that is kept in one piece
    std::vector<Requester::Reply> kept;
    for (unsigned i = 0; i < 10; ++i) {
      ASSERT_TRUE(requester_->ask(service, 1, pattern(bytes, i), 10s));
      ASSERT_TRUE(until([&] { return !ended_.empty(); }));
      ASSERT_EQ(ended_[0].outcome, Requester::Outcome::answered) << i << " with " << pages;
      kept.push_back(std::move(ended_[0]));
      ended_.clear();
    }
    for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(whole(kept[i].message), pattern(bytes, i)) << i;
  }
}

TEST_P(RequestsOver, WhoDoesNotAnswerInTimeIsNotWaitedForAndAnswersLate) {
  const auto service = connect(asker());
  answers_ = false;
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 10s));
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  skipped_ns_ = 20'000'000'000;
  ASSERT_TRUE(until([&] { return !ended_.empty() && !dropped_.empty(); }));
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::timed_out);
  EXPECT_EQ(dropped_[0].number, asked_[0].number);
  ASSERT_TRUE(until([&] { return requester_->under_way(service) == 0; }));
  echo(asked_[0]);  // has no effect
  EXPECT_EQ(counter(replier_->counters(), "unwanted_replies"), 1U);
  expect_books();
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_P(RequestsOver, ACancelledOneEndsOnce) {
  const auto service = connect(asker());
  answers_ = false;
  const auto request = requester_->ask(service, 1, pattern(10, 0), 60s);
  ASSERT_TRUE(request);
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  echo(asked_[0]);  // the reply and the cancellation arrive at the same time
  requester_->cancel(*request);
  ASSERT_TRUE(until([&] { return requester_->under_way(service) == 0; }));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::cancelled);
  EXPECT_EQ(counter(requester_->counters(), "late_replies"), 1U);
  requester_->cancel(*request);
  poll();
  EXPECT_EQ(ended_.size(), 1U);
  expect_books();
}

TEST_F(Requests, ThoseOfAServiceThatGoesAreLostAndTheNextIsFound) {
  const auto service = connect();
  const std::uint64_t instance = requester_->instance(service);
  answers_ = false;
  const Bytes large = pattern(60'000, 1);
  const std::span<const std::byte> part = large;
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ASSERT_TRUE(requester_->ask(service, 2, MessageParts(&part, 1), 60s));
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  asked_.clear();
  replier_.reset();
  ASSERT_TRUE(until([&] { return ended_.size() == 2; }));
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::lost);
  EXPECT_EQ(ended_[1].outcome, Requester::Outcome::lost);
  EXPECT_FALSE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ended_.clear();
  start();
  answers_ = true;
  ASSERT_TRUE(until([&] { return requester_->connected(service); }));
  EXPECT_NE(requester_->instance(service), instance);
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 5), 60s));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(whole(ended_[0].message), pattern(10, 5));
  expect_books();
}

TEST_F(Requests, WhoHasThePortOfADeadServiceByNowIsNotAskedForIt) {
  BusEntry dead = find_entry(bus_.file("bus"), "echo")->value();
  dead.name = "dead";
  dead.instance += 1;
  std::ofstream(bus_.file("bus/dead.json")) << bus_entry_text(dead);
  (void)connect();
  const auto service = requester_->add("dead");
  ASSERT_TRUE(until([&] { return requester_->trouble(service).contains("another process"); }))
      << requester_->trouble(service);
  EXPECT_FALSE(requester_->connected(service));
  EXPECT_EQ(requester_->instance(service), 0U);
}

TEST_F(Requests, ThoseOfARequesterThatGoesAreDropped) {
  const auto service = connect();
  answers_ = false;
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  requester_.reset();
  ASSERT_TRUE(until([&] { return !dropped_.empty(); }));
  EXPECT_EQ(dropped_[0].client, asked_[0].client);
  EXPECT_TRUE(replier_->client_name(asked_[0].client).empty());
  Owner owner;
  const Bytes bytes = pattern(10, 0);
  const std::span<const std::byte> part = bytes;
  replier_->reply(asked_[0].client, asked_[0].number, 0, {&part, 1}, &owner, 1);
  EXPECT_EQ(owner.tags.size(), 1U);
}

TEST_P(RequestsOver, ARefusalIsNoReply) {
  const auto service = connect(asker());
  answers_ = false;
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  replier_->refuse(asked_[0].client, asked_[0].number, 17);
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::refused);
  EXPECT_EQ(ended_[0].status, 17);
}

TEST_P(RequestsOver, NoMoreAreUnderWayThanMayBe) {
  RequesterSettings few = asker();
  few.most_requests = 3;
  const auto service = connect(few);
  answers_ = false;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
  EXPECT_FALSE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ASSERT_TRUE(until([&] { return asked_.size() == 3; }));
  echo(asked_[0]);
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
}

TEST_F(Requests, AServiceSaysHowManyItTakes) {
  replier_.reset();
  start({.name = {}, .service = {}, .bus = {}, .most_requests = 2});
  const auto service = connect();
  answers_ = false;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
  EXPECT_FALSE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ASSERT_TRUE(until([&] { return asked_.size() == 2; }));
  echo(asked_[1]);
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
}

TEST_F(Requests, AMessageThatIsTooLargeEndsTheConnectionAndHarmsNobodyElse) {
  replier_.reset();
  start({.name = {}, .service = {}, .bus = {}, .most_request_bytes = 1000});
  const auto service = connect();
  ASSERT_TRUE(requester_->ask(service, 1, pattern(1001, 0), 60s));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::lost);
  EXPECT_EQ(counter(replier_->counters(), "refused_peers"), 1U);
  ended_.clear();
  ASSERT_TRUE(until([&] { return requester_->connected(service); }));
  ASSERT_TRUE(requester_->ask(service, 1, pattern(1000, 0), 60s));
  ASSERT_TRUE(until([&] { return !ended_.empty(); }));
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::answered);
}

TEST_F(Requests, WhoTakesNoAnswersCannotAskWithoutAnEnd) {
  replier_.reset();
  start({.name = {}, .service = {}, .bus = {}, .most_requests = 4});
  test::CreditlessRequester peer(bus_.file("bus"), "echo");
  const auto both = [&](const std::function<bool()>& done) {
    return until([&] {
      peer.poll();
      return done();
    });
  };
  ASSERT_TRUE(both([&] { return peer.connected(); }));
  // The protocol allows this: each place has one request, and all are answered.
  for (std::uint64_t place = 0; place < 4; ++place) peer.ask(1ULL << 16 | place);
  ASSERT_TRUE(both([&] { return counter(replier_->counters(), "requests") == 4; }));
  EXPECT_EQ(counter(replier_->counters(), "refused_peers"), 0U);
  for (std::uint64_t again = 2; again < 7; ++again) peer.ask(again << 16 | 3);
  ASSERT_TRUE(both([&] { return peer.gone; }));
  EXPECT_EQ(counter(replier_->counters(), "refused_peers"), 1U);
  EXPECT_EQ(counter(replier_->counters(), "requests"), 4U);
  EXPECT_EQ(counter(replier_->counters(), "unwanted_replies"), 4U);
}

TEST_F(Requests, MemoryOfARequestIsTheNetworksThoughItWasAnsweredTooSoon) {
  constexpr std::uint32_t kPageBytes = 1U << 20;
  test::HastyReplier hasty(bus_.file("bus"), kPageBytes);
  requester_.emplace(RequesterSettings{.name = "asker", .bus = bus_.file("bus"), .pages = test::HastyReplier::kPages});
  const auto service = requester_->add("hasty");
  const auto both = [&](const std::function<bool()>& done) {
    return until([&] {
      hasty.poll(base::steady_now_ns());
      return done();
    });
  };
  ASSERT_TRUE(both([&] { return requester_->connected(service); })) << requester_->trouble(service);
  // Gives more data than sockets hold to the network at once.
  const Bytes memory(test::HastyReplier::kPages * (kPageBytes - formats::kPieceHeadBytes));
  const std::span<const std::byte> part = memory;
  std::optional<Requester::Request> request;
  ASSERT_TRUE(both(
      [&] { return hasty.pieces == 1 || (!request && (request = requester_->ask(service, 1, {&part, 1}, 60s), false)); }));
  ASSERT_TRUE(request);
  requester_->cancel(*request);
  hasty.reply();
  ASSERT_TRUE(both([&] { return counter(requester_->counters(), "late_replies") == 1; }));
  EXPECT_TRUE(ended_.empty());
  hasty.drains = true;
  ASSERT_TRUE(both([&] { return !ended_.empty(); }));
  EXPECT_GT(hasty.pieces, 1U);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::cancelled);
  EXPECT_EQ(requester_->under_way(service), 0U);
  expect_books();
}

TEST_F(Requests, OneThatIsNotAskedAnyMoreIsNotCalledAgain) {
  const auto service = connect();
  answers_ = false;
  ASSERT_TRUE(requester_->ask(service, 1, pattern(10, 0), 60s));
  ASSERT_TRUE(until([&] { return !asked_.empty(); }));
  requester_->remove(service);
  poll();
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].outcome, Requester::Outcome::lost);
  ASSERT_TRUE(until([&] { return !dropped_.empty(); }));
  EXPECT_FALSE(requester_->connected(service));
}

TEST(ReplierRequests, OneIsDroppedByItsClientAndNumber) {
  const std::vector<Replier::Dropped> dropped{{7, 1}, {8, 2}};
  EXPECT_TRUE(Replier::was_dropped({.client = 8, .number = 2}, dropped));
  EXPECT_FALSE(Replier::was_dropped({.client = 7, .number = 2}, dropped));
  EXPECT_FALSE(Replier::was_dropped({.client = 9, .number = 1}, dropped));
  EXPECT_FALSE(Replier::was_dropped({.client = 7, .number = 1}, {}));
}

}  // namespace
}  // namespace rodeo::transport
