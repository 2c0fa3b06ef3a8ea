// A publisher and a subscriber in one thread; the test sets their time.
#include "transport/subscriber.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/fd_socket.h"
#include "base/named_counters.h"
#include "formats/network_page.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
#include "transport/handshake.h"
#include "transport/publisher.h"
#include "transport/random.h"
#include "transport/secret.h"

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
    if (other_) other_->progress(now_, now_);
    subscriber_->progress(now_);
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { subscriber_->on_event(port, event); });
    while (const auto page = subscriber_->next()) {
      formats::NetworkPageReader reader(links_.size(), 4096);
      ASSERT_TRUE(reader.read(page->bytes));
      for (std::size_t i = 0; i < reader.runs().size(); ++i) {
        chunks_ += reader.runs()[i].count;
        told_ = reader.counts()[i] + reader.runs()[i].count;
      }
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
  /// Tests assume that there is no RDMA device.
  void offer_rdma() {
    auto settings = publisher();
    settings.providers = {"verbs", "tcp"};
    publisher_.emplace(settings, links_);
  }
  /// The publisher's answer to a subscriber of session 1 that requests this network and then leaves.
  formats::ControlMessage ask(const std::string& provider) {
    ControlSocket socket;
    return ask(provider, socket);
  }
  /// A subscriber that exists as long as the socket and does not connect.
  formats::ControlMessage ask(const std::string& provider, ControlSocket& socket) {
    const BusEntry entry = read_bus(bus_)->entries.front();
    socket = ControlSocket::call(entry.address, entry.port).value();
    Handshake handshake(Handshake::Side::subscriber, {.nonce = random_bytes<32>(), .instance = 1, .program = "test"}, "");
    std::vector<std::byte> hello;
    handshake.begin(hello);
    socket.say(hello);
    socket.say(
        formats::ControlSubscribe{.session = 1, .provider = provider, .page_bytes = 4096, .pages = 8, .links = links_});
    for (int i = 0; i < 10'000; ++i) {
      now_ += 1'000'000;
      publisher_->progress(now_, now_);
      const auto message = socket.next();
      if (!message) break;
      if (*message && !std::holds_alternative<formats::ControlHello>(**message)) return **message;
    }
    return formats::ControlLeave{};
  }
  /// The bus file of a killed publisher with the same links.
  void leave_entry_of_the_dead(const std::string& name, std::uint16_t port) const {
    BusEntry dead = read_bus(bus_)->entries.front();
    dead.name = name;
    dead.instance += 1;
    dead.port = port;
    std::ofstream(bus_ / (name + ".json")) << bus_entry_text(dead);
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
  std::optional<Publisher> other_;
  std::optional<Subscriber> subscriber_;
  std::uint64_t now_ = 1000 * kSecond;
  std::uint64_t chunks_ = 0;
  std::uint64_t told_ = 0;  ///< number of chunks of the last link by its own count
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
  EXPECT_TRUE(subscriber_->ended()) << "it no longer looks for a publisher";
}

TEST_F(Subscribers, EveryPageIsClosedForAReasonThatIsCounted) {
  start();
  const auto counted = [&](const char* name) { return base::counter_value(publisher_->counters(), name); };
  ASSERT_TRUE(until([&] { return counted("pages_of_clock") > 0; })) << "nothing is sent";
  publish(10);
  ASSERT_TRUE(until([&] { return chunks_ == 10; }));
  ASSERT_TRUE(until([&] { return counted("pages_by_time") == 1; }));
  const std::vector<std::byte> data(40 * 200);
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 200};  // a page holds 100 of these chunks
  ASSERT_TRUE(publisher_->publish({&run, 1}));
  publisher_->end();
  ASSERT_TRUE(until([&] { return subscriber_->ended() && publisher_->ended(); }));
  EXPECT_EQ(chunks_, 210);
  EXPECT_EQ(counted("pages_full"), 1);
  EXPECT_EQ(counted("pages_at_end"), 1);
  EXPECT_EQ(counted("pages_unbuffered"), 0);
  EXPECT_EQ(counted("pages_sent"), 3 + counted("pages_of_clock"));
  const auto gone = publisher_->subscribers();
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].pages_filled, 0);
  EXPECT_EQ(gone[0].page_slots, 8);
}

