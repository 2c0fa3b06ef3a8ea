// Authority and followers of different processes, here as two ends of real sockets.
#include "trigger/follower.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdlib>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "base/named_counters.h"
#include "base/runtime_dir.h"
#include "trigger/server.h"

namespace {

using namespace rodeo;
using namespace rodeo::trigger;
using namespace std::chrono_literals;
namespace protocol = rodeo::trigger::protocol;
using Spacing = TriggerSettings::Spacing;

template <typename Condition>
bool wait_until(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(200us);
  }
  return true;
}

/// A function of a card: accepts all triggers and keeps the ids.
struct Function {
  Function(TriggerHub& hub, const std::string& name, std::uint64_t capacity = 10'000) : source(hub, name, capacity) {
    source.set_ready(true);
  }
  std::uint64_t work(std::uint64_t most = 5000) {
    ranges.clear();
    const std::uint64_t count = source.take(most, ranges);
    for (const TriggerRange& range : ranges) {
      for (std::uint32_t i = 0; i < range.count; ++i) ids.push_back(range.l1id_of(i));
      sequences.push_back(range.sequence);
    }
    source.done(count);
    return count;
  }
  TriggerSource source;
  std::vector<TriggerRange> ranges;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint64_t> sequences;
};

std::optional<protocol::Message> answer(TriggerConnection& connection) {
  std::optional<protocol::Message> message;
  EXPECT_TRUE(wait_until([&] {
    const bool here = connection.receive();
    auto next = connection.next();
    if (next && *next) message = std::move(**next);
    return message.has_value() || !here;
  }));
  return message;
}

/// Passes the handshake without a secret, up to the first message behind it.
void greet(TriggerConnection& connection, transport::Handshake::Side side) {
  if (side == transport::Handshake::Side::publisher) connection.greet(side, "");
  while (!connection.greeted()) {
    const auto message = answer(connection);
    ASSERT_TRUE(message && std::holds_alternative<protocol::Greeting>(*message));
    if (!connection.greets()) connection.greet(side, "");
    ASSERT_TRUE(connection.on_greeting(std::get<protocol::Greeting>(*message)));
  }
}

void write_secret(const std::filesystem::path& file, const std::string& secret) {
  std::ofstream(file) << secret;
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

class TriggerFollowing : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "rodeo-trigger-XXXXXX").native();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    ::setenv("RODEO_RUNTIME_DIR", directory_.c_str(), 1);
  }
  void TearDown() override {
    links_.clear();
    server_.reset();
    authority_.reset();
    ::unsetenv("RODEO_RUNTIME_DIR");
    std::filesystem::remove_all(directory_);
  }

  void serve(TriggerSettings settings, std::chrono::milliseconds timeout = 5s) {
    authority_ = std::make_unique<TriggerAuthority>(settings);
    const char* const address = GetParam();
    server_ = std::make_unique<TriggerServer>(
        TriggerServerSettings{
            .address = address_.empty() ? address : address_, .name = "authority", .system = "test", .timeout = timeout},
        *authority_);
    address_ = std::string(address).find(':') == std::string::npos ? address : server_->where();
  }
  TriggerFollower& follow(TriggerFollowerSettings settings) {
    settings.address = address_;
    if (settings.system.empty()) settings.system = "test";
    return *links_.emplace_back(std::make_unique<TriggerFollower>(settings));
  }
  TriggerFollower& follow_as(const std::string& name) { return follow({.name = name}); }

  TriggerFollowerReport follower(const std::string& name) const {
    for (const auto& one : authority_->report().followers) {
      if (one.name == name) return one;
    }
    return {};
  }
  std::uint64_t counter(std::string_view name) const {
    TriggerReport report;
    server_->report(report);
    return base::counter_value(report.counters, name);
  }

  TriggerConnection connect() const {
    auto socket = TriggerAddress::parse(address_)->connect(5s);
    EXPECT_TRUE(socket.has_value());
    return TriggerConnection(std::move(*socket));
  }
  static bool closed(TriggerConnection& connection) {
    return wait_until([&] {
      const bool here = connection.receive();
      while (connection.next().value_or(std::nullopt)) {
      }
      return !here;
    });
  }

  std::filesystem::path directory_;
  std::string address_;
  std::unique_ptr<TriggerAuthority> authority_;
  std::unique_ptr<TriggerServer> server_;
  std::vector<std::unique_ptr<TriggerFollower>> links_;
};

