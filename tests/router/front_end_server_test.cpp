// Messages to front ends, from the public API to devices of the test.
#include "router/front_end/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <mutex>

#include "formats/front_end_link.h"
#include "formats/temporary_directory.h"
#include "rodeo/front_end.h"
#include "transport/control_socket.h"

namespace rodeo::router {
namespace {

using Bytes = std::vector<std::byte>;

/// A connection that sends and receives raw messages after the handshake.
transport::ControlSocket stranger(const std::filesystem::path& bus, std::initializer_list<Fid> links) {
  const auto entries = transport::read_bus(bus)->entries;
  auto socket = transport::ControlSocket::call(entries.at(0).address, entries.at(0).port).value();
  socket.say(formats::ControlHello{.program = "stranger"});
  socket.say(formats::ControlClaim{.name = "stranger", .links = links});
  for (int messages = 0; messages < 2;) {
    socket.flush();
    const auto said = socket.next();
    EXPECT_TRUE(said) << said.error().message();
    if (!said) break;
    if (*said) ++messages;
    socket.wait(std::chrono::milliseconds{100});
  }
  return socket;
}

/// Two links: the first echoes messages as answers; the second has no room while `full` is set.
class Echo final : public FrontEndDevice {
 public:
  std::span<const Fid> links() const override { return links_; }
  Result<std::optional<Bytes>> send(std::size_t link, std::span<const std::byte> message) override {
    if (link == 1 && full) return std::nullopt;
    if (message.size() == 13) return std::unexpected(Error{"card.slow_control", "thirteen"});
    const std::scoped_lock lock(mutex);
    sent[link].emplace_back(message.begin(), message.end());
    return link == 0 ? Bytes(message.begin(), message.end()) : Bytes{};
  }
  void hurry() override { hurried = true; }

  std::atomic<bool> full{false};
  std::atomic<bool> hurried{false};
  std::mutex mutex;
  std::map<std::size_t, std::vector<Bytes>> sent;