TEST_F(Subscribers, WhereAPageIsToGoAtOnceNoTimeHasToGoBy) {
  auto settings = publisher();
  settings.flush = std::chrono::nanoseconds{0};
  publisher_.emplace(settings, links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing() && publisher_->all_links_subscribed(); }));
  for (int i = 0; i < 100; ++i) step();  // by then the publisher has credit
  publish(1);
  for (int i = 0; i < 900 && chunks_ == 0; ++i) {
    step(1000);
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  EXPECT_EQ(chunks_, 1U);
}

TEST_F(Subscribers, AnEndThatWasSaidBeforeTheConnectionBrokeIsTheEnd) {
  start();
  publish(10);
  ASSERT_TRUE(until([&] { return chunks_ == 10; }));
  publisher_->end();
  // The subscriber does nothing until all messages are sent and the publisher is gone.
  for (int i = 0; i < 50; ++i) {
    now_ += 1'000'000;
    publisher_->progress(now_, now_);
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { subscriber_->on_event(port, event); });
    if (i % 10 == 9) subscriber_->replenish();
  }
  publisher_.reset();
  for (int i = 0; i < 1000; ++i)
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { subscriber_->on_event(port, event); });
  step();
  EXPECT_TRUE(subscriber_->ended()) << subscriber_->trouble();
}

TEST_F(Subscribers, AnEndThatIsHeardBeforeTheConnectionIsSeenIsTheEnd) {
  publisher_.emplace(publisher(), links_);
  publisher_->end();
  subscriber_.emplace(subscriber(), links_, ports_);
  std::vector<std::pair<const FabricPort*, FabricPort::Event>> seen_late;
  for (int more = 100; more > 0 && now_ < 1004 * kSecond; more -= seen_late.empty() ? 0 : 1) {
    publisher_->progress(now_ += 1'000'000, 0);
    subscriber_->progress(now_);
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { seen_late.emplace_back(&port, event); });
  }
  ASSERT_EQ(seen_late.size(), 1U) << subscriber_->trouble();
  EXPECT_FALSE(subscriber_->ended());
  subscriber_->on_event(*seen_late[0].first, seen_late[0].second);
  EXPECT_TRUE(subscriber_->ended()) << subscriber_->trouble();
  EXPECT_EQ(subscriber_->connections(), 1U);
  EXPECT_TRUE(until([&] { return publisher_->ended(); }));
}

TEST_F(Subscribers, WhatCannotBeHadWithOneNetworkIsTriedWithTheNext) {
  auto settings = publisher();
  settings.providers = {"tcp"};
  publisher_.emplace(settings, links_);
  // Both sides claim to have RDMA, but there is no device.
  auto entry = read_bus(bus_)->entries.front();
  entry.providers = {"verbs", "tcp"};
  std::ofstream(bus_ / (entry.name + ".json")) << bus_entry_text(entry);
  auto wish = subscriber();
  wish.provider = "auto";
  wish.here.rdma = true;
  subscriber_.emplace(wish, links_, ports_);
  bool ended = false;
  ASSERT_TRUE(until([&] {
    ended = ended || subscriber_->last_end();
    return subscriber_->flowing();
  }));
  EXPECT_FALSE(ended) << "a wait for the first connection is never given up";
  publish(10);
  EXPECT_TRUE(until([&] { return chunks_ == 10; }));
}

TEST_F(Subscribers, WhoAsksForANetworkThatIsOfferedAndNotThereIsRefusedAndThatIsAll) {
  offer_rdma();
  const auto answer = ask("verbs");
  ASSERT_TRUE(std::holds_alternative<formats::ControlRefuse>(answer));
  EXPECT_EQ(std::get<formats::ControlRefuse>(answer).code, "transport.provider");
  subscriber_.emplace(subscriber(), links_, ports_);
  EXPECT_TRUE(until([&] { return subscriber_->flowing(); })) << "with another network";
}