TEST_P(TriggerFollowing, EveryFunctionGetsEveryTriggerOnceInOrder) {
  serve({.ecr_triggers = 7001, .limit = 200'000, .wait_for = 4});
  Function here(*authority_, "here");
  TriggerFollower& b = follow({.name = "b", .functions = 2});
  Function one(b, "one"), two(b, "two", 100);
  Function other(follow_as("c"), "other", 3000);
  const std::array functions{&here, &one, &two, &other};
  ASSERT_TRUE(wait_until([&] {
    bool all = true;
    for (Function* function : functions) {
      function->work();
      all = all && function->ids.size() >= 200'000;
    }
    return all;
  }));
  EXPECT_EQ(here.ids.size(), 200'000U);
  for (Function* function : functions) EXPECT_TRUE(function->ids == here.ids);
  EXPECT_EQ(b.report().accepted, 200'000U);
  EXPECT_EQ(b.report().ecrs, authority_->report().ecrs);
  EXPECT_EQ(follower("b").triggers, 200'000U);
  EXPECT_EQ(follower("b").ready, 2U);
  EXPECT_EQ(follower("b").missed + follower("here").missed, 0U);
}

TEST_P(TriggerFollowing, AFollowerThatTakesNothingIsBusyUnderItsNameAndNothingIsAcceptedBeyondItsRoom) {
  serve({.rate_hz = 1e6, .spacing = Spacing::periodic, .wait_for = 2});
  Function here(*authority_, "here", 1'000'000);
  Function slow(follow_as("slow"), "card", 50);
  ASSERT_TRUE(wait_until([&] {
    here.work();
    return here.ids.size() >= 50 && follower("slow").held_up > 1000;
  }));
  EXPECT_EQ(here.ids.size(), 50U);
  EXPECT_EQ(authority_->report().busy_follower, "slow");
  const std::uint64_t before = follower("slow").held_up;
  const std::uint64_t vetoed = authority_->report().vetoed_busy;
  EXPECT_LE(before, vetoed);
  EXPECT_LE(vetoed, follower("slow").held_up);
  EXPECT_GT(follower("slow").dead_time, 0.5);
  ASSERT_TRUE(wait_until([&] { return slow.ids.size() >= 50 || (slow.work(), false); }));
  ASSERT_TRUE(wait_until([&] {
    here.work();
    slow.work(20);
    return slow.ids.size() >= 2000;
  }));
  ASSERT_LE(slow.ids.size(), here.ids.size());
  EXPECT_TRUE(std::equal(slow.ids.begin(), slow.ids.end(), here.ids.begin()));
}

TEST_P(TriggerFollowing, ALateOneStartsAtThePresentTrigger) {
  serve({.rate_hz = 1e5, .spacing = Spacing::periodic});
  Function here(*authority_, "here");
  ASSERT_TRUE(wait_until([&] { return here.work() > 0 && here.ids.size() > 1000; }));
  Function late(follow_as("late"), "card");
  ASSERT_TRUE(wait_until([&] {
    here.work();
    late.work();
    return late.ids.size() > 1000 && here.ids.back() >= late.ids.back();
  }));
  EXPECT_GT(late.ids.front(), 1000U);
  EXPECT_TRUE(std::equal(late.ids.begin(), late.ids.end(), here.ids.begin() + late.ids.front()));
}

TEST_P(TriggerFollowing, BlocksAndStepsComeWithTheTriggersAndALateOneIsToldThoseOfBefore) {
  serve({.rate_hz = 1e5, .spacing = Spacing::periodic, .wait_for = 2, .lumi_block_period = 2ms});
  Function here(*authority_, "here");
  TriggerFollower& link = follow_as("b");
  Function there(link, "there");
  std::map<std::uint32_t, std::pair<unsigned, unsigned>> heres, theres;
  const auto work = [](Function& function, auto& marks) {
    function.work();
    for (const TriggerRange& range : function.ranges) {
      for (std::uint32_t i = 0; i < range.count; ++i) marks[range.l1id_of(i)] = {range.lumi_block, range.scan_step};
    }
  };
  bool asked = false;
  ASSERT_TRUE(wait_until([&] {
    work(here, heres);
    work(there, theres);
    if (here.ids.size() > 500 && !asked) {
      asked = true;
      authority_->advance_marks({.next_scan_step = true}, base::steady_now_ns());
    }
    return theres.size() > 2000 && heres.size() > 2000;
  }));
  const std::size_t both = std::min(heres.size(), theres.size());
  EXPECT_TRUE(std::equal(heres.begin(), std::next(heres.begin(), static_cast<std::ptrdiff_t>(both)), theres.begin()));
  EXPECT_GE(heres.rbegin()->second.first, 10U);
  EXPECT_EQ(theres.rbegin()->second.second, 1U);
  TriggerFollower& late = follow_as("late");
  ASSERT_TRUE(wait_until([&] { return !late.report().marks.empty(); }));
  const auto told = late.report().marks;
  ASSERT_GE(told.size(), 10U);
  for (const TriggerMark& mark : told) {
    const auto of = theres.find(static_cast<std::uint32_t>(mark.id));
    if (of == theres.end()) continue;
    EXPECT_EQ(of->second.first, mark.lumi_block);
    EXPECT_EQ(of->second.second, mark.scan_step);
  }
}

TEST_P(TriggerFollowing, AFunctionThatIsSwitchedOffEndsWithTheTriggerThatTheOthersEndWith) {
  serve({.rate_hz = 2e5, .spacing = Spacing::periodic, .wait_for = 2});
  Function here(*authority_, "here");
  Function there(follow_as("b"), "there");
  for (int run = 0; run < 3; ++run) {
    const std::size_t before = there.ids.size();
    here.source.set_ready(true);
    there.source.set_ready(true);
    ASSERT_TRUE(wait_until([&] {
      here.work();
      there.work();
      return there.ids.size() > before + 1000;
    }));
    const auto switch_off = [](Function& function, Function& other) {
      ASSERT_TRUE(wait_until([&] {
        const bool held = function.source.hold();
        const bool none = function.work() == 0;
        other.work();
        return held && none;
      }));
      function.source.set_ready(false);
    };
    switch_off(run % 2 == 0 ? there : here, run % 2 == 0 ? here : there);
    switch_off(run % 2 == 0 ? here : there, run % 2 == 0 ? there : here);
    ASSERT_TRUE(here.ids == there.ids) << here.ids.size() << " and " << there.ids.size();
    ASSERT_TRUE(wait_until([&] { return follower("b").ready == 0; }));
  }
  EXPECT_EQ(follower("b").missed + follower("here").missed, 0U);
}

TEST_P(TriggerFollowing, WhoSaysNothingIsDroppedAfterTheTimeOutAndTheOthersGoOn) {
  serve({.rate_hz = 1e5, .spacing = Spacing::periodic}, 300ms);
  Function here(*authority_, "here");
  TriggerConnection silent = connect();
  silent.send(protocol::Hello{.seed = 1, .system = "test", .name = "silent"});
  greet(silent, transport::Handshake::Side::subscriber);
  ASSERT_TRUE(std::holds_alternative<protocol::Welcome>(answer(silent).value()));
  silent.send(protocol::State{.ready = 1, .granted = 10});
  ASSERT_TRUE(wait_until([&] { return follower("silent").ready == 1; }));
  ASSERT_TRUE(
      wait_until([&] { return here.work(), follower("silent").held_up > 100 && follower("silent").triggers >= 10; }));
  EXPECT_EQ(follower("silent").triggers, 10U);
  const auto before = here.ids.size();
  ASSERT_TRUE(wait_until([&] { return here.work(), here.ids.size() > before + 1000; }));
  EXPECT_FALSE(follower("silent").connected);
  EXPECT_EQ(counter("followers_dropped"), 1U);
  EXPECT_TRUE(closed(silent));
}

TEST_P(TriggerFollowing, AnAuthorityThatEndsStopsTheTriggersAndIsFollowedAgainWhenItIsBack) {
  serve({.limit = 1000});
  TriggerFollower& link = follow_as("b");
  Function there(link, "card");
  ASSERT_TRUE(wait_until([&] { return there.work(), there.ids.size() == 1000; }));
  server_.reset();
  authority_.reset();
  ASSERT_TRUE(wait_until([&] { return !link.report().link->connected; }));
  EXPECT_EQ(link.report().link->lost, 1U);
  EXPECT_FALSE(link.report().link->why.empty());
  EXPECT_TRUE(there.source.hold()) << "no triggers come, so no answer is awaited";
  EXPECT_EQ(there.work(), 0U);
  serve({.limit = 500});
  ASSERT_TRUE(wait_until([&] { return there.work(), there.ids.size() == 1500; }));
  EXPECT_EQ(there.ids.at(1000), 0U) << "a restarted authority";
  EXPECT_EQ(link.report().link->connections, 2U);
}

TEST_P(TriggerFollowing, WhoCannotFollowIsToldWhy) {
  serve({});
  const auto refusal = [&](const TriggerFollowerSettings& settings) {
    TriggerFollower& link = follow(settings);
    EXPECT_TRUE(wait_until([&] { return link.refused().has_value(); }));
    return link.refused().value_or(Error{});
  };
  EXPECT_NE(refusal({.name = "b", .system = "other"}).what.find("`other`"), std::string::npos);
  EXPECT_NE(refusal({.name = "b", .seed = 2}).what.find("seed 2"), std::string::npos);
  EXPECT_EQ(refusal({.name = "authority"}).code, "trigger.refused");
  TriggerFollower& link = follow_as("b");
  ASSERT_TRUE(wait_until([&] { return link.report().link->connected; }));
  EXPECT_NE(refusal({.name = "b"}).what.find("taken"), std::string::npos);
  TriggerConnection newer = connect();
  newer.send(protocol::Hello{.version = 9, .name = "newer"});
  const auto told = answer(newer);
  ASSERT_TRUE(told && std::holds_alternative<protocol::Refused>(*told));
  EXPECT_EQ(std::get<protocol::Refused>(*told).reason, protocol::Reason::version);
}

TEST_P(TriggerFollowing, AFollowerIsAdmittedOnlyAfterTheHandshake) {
  serve({});
  TriggerConnection hasty = connect();
  hasty.send(protocol::Hello{.seed = 1, .system = "test", .name = "hasty"});
  hasty.send(protocol::State{.ready = 1, .granted = 10});
  EXPECT_TRUE(closed(hasty));
  EXPECT_EQ(counter("bad_messages"), 1U);
  EXPECT_EQ(counter("followers_accepted"), 0U);
}

TEST_P(TriggerFollowing, GarbageEndsItsConnectionAndNothingElse) {
  serve({.rate_hz = 1e5});
  Function there(follow_as("b"), "card");
  std::uint64_t seed = 1;
  for (int i = 0; i < 40; ++i) {
    TriggerConnection connection = connect();
    if (i % 4 == 1) connection.send(protocol::Triggers{});
    if (i % 4 == 2) connection.send(protocol::State{});
    if (i % 4 == 3) {
      connection.send(protocol::Hello{.seed = 1, .system = "test", .name = "x"});
      connection.send(protocol::Welcome{});
    }
    std::array<std::uint64_t, 50> bytes;
    for (auto& word : bytes) word = seed = seed * 6364136223846793005U + 1442695040888963407U;
    (void)!::send(connection.fd(), bytes.data(), sizeof bytes, MSG_NOSIGNAL);
    EXPECT_TRUE(closed(connection));
  }
  EXPECT_EQ(counter("bad_messages"), 40U);
  const auto before = there.ids.size();
  EXPECT_TRUE(wait_until([&] { return there.work(), there.ids.size() > before + 1000; }));
}

TEST_P(TriggerFollowing, TwoAuthoritiesCannotServeAtOnePlace) {
  serve({});
  TriggerAuthority other({});
  try {
    const TriggerServer second({.address = address_, .name = "second"}, other);
    FAIL() << "it serves";
  } catch (const SetupError& error) {
    EXPECT_EQ(error.error().code, "trigger.taken");
  }
}

INSTANTIATE_TEST_SUITE_P(Sockets, TriggerFollowing, ::testing::Values("system", "127.0.0.1:0"), [](const auto& one) {
  return std::string(one.param).find(':') == std::string::npos ? "Unix" : "Tcp";
});

class TriggerSecret : public TriggerFollowing {
 protected:
  void SetUp() override {
    TriggerFollowing::SetUp();
    write_secret(directory_ / "ours", "our secret");
    write_secret(directory_ / "other", "another secret");
  }
  void serve_with(const std::filesystem::path& secret_file) {
    authority_ = std::make_unique<TriggerAuthority>(TriggerSettings{});
    server_ = std::make_unique<TriggerServer>(
        TriggerServerSettings{.address = GetParam(), .name = "authority", .system = "test", .secret_file = secret_file},
        *authority_);
    address_ = server_->where();
  }
  std::string refusal_with(const std::filesystem::path& secret_file) {
    TriggerFollower& link = follow({.name = "b", .secret_file = secret_file});
    EXPECT_TRUE(wait_until([&] { return link.refused().has_value(); }));
    return link.refused().value_or(Error{}).what;
  }
};

TEST_P(TriggerSecret, AdmitsOnlyFollowersThatKnowIt) {
  serve_with(directory_ / "ours");
  Function there(follow({.name = "a", .secret_file = directory_ / "ours"}), "card");
  ASSERT_TRUE(wait_until([&] { return there.work(), there.ids.size() > 1000; }));
  EXPECT_NE(refusal_with(directory_ / "other").find("secrets differ"), std::string::npos);
  EXPECT_NE(refusal_with("").find("secrets differ"), std::string::npos);
  // A follower without a secret leaves by itself, so the authority may count it later.
  EXPECT_TRUE(wait_until([&] { return counter("followers_refused") >= 2; }));
  EXPECT_EQ(counter("followers_accepted"), 1U);
}

TEST_P(TriggerSecret, AFollowerRefusesAnAuthorityWithoutIt) {
  serve_with("");
  EXPECT_NE(refusal_with(directory_ / "ours").find("secrets differ"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TriggerSecret, ::testing::Values("127.0.0.1:0"));

TEST(TriggerAddresses, BeyondThisHostNeedASecret) {
  const auto code = [](const char* address) {
    const auto secret = TriggerAddress::parse(address)->secret("");
    return secret ? std::string() : secret.error().code;
  };
  for (const char* here : {"system", "127.0.0.1:5000", "127.3.2.1:5000", "[::1]:5000", "localhost:0"})
    EXPECT_EQ(code(here), "") << here;
  for (const char* beyond : {"0.0.0.0:5000", "10.0.0.1:5000", "[::]:5000", "host:5000", "127.example:5000"})
    EXPECT_EQ(code(beyond), "transport.no_secret") << beyond;
  TriggerAuthority authority({});
  EXPECT_THROW(TriggerServer({.address = "0.0.0.0:0", .name = "authority"}, authority), SetupError);
  EXPECT_THROW(TriggerFollower({.address = "10.0.0.1:5000", .name = "b"}), SetupError);
}

TEST(TriggerFollower, NamesTheVersionOfAnOlderAuthority) {
  TriggerAddress::Listener listener = TriggerAddress::parse("127.0.0.1:0")->listen().value();
  const TriggerFollower link({.address = listener.where, .name = "b"});
  base::UniqueFd socket;
  ASSERT_TRUE(wait_until([&] { return static_cast<bool>(socket = accept_connection(listener)); }));
  TriggerConnection connection(std::move(socket));
  connection.send(protocol::Refused{.version = 2, .why = "another version"});
  ASSERT_TRUE(wait_until([&] { return link.refused().has_value(); }));
  EXPECT_NE(link.refused()->what.find("it has version 2 and this process version 3"), std::string::npos);
}

/// The test plays an authority that breaks the rules.
TEST(TriggerFollower, DoesNotBelieveAnAuthorityThatBreaksTheRules) {
  TriggerAddress::Listener listener = TriggerAddress::parse("127.0.0.1:0")->listen().value();
  TriggerFollower link({.address = listener.where, .name = "b"});
  Function card(link, "card", 100);
  const std::vector<std::pair<protocol::Message, std::string>> bad{
      {protocol::Triggers{.begins = true, .ranges = {{0, 0, 101, 0}}, .firsts = {{}}}, "more triggers than it was granted"},
      {protocol::Triggers{.sequence = 5, .ranges = {{5, 0, 1, 0}}, .firsts = {{}}}, "where 0 comes next"},
      {protocol::Triggers{.begins = true, .ranges = {{0, 0, 1, 0}}, .firsts = {{1, 1}}}, "do not follow from seed 1"},
      {protocol::State{}, "an unexpected message"},
  };
  for (const auto& [message, why] : bad) {
    base::UniqueFd socket;
    ASSERT_TRUE(wait_until([&] { return static_cast<bool>(socket = accept_connection(listener)); }));
    TriggerConnection connection(std::move(socket));
    ASSERT_TRUE(std::holds_alternative<protocol::Hello>(answer(connection).value()));
    greet(connection, transport::Handshake::Side::publisher);
    connection.send(protocol::Welcome{.timeout_ms = 5000, .name = "wrong"});
    ASSERT_TRUE(wait_until([&] { return link.report().link->connected; }));
    // The follower must have sent its grant before the triggers that exceed it.
    bool granted = false;
    ASSERT_TRUE(wait_until([&] {
      connection.receive();
      while (auto next = connection.next().value_or(std::nullopt)) {
        const auto* state = std::get_if<protocol::State>(&*next);
        granted = granted || (state != nullptr && state->granted == 100);
      }
      return granted;
    }));
    connection.send(message);
    EXPECT_TRUE(wait_until([&] { return link.report().link->why.find(why) != std::string::npos; }))
        << link.report().link->why;
    EXPECT_EQ(card.work(), 0U);
  }
}

TEST(TriggerFollower, AddressesAreNamesOrHostsWithPorts) {
  for (const char* good : {"system", "127.0.0.1:5000", "[::1]:5000", "localhost:0"})
    EXPECT_TRUE(TriggerAddress::parse(good)) << good;
  for (const char* bad : {"", "a/b", "host:", "host:x", ":5000", "host:70000", "host:-1"}) {
    const auto address = TriggerAddress::parse(bad);
    ASSERT_FALSE(address) << bad;
    EXPECT_EQ(address.error().code, "trigger.address");
  }
}

}  // namespace