 private:
  std::vector<Fid> links_{formats::to_front_end(Fid::of(0, 0, 0, 0)), formats::to_front_end(Fid::of(0, 0, 0, 1))};
};

class FrontEnds : public testing::Test {
 protected:
  void SetUp() override {
    auto echo = std::make_unique<Echo>();
    echo_ = echo.get();
    std::vector<std::unique_ptr<FrontEndDevice>> devices;
    devices.push_back(std::move(echo));
    server_ = std::make_unique<FrontEndServer>(transport::PublisherSettings{.name = "front_ends", .bus = bus_.path()},
                                               FrontEndSettings{.enabled = true, .bytes_per_second = 1'000'000'000},
                                               std::move(devices));
    server_->start();
  }

  FrontEndSender claim(std::initializer_list<Fid> links) {
    return FrontEndSender::claim(std::vector<Fid>(links), {.name = "test", .bus = bus_.path()});
  }
  template <typename Call>
  static std::string code_of(Call&& call) {
    try {
      call();
    } catch (const FrontEndError& error) {
      return error.code();
    }
    return "";
  }
  template <typename Condition>
  static bool eventually(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  std::uint64_t count(std::string_view name) const { return counter_value(server_->status().counters, name); }

  static constexpr Fid kFirst = Fid::of(0, 0, 0, 0);
  static constexpr Fid kSecond = Fid::of(0, 0, 0, 1);
  static constexpr Fid kNobodys = Fid::of(0, 0, 0, 9);
  test::TemporaryDirectory bus_;
  Echo* echo_ = nullptr;
  std::unique_ptr<FrontEndServer> server_;
};

TEST_F(FrontEnds, TheEndHurriesTheCard) {
  server_->stop();
  EXPECT_TRUE(echo_->hurried);
}

TEST_F(FrontEnds, AnswerWhatIsSent) {
  FrontEndSender sender = claim({kFirst, kSecond});
  for (const std::size_t bytes : {0U, 1U, 30U, 65'535U}) {
    const Bytes message(bytes, std::byte{5});
    EXPECT_EQ(sender.send(kFirst, message), message);
    EXPECT_EQ(sender.send(formats::to_front_end(kSecond), message), Bytes{});
  }
  EXPECT_EQ(code_of([&] { (void)sender.send(kFirst, Bytes(65'536)); }), "router.front_end_message");
  EXPECT_EQ(code_of([&] { (void)sender.send(Fid::of(0, 0, 0, 2), Bytes(1)); }), "transport.unknown_link");
  EXPECT_EQ(code_of([&] { (void)sender.send(kFirst, Bytes(13)); }), "card.slow_control") << "and the conversation continues";
  EXPECT_EQ(sender.send(kFirst, Bytes(1)), Bytes(1));
  EXPECT_EQ(count("messages_sent"), 9U);
  EXPECT_EQ(count("messages_failed"), 1U);
}

TEST_F(FrontEnds, ManyMessagesAreUnderWayAndAnsweredInOrder) {
  FrontEndSender sender = claim({kFirst});
  std::uint64_t expected = 1;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto bytes = std::as_bytes(std::span(&i, 1));
    EXPECT_EQ(sender.post(kFirst, bytes), i + 1);
    while (i % 100 == 99) {
      const auto answer = sender.next_answer();
      if (!answer) break;
      EXPECT_EQ(answer->number, expected++);
      EXPECT_EQ(answer->code, "");
    }
  }
  EXPECT_EQ(expected, 1001U);
  const std::scoped_lock lock(echo_->mutex);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto bytes = std::as_bytes(std::span(&i, 1));
    ASSERT_EQ(echo_->sent[0][i], Bytes(bytes.begin(), bytes.end()));
  }
}

TEST_F(FrontEnds, ALinkThatHasNoRoomHoldsUpItsSenderAndNobodyElse) {
  echo_->full = true;
  FrontEndSender blocked = claim({kSecond});
  for (int i = 0; i < 10; ++i) blocked.post(kSecond, Bytes(100));
  FrontEndSender other = claim({kFirst});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(other.send(kFirst, Bytes(2)), Bytes(2));
  EXPECT_EQ(count("messages_sent"), 10U);
  echo_->full = false;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    const auto answer = blocked.next_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->number, i);
    EXPECT_EQ(answer->code, "");
  }
  EXPECT_FALSE(blocked.next_answer());
}

TEST_F(FrontEnds, ASenderThatGoesFreesItsLinks) {
  {
    const FrontEndSender sender = claim({kFirst});
    EXPECT_EQ(code_of([&] { (void)claim({kFirst}); }), "transport.link_owned");
    EXPECT_EQ(server_->status().links, 2U);
  }
  EXPECT_TRUE(eventually([&] { return code_of([&] { (void)claim({kFirst}); }).empty(); }));
  EXPECT_EQ(code_of([&] { (void)claim({Fid::of(0, 0, 9, 9)}); }), "transport.no_front_end");
}

TEST_F(FrontEnds, WhatIsHeldForASenderThatGoesIsCounted) {
  echo_->full = true;
  {
    FrontEndSender sender = claim({kSecond});
    sender.post(kSecond, Bytes(1));
    ASSERT_TRUE(eventually([&] { return !server_->status().owners.empty(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(eventually([&] { return count("messages_failed") == 1; }));
}

TEST_F(FrontEnds, WhoSendsAndGoesAtOnceFreesItsLinks) {
  for (int turn = 0; turn < 20; ++turn) {
    std::optional<FrontEndSender> sender;
    ASSERT_TRUE(eventually([&] { return code_of([&] { sender.emplace(claim({kFirst})); }).empty(); })) << turn;
    for (int i = 0; i < 10; ++i) sender->post(kFirst, Bytes(1000));
  }
  EXPECT_TRUE(eventually([&] { return count("messages_sent") + count("messages_failed") == 200; }))
      << count("messages_sent") << " and " << count("messages_failed");
}

TEST_F(FrontEnds, WhatWaitsBehindAMessageOfOneThatGoesIsCountedToo) {
  echo_->full = true;
  {
    FrontEndSender sender = claim({kSecond});
    for (int i = 0; i < 10; ++i) sender.post(kSecond, Bytes(1));
  }
  EXPECT_TRUE(eventually([&] { return count("messages_failed") == 10; })) << count("messages_failed");
}

TEST_F(FrontEnds, WhoSaysWhatHasNoPlaceIsTurnedAwayAndCounted) {
  const Fid first = formats::to_front_end(kFirst);
  auto unclaimed = stranger(bus_.path(), {first});
  unclaimed.say(formats::ControlSend{.number = 1, .link = 1});
  EXPECT_TRUE(eventually([&] { return count("refused_senders") == 1; }));
  auto another = stranger(bus_.path(), {first});
  another.say(formats::ControlCredit{.pages = 7});
  EXPECT_TRUE(eventually([&] { return count("refused_senders") == 2; }));
  auto garbage = stranger(bus_.path(), {first});
  garbage.say(Bytes(100, std::byte{0xff}));
  EXPECT_TRUE(eventually([&] { return count("refused_senders") == 3; }));
  EXPECT_EQ(claim({kFirst}).send(kFirst, Bytes(3)), Bytes(3)) << "and the link is free";
}

TEST_F(FrontEnds, WhoTakesNoAnswersHoldsUpNobody) {
  auto deaf = stranger(bus_.path(), {formats::to_front_end(kFirst)});
  for (std::uint64_t i = 1; i <= 300; ++i) deaf.say(formats::ControlSend{.number = i, .message = Bytes(60'000)});
  FrontEndSender sender = claim({kSecond});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sender.send(kSecond, Bytes(3)), Bytes{});
  deaf.close();
  EXPECT_TRUE(eventually([&] { return code_of([&] { (void)claim({kFirst}); }).empty(); }));
}

TEST_F(FrontEnds, ALinkThatIsNamedTwiceCountsOnce) {
  FrontEndSender sender = claim({kFirst, formats::to_front_end(kFirst)});
  EXPECT_EQ(sender.send(kFirst, Bytes(2)), Bytes(2));
}

TEST_F(FrontEnds, WhatADeadRouterLeftOnTheBusIsPassedOver) {
  const auto living = transport::read_bus(bus_.path())->entries.at(0);
  transport::BusEntry dead = living;
  dead.name = "a_dead_one";
  dead.instance = 1;
  dead.port = 1;
  std::ofstream(bus_.file("a_dead_one.json")) << transport::bus_entry_text(dead);
  EXPECT_EQ(claim({kFirst}).send(kFirst, Bytes(2)), Bytes(2));
}

TEST_F(FrontEnds, WhoHasThePortOfADeadRouterByNowIsNotTakenForIt) {
  transport::BusEntry dead = transport::read_bus(bus_.path())->entries.at(0);
  dead.name = "a_dead_one";
  dead.instance += 1;
  dead.links.push_back(formats::to_front_end(kNobodys));
  std::ofstream(bus_.file("a_dead_one.json")) << transport::bus_entry_text(dead);
  EXPECT_EQ(claim({kFirst}).send(kFirst, Bytes(2)), Bytes(2)) << "the answer of the live device";
  EXPECT_EQ(code_of([&] { (void)claim({kNobodys}); }), "transport.no_front_end");
}

TEST_F(FrontEnds, AServerThatEndsEndsItsConversations) {
  FrontEndSender sender = claim({kFirst});
  server_->stop();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(code_of([&] { (void)sender.send(kFirst, Bytes(1)); }), "transport.closed");
}

}  // namespace
}  // namespace rodeo::router