TEST_F(Subscribers, WhatIsKeptForOneThatComesBackIsKeptThoughItAsksForANetworkThatIsNotThere) {
  offer_rdma();
  const auto first = ask("tcp");
  ASSERT_TRUE(std::holds_alternative<formats::ControlAccept>(first));
  EXPECT_FALSE(std::get<formats::ControlAccept>(first).resumed);
  publish(5);
  ASSERT_TRUE(std::holds_alternative<formats::ControlRefuse>(ask("verbs")));
  const auto last = ask("tcp");
  ASSERT_TRUE(std::holds_alternative<formats::ControlAccept>(last));
  EXPECT_TRUE(std::get<formats::ControlAccept>(last).resumed);
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0U);
}

TEST_F(Subscribers, OneThatComesBackAndBackAndNeverConnectsIsHeldForNoLongerThanGrace) {
  publisher_.emplace(publisher(), links_);
  ASSERT_TRUE(std::holds_alternative<formats::ControlAccept>(ask("tcp")));
  publish(5);
  bool resumed = true;
  for (int second = 0; second < 8 && resumed; ++second) {
    for (int i = 0; i < 10; ++i) publisher_->progress(now_ += kSecond / 10, 0);
    const auto answer = ask("tcp");
    ASSERT_TRUE(std::holds_alternative<formats::ControlAccept>(answer));
    resumed = std::get<formats::ControlAccept>(answer).resumed;
  }
  EXPECT_FALSE(resumed);
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 5U);
}

TEST_F(Subscribers, OneThatStaysAndNeverConnectsIsGivenUp) {
  publisher_.emplace(publisher(), links_);
  ControlSocket socket;
  ASSERT_TRUE(std::holds_alternative<formats::ControlAccept>(ask("tcp", socket)));
  publish(5);
  for (int i = 0; i < 90; ++i) publisher_->progress(now_ += kSecond / 10, 0);
  EXPECT_TRUE(publisher_->wanted(0));
  for (int i = 0; i < 80; ++i) publisher_->progress(now_ += kSecond / 10, 0);
  EXPECT_FALSE(publisher_->wanted(0));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 5U);
}

TEST_F(Subscribers, APublisherTakesNoMoreThanItHasMemoryFor) {
  auto settings = publisher();
  settings.most_subscribers = 1;
  publisher_.emplace(settings, links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  FabricPorts ports;
  Subscriber second(subscriber(), links_, ports);
  ASSERT_TRUE(until([&] {
    second.progress(now_);
    return second.trouble().contains("takes no more");
  }));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "refused_peers"), 1);
  publish(10);
  EXPECT_TRUE(until([&] { return chunks_ == 10; })) << "the first subscriber notices nothing";
}

TEST_F(Subscribers, OneWhoseProcessIsStartedAnewBeginsThenAndNothingMoreIsKeptForItsFormerLife) {
  start();
  publish(10);
  ASSERT_TRUE(until([&] { return chunks_ == 10; }));
  subscriber_.reset();
  for (int i = 0; i < 100; ++i) publisher_->progress(now_ += 1'000'000, 0);
  publish(5);
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0U) << "it may come back";
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  publish(7);
  ASSERT_TRUE(until([&] { return chunks_ == 17; }));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 5U);
}

TEST_F(Subscribers, APublisherAtAnAddressOfTheOtherFamilyIsReached) {
  const base::UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) != 0)
    GTEST_SKIP() << "host: needs ::1";
  auto settings = publisher();
  settings.address = "::1";
  publisher_.emplace(settings, links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); })) << subscriber_->trouble();
  publish(10);
  EXPECT_TRUE(until([&] { return chunks_ == 10; }));
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

// The publisher has accepted it, but its connection is not complete at its end. So the publisher holds no data for it.
TEST_F(Subscribers, WhoLeavesBeforeItIsConnectedIsNotWaitedFor) {
  publisher_.emplace(publisher(), links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  for (int i = 0; i < 10'000 && !publisher_->wanted(0); ++i) {
    now_ += 1'000'000;
    subscriber_->progress(now_);
    publisher_->progress(now_, now_);
  }
  ASSERT_TRUE(publisher_->wanted(0));
  ASSERT_FALSE(subscriber_->flowing());
  subscriber_->leave();
  for (int i = 0; i < 1000 && publisher_->wanted(0); ++i) {
    subscriber_->progress(now_ += 1'000'000);
    publisher_->progress(now_, now_);
  }
  EXPECT_FALSE(publisher_->wanted(0)) << "long before `grace` is over";
  EXPECT_TRUE(subscriber_->ended());
}

TEST_F(Subscribers, WhoLeavesStaysAsLongAsSomethingComes) {
  start();
  std::vector<std::uint32_t> kept;  // slots that the test holds back; only returned slots give credit
  std::size_t pages = 0;
  const auto keep = [&](std::uint64_t by = 1'000'000) {
    publisher_->progress(now_ += by, 0);
    subscriber_->progress(now_);
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { subscriber_->on_event(port, event); });
    for (; const auto page = subscriber_->next(); ++pages) kept.push_back(page->slot);
  };
  const std::vector<std::byte> data(40 * 1250);  // a page holds 100 of these chunks
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 1250};
  bool published = false;
  for (int i = 0; i < 100'000 && !(published && kept.size() == 8); ++i) {
    published = published || publisher_->publish({&run, 1});
    keep();
  }
  ASSERT_TRUE(published);
  subscriber_->leave();
  for (int second = 0; second < 20 && !subscriber_->ended(); ++second) {
    const std::size_t before = pages;
    if (!kept.empty()) subscriber_->give_back(kept.back());
    if (!kept.empty()) kept.pop_back();
    for (int i = 0; i < 500 && pages == before && !subscriber_->ended(); ++i) keep();
    if (!subscriber_->ended()) keep(kSecond);
  }
  EXPECT_TRUE(subscriber_->ended());
  EXPECT_GE(pages, 13U);
  ASSERT_TRUE(until([&] { return publisher_->subscribers().front().gone; }));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0U);
}

// The subscriber's consumers stop over the end of the run and hold all pages. The subscriber must not take this for a silent
// publisher.
TEST_F(Subscribers, WhoLeavesStaysAsLongAsItHasNoRoomForWhatComes) {
  start();
  const std::vector<std::byte> data(40 * 1250);  // a page holds 100 of these chunks
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 1250};
  std::vector<std::uint32_t> kept;
  std::size_t pages = 0;
  bool published = false;
  const auto keep = [&] {
    published = published || publisher_->publish({&run, 1});
    publisher_->progress(now_ += 1'000'000, 0);
    subscriber_->progress(now_);
    ports_.poll([&](const FabricPort& port, const FabricPort::Event& event) { subscriber_->on_event(port, event); });
    for (; const auto page = subscriber_->next(); ++pages) kept.push_back(page->slot);
  };
  for (int i = 0; i < 100'000 && !(published && kept.size() == 8); ++i) keep();
  ASSERT_TRUE(published);
  subscriber_->leave();
  for (int i = 0; i < 5000; ++i) keep();
  ASSERT_FALSE(subscriber_->ended());
  now_ += 10 * kSecond;  // this thread had stopped as well
  for (; !kept.empty(); kept.pop_back()) subscriber_->give_back(kept.back());
  subscriber_->replenish();
  for (int i = 0; i < 100'000 && !subscriber_->ended(); ++i) {
    keep();
    for (; !kept.empty(); kept.pop_back()) subscriber_->give_back(kept.back());
    subscriber_->replenish();
  }
  EXPECT_TRUE(subscriber_->ended());
  EXPECT_GE(pages, 13U);
  ASSERT_TRUE(until([&] { return publisher_->subscribers().front().gone; }));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0U);
}

TEST_F(Subscribers, WhatIsInPagesOfOneThatLeavesInTheMiddleOfARunIsItsAndTheRestIsNobodys) {
  start();
  const std::vector<std::byte> data(40 * 20'000);
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 20'000};
  ASSERT_FALSE(publisher_->publish({&run, 1})) << "the data need more than eight pages";
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
  for (int i = 0; i < 12; ++i) subscriber_->progress(now_ += kSecond);  // the publisher cannot answer during this time
  EXPECT_EQ(subscriber_->trouble(), "publisher test.0 does not answer");
  EXPECT_TRUE(until([&] { return subscriber_->flowing(); }));
  EXPECT_EQ(subscriber_->trouble(), "");
}

TEST_F(Subscribers, WhatAReturningSubscriberWantedIsHeldForAsLongAsGraceSays) {
  start();
  subscriber_.emplace(subscriber(), links_, ports_);  // the first subscriber has ended without a message
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  publish(3);
  ASSERT_TRUE(until([&] { return chunks_ == 3; }));
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0);
  step(6 * kSecond);
  step();
  EXPECT_EQ(base::counter_value(publisher_->counters(), "undelivered"), 0)
      << "the earlier connection was released when the next one came";
}

TEST_F(Subscribers, OneThatTakesShowsWhetherTheRunInHandGoesOnAndOthersDoNot) {
  start();
  FabricPorts ports;
  Subscriber quick(subscriber(), links_, ports);
  const auto step_quick = [&] {
    now_ += 1'000'000;
    publisher_->progress(now_, now_);
    quick.progress(now_);
    ports.poll([&](const FabricPort& port, const FabricPort::Event& event) { quick.on_event(port, event); });
    while (const auto page = quick.next()) quick.give_back(page->slot);
  };
  for (int i = 0; i < 100'000 && !quick.flowing(); ++i) step_quick();
  const std::vector<std::byte> data(40 * 2000);
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 2000};
  for (int i = 0; i < 200; ++i) {
    ASSERT_FALSE(publisher_->publish({&run, 1})) << "the first subscriber takes no pages";
    step_quick();
  }
  const std::uint64_t taken = publisher_->pages_taken();
  for (int i = 0; i < 200; ++i) {
    ASSERT_FALSE(publisher_->publish({&run, 1}));
    step_quick();
  }
  EXPECT_EQ(publisher_->pages_taken(), taken) << "although the other gets the clock";
  ASSERT_TRUE(until([&] {
    (void)publisher_->publish({&run, 1});
    return publisher_->pages_taken() > taken;
  }));
}

TEST_F(Subscribers, PagesThatTellTheClockTakeNoRoomOfChunksFromOneThatStandsStill) {
  start();
  const auto sent = [&] { return base::counter_value(publisher_->counters(), "pages_of_clock"); };
  ASSERT_TRUE(until([&] { return sent() > 0; }));
  for (int i = 0; i < 20; ++i) step(kSecond / 10);
  const std::uint64_t before = sent();
  for (int i = 0; i < 50; ++i) {
    now_ += kSecond / 10;
    publisher_->progress(now_, now_);
  }
  EXPECT_LE(sent(), before + 1);
  EXPECT_LE(publisher_->subscribers().front().pages_filled, 1U);
  for (int i = 0; i < 50; ++i) step(kSecond / 10);
  EXPECT_GT(sent(), before + 10) << "it continues with the subscriber";
}

TEST_F(Subscribers, WhatIsGivenUpIsInTheTallyOfItsLinkAndGoesToNobody) {
  start();
  const std::vector<std::byte> data(40 * 1000);
  const auto run = [&](std::uint32_t count, LinkIndex link) {
    return ChunkRun{.data = data.data(), .size = 40, .stride = 40, .count = count, .link = link};
  };
  const std::array runs{run(2, 0), run(1000, 0), run(3, 1)};
  ASSERT_FALSE(publisher_->publish(runs)) << "the data need more than eight pages";
  EXPECT_EQ(publisher_->tally(0), (LinkTally{2, 80, 0})) << "the current run is not taken";
  const std::uint64_t given_up = publisher_->give_up(runs).chunks;
  const std::array later{run(7, 1)};
  EXPECT_EQ(publisher_->give_up(later).chunks, 7U);
  EXPECT_EQ(publisher_->tally(0), (LinkTally{1002, 40'080, 0}));
  EXPECT_EQ(publisher_->tally(1), (LinkTally{10, 400, 0}));
  const auto counters = publisher_->counters();
  EXPECT_EQ(base::counter_value(counters, "chunks_wanted") + given_up, 1005U);
  EXPECT_LT(given_up, 303U) << "except the chunks in pages";
}

TEST_F(Subscribers, WhatSomebodyHasOfARunThatIsGivenUpIsWanted) {
  start();
  const std::vector<std::byte> data(40 * 1000);
  const std::array runs{ChunkRun{.data = data.data(), .size = 40, .stride = 40, .count = 1000}};
  ASSERT_FALSE(publisher_->publish(runs)) << "the data need more than eight pages";
  const std::uint64_t given_up = publisher_->give_up(runs).chunks;
  ASSERT_TRUE(until([&] { return chunks_ == 1000 - given_up; }));
  EXPECT_GT(chunks_, 700U) << "eight pages";
  EXPECT_EQ(base::counter_value(publisher_->counters(), "chunks_wanted"), chunks_);
}

TEST_F(Subscribers, GraceCountsFromWhenThePublisherLooksAndNotFromWhenItLastDid) {
  start();
  const std::vector<std::byte> data(40 * 2000);
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 2000};
  ASSERT_FALSE(publisher_->publish({&run, 1})) << "the data need more than eight pages";
  subscriber_.reset();
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(publisher_->publish({&run, 1}));  // the publisher notices the end
  now_ += 60 * kSecond;                                                         // no time to handle the end
  for (int i = 0; i < 10; ++i) publisher_->progress(now_ += kSecond / 10, 0);
  EXPECT_TRUE(publisher_->wanted(0));
  now_ += 5 * kSecond;
  publisher_->progress(now_, 0);
  publisher_->progress(now_ += kSecond, 0);
  EXPECT_FALSE(publisher_->wanted(0));
  EXPECT_GT(base::counter_value(publisher_->counters(), "undelivered"), 0U);
}

TEST_F(Subscribers, OneThatNamesItsPublisherHasThatOneThoughAnotherHasTheSameLinks) {
  PublisherSettings first = publisher();
  first.name = "a.0";
  other_.emplace(first, links_);
  publisher_.emplace(publisher(), links_);
  SubscriberSettings settings = subscriber();
  settings.publisher = "test.0";
  subscriber_.emplace(settings, links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  EXPECT_EQ(subscriber_->publisher(), "test.0");
  EXPECT_FALSE(other_->wanted(0));
}

TEST_F(Subscribers, WhatADeadPublisherLeftOnTheBusHidesNoneThatLives) {
  publisher_.emplace(publisher(), links_);
  leave_entry_of_the_dead("a.0", 1);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); })) << subscriber_->trouble();
  EXPECT_EQ(subscriber_->publisher(), "test.0");
}

TEST_F(Subscribers, OneThatHasTheDeadOnesPortByNowIsNotTakenForIt) {
  publisher_.emplace(publisher(), links_);
  PublisherSettings another = publisher();
  another.name = "z.0";
  other_.emplace(another, links_);
  leave_entry_of_the_dead("a.0", find_entry(bus_, "z.0")->value().port);
  SubscriberSettings settings = subscriber();
  settings.publisher = "a.0";
  subscriber_.emplace(settings, links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->last_end().has_value(); }));
  EXPECT_EQ(subscriber_->last_end()->code, "transport.closed");
  EXPECT_TRUE(subscriber_->trouble().contains("another process")) << subscriber_->trouble();
  EXPECT_EQ(subscriber_->connections(), 0U);
}

TEST_F(Subscribers, AnEntryWithoutPagesIsRefusedAndHidesNobody) {
  publisher_.emplace(publisher(), links_);
  PublisherSettings small = publisher();
  small.name = "a.0";
  other_.emplace(small, links_);
  for (const std::uint32_t bytes : {0U, 255U}) {
    BusEntry entry = find_entry(bus_, "a.0")->value();  // the entry of the service for messages to front ends
    entry.page_bytes = bytes;
    std::ofstream(bus_ / "a.0.json") << bus_entry_text(entry);
    subscriber_.emplace(subscriber(), links_, ports_);
    ASSERT_TRUE(until([&] { return subscriber_->last_end().has_value(); }));
    EXPECT_EQ(subscriber_->last_end()->code, "transport.page_bytes");
    ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
    EXPECT_EQ(subscriber_->publisher(), "test.0");
  }
}

TEST_F(Subscribers, OneThatRefusesHidesNoneThatDoesNot) {
  PublisherSettings first = publisher();
  first.name = "a.0";
  first.secret = "another's";
  other_.emplace(first, links_);
  publisher_.emplace(publisher(), links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); })) << subscriber_->trouble();
  EXPECT_EQ(subscriber_->publisher(), "test.0");
}

TEST_F(Subscribers, AfterABreakThePublisherThatHasTheSessionIsAskedFirst) {
  start();
  PublisherSettings first = publisher();
  first.name = "a.0";
  other_.emplace(first, links_);
  subscriber_->refuse("the test wants it so");
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  EXPECT_EQ(subscriber_->publisher(), "test.0");
  EXPECT_EQ(subscriber_->connections(), 2U);
  EXPECT_EQ(subscriber_->sessions(), 1U);
}

// The subscriber asks another publisher, which refuses. The first publisher still keeps the data for this subscriber.
TEST_F(Subscribers, ASessionStandsUntilAnotherPublisherHasAccepted) {
  start();
  const std::uint64_t connections = subscriber_->connections();
  PublisherSettings full = publisher();
  full.name = "a.0";
  full.most_subscribers = 0;
  full.page_bytes = 8192;  // this also makes it another kind
  other_.emplace(full, links_);
  subscriber_->refuse("the test wants it so");
  // The first publisher does not answer in time, so the subscriber asks the other one.
  for (int i = 0; i < 200 && subscriber_->trouble().find("a.0") == std::string::npos && subscriber_->publisher() != "a.0";
       ++i) {
    now_ += kSecond / 5;
    other_->progress(now_, now_);
    subscriber_->progress(now_);
  }
  ASSERT_EQ(subscriber_->publisher(), "a.0");
  const auto refused = [&] { return base::counter_value(other_->counters(), "refused_peers"); };
  for (int i = 0; i < 1000 && refused() == 0; ++i) {
    now_ += 1'000'000;
    other_->progress(now_, now_);
    subscriber_->progress(now_);
  }
  ASSERT_EQ(refused(), 1U) << "it was asked and has refused";
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); })) << subscriber_->trouble();
  EXPECT_EQ(subscriber_->publisher(), "test.0");
  EXPECT_EQ(subscriber_->connections(), connections + 1);
  EXPECT_EQ(subscriber_->sessions(), 1U);
}

TEST_F(Subscribers, WhatAMonitorHasNoRoomForIsInNoPages) {
  publisher_.emplace(publisher(), links_);
  SubscriberSettings settings = subscriber();
  settings.monitor = true;
  subscriber_.emplace(settings, links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing() && publisher_->wanted(0); }));
  const std::vector<std::byte> data(40 * 5000);
  const ChunkRun run{.data = data.data(), .size = 40, .stride = 40, .count = 5000};
  ASSERT_TRUE(publisher_->publish({&run, 1}));
  publisher_->progress(now_ += kSecond, 0);
  const auto counters = publisher_->counters();
  const std::uint64_t dropped = base::counter_value(counters, "monitor_chunks_dropped");
  EXPECT_GT(dropped, 0U);
  EXPECT_EQ(base::counter_value(counters, "chunks_wanted"), base::counter_value(counters, "chunks_published"));
  EXPECT_EQ(base::counter_value(counters, "no_subscriber"), dropped);
}

TEST_F(Subscribers, OnlySubscribersOfDataAreWaitedFor) {
  publisher_.emplace(publisher(), links_);
  SubscriberSettings settings = subscriber();
  settings.monitor = true;
  subscriber_.emplace(settings, links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  EXPECT_TRUE(publisher_->wanted(0));
  EXPECT_FALSE(publisher_->wanted_as_data(0));
  start();
  EXPECT_TRUE(publisher_->wanted_as_data(0));
}

TEST_F(Subscribers, ChunksThatWereLostBeforeThePublisherAreMissedBySubscribers) {
  start();
  publish(3);
  publisher_->skip(0, 5);
  publish(2);
  ASSERT_TRUE(until([&] { return chunks_ == 5; }));
  EXPECT_EQ(told_, 10);
}

TEST_F(Subscribers, WhoeverIsRefusedKnowsWhyAsLongAsWhoRefusesIsThere) {
  PublisherSettings settings = publisher();
  settings.secret = "ours";
  publisher_.emplace(settings, links_);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->refusal().has_value(); }));
  EXPECT_EQ(subscriber_->last_end()->code, "transport.secret");
  EXPECT_EQ(subscriber_->refusal()->why.code, "transport.secret");
  EXPECT_EQ(subscriber_->refusal()->publisher, "test.0");
  EXPECT_EQ(subscriber_->connections(), 0);
  publisher_.reset();
  EXPECT_TRUE(until([&] { return !subscriber_->refusal(); }));
}

// A second entry names a dead publisher. The subscriber must still report the refusal of the living one.
TEST_F(Subscribers, WhoRefusesStillDoesWhenADeadOneWasAskedMeanwhile) {
  PublisherSettings settings = publisher();
  settings.secret = "ours";
  publisher_.emplace(settings, links_);
  leave_entry_of_the_dead("zdead.0", 1);
  subscriber_.emplace(subscriber(), links_, ports_);
  ASSERT_TRUE(until([&] { return subscriber_->refusal().has_value(); }));
  ASSERT_TRUE(until([&] { return subscriber_->publisher() == "zdead.0"; }));
  EXPECT_TRUE(subscriber_->refusal());
}

TEST_F(Subscribers, APublisherThatSaidTheEndWasNotCutOff) {
  start();
  publish(10);
  publisher_->end();
  ASSERT_TRUE(until([&] { return subscriber_->ended(); }));
  EXPECT_EQ(subscriber_->cut_off(), 0U);
}

TEST_F(Subscribers, AConnectionThatIsMadeAgainCutsNobodyOff) {
  start();
  subscriber_->refuse("the test wants it so");
  ASSERT_TRUE(until([&] { return subscriber_->flowing() && subscriber_->connections() == 2; }));
  subscriber_->leave();
  ASSERT_TRUE(until([&] { return subscriber_->ended(); }));
  EXPECT_EQ(subscriber_->cut_off(), 0U);
}

TEST_F(Subscribers, APublisherThatDiedWasCutOffWhoeverComesAfterIt) {
  start();
  publisher_.reset();
  ASSERT_TRUE(until([&] { return !subscriber_->flowing(); }));
  EXPECT_EQ(subscriber_->cut_off(), 0U) << "it may come back";
  publisher_.emplace(publisher(), links_);
  ASSERT_TRUE(until([&] { return subscriber_->flowing(); }));
  EXPECT_EQ(subscriber_->cut_off(), 1U);
  publisher_.reset();
  ASSERT_TRUE(until([&] { return !subscriber_->flowing(); }));
  subscriber_->leave();
  ASSERT_TRUE(until([&] { return subscriber_->ended(); }));
  EXPECT_EQ(subscriber_->cut_off(), 2U) << "no publisher has come after the second";
}

TEST(PublisherAddress, IsOneThatOthersCanConnectTo) {
  const auto code = [](const char* address, const char* secret) {
    const auto refused = refuse_open_address(address, secret);
    return refused ? std::string() : refused.error().code;
  };
  for (const char* wildcard : {"0.0.0.0", "::", "0:0::0:0"}) {
    EXPECT_EQ(code(wildcard, "secret"), "transport.address") << wildcard;
    EXPECT_EQ(code(wildcard, ""), "transport.no_secret") << wildcard;
  }
  for (const char* good : {"127.0.0.1", "::1"}) EXPECT_EQ(code(good, ""), "") << good;
  EXPECT_EQ(code("10.0.0.5", "secret"), "");
}

TEST(ControlSockets, OnlyWhoMustReadIsTakenForGoneWhenHeDoesNot) {
  const ControlListener listener = ControlListener::open("127.0.0.1").value();
  const auto time_out_ms = [&](ControlSocket::Peer peer) {
    const ControlSocket socket = ControlSocket::call("127.0.0.1", listener.port(), peer).value();
    unsigned value = 1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(time_out_ms(ControlSocket::Peer::reads), 15'000U);
  EXPECT_EQ(time_out_ms(ControlSocket::Peer::may_not_read), 0U);
}

}  // namespace
}  // namespace rodeo::transport
