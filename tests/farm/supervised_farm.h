// Nodes and readouts for a supervisor's tests: real requests over tcp, with answers that the test sets. All in the test's
// thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "farm/supervisor/supervisor.h"
#include "formats/assignment.h"
#include "formats/fragment_request.h"
#include "formats/temporary_directory.h"
#include "transport/replier.h"
#include "transport/requester.h"
#include "trigger/authority.h"
#include "trigger/server.h"

namespace rodeo::test {

using namespace std::chrono_literals;

/// A readout that keeps ids until they are cleared.
class KeepingReadout {
 public:
  KeepingReadout(const std::filesystem::path& bus, std::string name) {
    replier_.emplace(transport::ReplierSettings{
        .name = std::move(name), .service = "fragments", .bus = bus, .providers = {"tcp"}, .page_bytes = 4096, .pages = 8});
  }
  void poll() {
    if (!replier_ || stands_still) return;
    std::vector<transport::Replier::Request> requests;
    std::vector<transport::Replier::Dropped> dropped;
    replier_->poll(base::steady_now_ns(), requests, dropped);
    for (const auto& request : requests) answer(request);
  }
  void hold(std::uint64_t id) {
    if (held.size() >= most || !outside.empty()) {
      outside.push_back(id);
      return;
    }
    newest = std::max(newest.value_or(0), id);
    first = std::min(first.value_or(id), id);
    // A clear may come before the data.
    if (!cleared.contains(id)) held.insert(id);
  }

  std::size_t most = SIZE_MAX;  ///< limit of ids that it holds; further ids wait
  std::deque<std::uint64_t> outside;
  std::set<std::uint64_t> held;
  std::map<std::uint64_t, int> cleared;  ///< number of clears by id
  std::optional<std::uint64_t> newest = {};
  std::optional<std::uint64_t> first = {};
  formats::Numbering numbering = {};
  bool ended = false;
  bool stands_still = false;
  bool refuses = false;
  bool keeps_holdings = false;  ///< the readout makes the answer and does not send it
  void send_holdings() {
    for (const Kept& one : std::exchange(kept_, {})) send(one.client, one.number, one.reply);
    keeps_holdings = false;
  }
  std::size_t kept() const { return kept_.size(); }

 private:
  struct Kept {
    transport::Replier::Client client;
    std::uint64_t number;
    std::vector<std::byte> reply;
  };
  void send(transport::Replier::Client client, std::uint64_t number, const std::vector<std::byte>& reply) {
    const std::span<const std::byte> parts[] = {reply};
    replier_->reply(client, number, 0, parts);
  }
  void answer(const transport::Replier::Request& request) {
    std::vector<std::byte> whole, reply;
    const auto bytes = request.message.in_one_piece(whole);
    switch (static_cast<formats::FragmentRequest>(request.kind)) {
      case formats::FragmentRequest::clear: {
        if (refuses) return replier_->refuse(request.client, request.number, 4);
        formats::ClearRequest clear;
        EXPECT_TRUE(formats::read_clear_request(bytes, clear));
        clear.for_each_id([&](std::uint64_t id) {
          ++cleared[id];
          held.erase(id);
        });
        for (const std::uint64_t id : std::exchange(outside, {})) hold(id);
        break;
      }
      case formats::FragmentRequest::holdings: {
        const auto asked = formats::read_holdings_request(bytes);
        ASSERT_TRUE(asked);
        formats::HoldingsReply holdings;
        for (auto id = held.lower_bound(asked->from); id != held.end(); ++id) {
          if (holdings.ranges.size() >= 5) {
            holdings.more = true;
            break;
          }
          if (!holdings.ranges.empty() && holdings.ranges.back().first + holdings.ranges.back().count == *id) {
            ++holdings.ranges.back().count;
          } else {
            holdings.ranges.push_back({*id, 1});
          }
        }
        holdings.newest = newest;
        formats::append_holdings_reply(reply, holdings);
        if (keeps_holdings) return kept_.push_back({request.client, request.number, reply});
        break;
      }
      case formats::FragmentRequest::describe:
        formats::append_describe_reply(reply, {.run_number = 1, .ended = ended, .numbering = numbering, .first = first});
        break;
      default: FAIL();
    }
    send(request.client, request.number, reply);
  }

  std::vector<Kept> kept_;
  std::optional<transport::Replier> replier_;
};

/// A node that sends HELLO, asks for work, and decides as the test sets.
class ToldNode {
 public:
  ToldNode(const std::filesystem::path& bus, std::string name, std::uint32_t slots = 8, std::uint64_t instance = 1)
      : bus_(bus), name_(std::move(name)), slots_(slots), instance_(instance) {
    reconnect();
  }

  /// Connects again; the node keeps its events.
  void reconnect() {
    requester_.emplace(transport::RequesterSettings{.name = name_, .bus = bus_, .pages = 8});
    service_ = requester_->add("supervisor");
    connections_ = 0;
    welcome.reset();
    hello_ = false;
  }

  /// Decides all events that it has; `verdict` gives the verdict by id.
  bool decides = true;
  /// The node decides only the events that satisfy this condition.
  std::function<bool(std::uint64_t)> can_decide = [](std::uint64_t) { return true; };
  bool stands_still = false;
  std::optional<formats::Verdict> always = {};

  void poll() {
    if (stands_still) return;
    std::vector<transport::Requester::Reply> replies;
    requester_->poll(base::steady_now_ns(), replies);
    for (const auto& reply : replies) take(reply);
    if (requester_->connections(service_) != connections_) {
      connections_ = requester_->connections(service_);
      welcome.reset();
      hello_ = false;
    }
    if (!requester_->connected(service_)) return;
    if (!welcome && !hello_) say_hello();
    if (!welcome) return;
    if (decides) {
      std::erase_if(events, [&](const auto& event) {
        if (!can_decide(event.id)) return false;
        decide(event, always.value_or(event.id % 3 == 0 ? formats::Verdict::accepted : formats::Verdict::rejected));
        return true;
      });
    }
    if (works_ == 0 || (!unsaid().empty() && works_ < 2)) work();
  }

  void decide(const formats::AssignedEvent& event, formats::Verdict verdict) {
    decisions_.push_back({.id = event.id,
                          .bytes = 10,
                          .verdict = event.build_only() ? formats::Verdict::debug : verdict,
                          .flags = event.build_only() ? formats::EventDecision::kBuildOnly : std::uint8_t{0}});
    decided[event.id] = decisions_.back().verdict;
  }
  std::size_t kept() const { return decisions_.size(); }
  std::uint64_t given_back = 0;

  std::vector<formats::AssignedEvent> events;  ///< assigned events that the node has not decided
  std::vector<formats::AssignedEvent> all;     ///< all events that the node has ever had
  std::map<std::uint64_t, formats::Verdict> decided;
  std::vector<std::uint64_t> let_go;
  std::optional<formats::NodeWelcome> welcome;
  std::uint16_t refusal = 0;
  bool over = false;
  unsigned hellos = 0;

 private:
  using Kind = formats::AssignmentKind;

  std::span<const formats::EventDecision> unsaid() const { return std::span(decisions_).subspan(said_ - safe_); }
  std::optional<transport::Requester::Request> ask(Kind kind, const auto& message) {
    std::vector<std::byte> bytes;
    encode(message, bytes);
    return requester_->ask(service_, static_cast<std::uint16_t>(kind), std::span<const std::byte>(bytes), 20s);
  }
  void say_hello() {
    formats::NodeHello hello{.instance = instance_,
                             .slots = slots_ - static_cast<std::uint32_t>(events.size()),
                             .session = session_,
                             .first = safe_ + 1,
                             .name = name_,
                             .decisions = decisions_,
                             .events = events};
    hello_ = ask(Kind::hello, hello).has_value();
    if (hello_) {
      ++hellos;
      works_ = 0;
      hello_decisions_ = decisions_.size();
    }
  }
  void work() {
    const auto some = unsaid();
    const formats::NodeWork work{.session = session_,
                                 .granted = assigned_ + slots_ - std::min<std::uint64_t>(slots_, events.size()),
                                 .first = said_ + 1,
                                 .decisions = {some.begin(), some.end()}};
    if (!ask(Kind::work, work)) return;
    said_ += some.size();
    ++works_;
  }
  void take(const transport::Requester::Reply& reply) {
    std::vector<std::byte> whole;
    if (!welcome) {
      if (!hello_) return;
      hello_ = false;
      if (reply.outcome == transport::Requester::Outcome::refused) refusal = reply.status;
      if (reply.outcome != transport::Requester::Outcome::answered) return;
      formats::NodeWelcome got;
      ASSERT_TRUE(decode(reply.message.in_one_piece(whole), got));
      welcome = got;
      session_ = got.session;
      let_go.insert(let_go.end(), got.let_go.begin(), got.let_go.end());
      std::erase_if(events, [&](const auto& event) { return std::ranges::find(got.let_go, event.id) != got.let_go.end(); });
      said_ = hello_decisions_;
      safe_ = assigned_ = 0;
      return;
    }
    if (works_ > 0) --works_;
    if (reply.outcome != transport::Requester::Outcome::answered) {
      if (reply.outcome == transport::Requester::Outcome::refused) {
        refusal = reply.status;
        welcome.reset();
      }
      return;
    }
    formats::NodeOrders orders;
    ASSERT_TRUE(decode(reply.message.in_one_piece(whole), orders));
    for (; safe_ < orders.safe; ++safe_) decisions_.erase(decisions_.begin());
    EXPECT_TRUE(orders.events.empty() || orders.first == assigned_ + 1);
    for (; orders.give_back > 0; --orders.give_back) {
      const auto newest = std::ranges::max_element(events, {}, &formats::AssignedEvent::id);
      if (newest == events.end() || newest->id <= orders.newer_than) break;
      const auto flags = newest->build_only() ? formats::EventDecision::kBuildOnly : std::uint8_t{0};
      decisions_.push_back({.id = newest->id, .verdict = formats::Verdict::given_back, .flags = flags});
      events.erase(newest);
      ++given_back;
    }
    assigned_ += orders.events.size();
    for (const auto& event : orders.events) {
      std::erase_if(events, [&](const auto& had) { return had.id == event.id; });
      events.push_back(event);
      all.push_back(event);
    }
    EXPECT_LE(events.size(), slots_);
    over = over || orders.over();
  }

  const std::filesystem::path bus_;
  const std::string name_;
  const std::uint32_t slots_;
  const std::uint64_t instance_;
  std::optional<transport::Requester> requester_;
  transport::Requester::Service service_ = 0;
  std::uint64_t connections_ = 0;
  bool hello_ = false;
  std::size_t hello_decisions_ = 0;
  unsigned works_ = 0;
  std::uint64_t session_ = 0;
  std::uint64_t assigned_ = 0;
  std::vector<formats::EventDecision> decisions_;  // decisions that are not safe
  std::uint64_t said_ = 0;                         // number of decisions that this session has sent
  std::uint64_t safe_ = 0;                         // number of decisions that this session has acknowledged
};

/// One supervisor with a bus, a trigger, readouts and nodes.
class SupervisedFarm : public testing::Test {
 protected:
  SupervisedFarm() : bus_(directory_.file("bus")) { ::setenv("RODEO_RUNTIME_DIR", directory_.file("run").c_str(), 1); }
  ~SupervisedFarm() override {
    supervisor_.reset();
    detector_.reset();
    server_.reset();
    authority_.reset();
    ::unsetenv("RODEO_RUNTIME_DIR");
  }

  farm::SupervisorSettings settings() const {
    farm::SupervisorSettings settings{.trigger = address_,
                                      .events_in_flight = 64,
                                      .event_timeout = 20s,
                                      .clear_count = 10,
                                      .clear_after = 2ms,
                                      .readout_grace = 20s,
                                      .readout_silence = 20s,
                                      .node_grace = 20s,
                                      .rebuild_time = 20s,
                                      .poll_holdings = 5ms,
                                      .work_patience = 20ms};
    settings.network = {.bus = bus_, .providers = {"tcp"}, .page_bytes = 4096, .pages = 8};
    for (const auto& [name, readout] : readouts_) settings.readouts.push_back(name);
    return settings;
  }
  void serve_triggers(std::uint64_t limit) {
    authority_ = std::make_unique<trigger::TriggerAuthority>(trigger::TriggerSettings{.limit = limit, .wait_for = 2});
    server_ = std::make_unique<trigger::TriggerServer>(
        trigger::TriggerServerSettings{.address = "127.0.0.1:0", .name = "trigger"}, *authority_);
    address_ = server_->where();
    detector_ = std::make_unique<trigger::TriggerSource>(*authority_, "detector", 1'000'000);
    detector_->set_ready(true);
  }
  KeepingReadout& readout(const std::string& name) {
    return *(readouts_[name] = std::make_unique<KeepingReadout>(bus_, name));
  }
  ToldNode& node(const std::string& name, std::uint32_t slots = 8, std::uint64_t instance = 1) {
    return *nodes_.emplace_back(std::make_unique<ToldNode>(bus_, name, slots, instance));
  }
  void supervise(const farm::SupervisorSettings& settings, bool begin = true) {
    supervisor_.reset();
    supervisor_ = std::make_unique<farm::Supervisor>(settings);
    if (begin) supervisor_->start(7);
  }

  void poll() {
    if (detector_) {
      ranges_.clear();
      detector_->done(detector_->take(1000, ranges_));
      for (const auto& range : ranges_) {
        for (std::uint32_t i = 0; i < range.count; ++i) happened(range.id_of(i));
      }
    }
    for (auto& [name, readout] : readouts_) {
      if (readout) readout->poll();
    }
    for (auto& node : nodes_) {
      if (node) node->poll();
    }
  }
  /// Adds a new event to all readouts.
  void happened(std::uint64_t id) {
    ids_.insert(id);
    for (auto& [name, readout] : readouts_) {
      if (readout) readout->hold(id);
    }
  }
  template <typename Condition>
  bool until(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      poll();
      std::this_thread::sleep_for(100us);
    }
    return true;
  }
  /// Returns the current status, or a slightly later one.
  farm::SupervisorStatus now() {
    const std::uint64_t asked = base::steady_now_ns();
    farm::SupervisorStatus status;
    EXPECT_TRUE(until([&] {
      status = supervisor_->status();
      return status.at_ns >= asked || supervisor_->over();
    }));
    return status;
  }
  std::uint64_t counter(std::string_view name) { return now()[name]; }
  /// Returns the value of a moment ago.
  std::uint64_t seen(std::string_view name) const { return supervisor_->status()[name]; }
  /// True if all events are decided and cleared by all readouts, and no node keeps a decision.
  bool all_done(std::uint64_t events) {
    if (ids_.size() < events) return false;
    for (auto& [name, readout] : readouts_) {
      if (readout && (!readout->held.empty() || readout->cleared.size() < ids_.size())) return false;
    }
    for (auto& node : nodes_) {
      if (node && (node->kept() > 0 || !node->events.empty())) return false;
    }
    return true;
  }
  bool over() {
    return until([&] { return supervisor_->over(); });
  }

  TemporaryDirectory directory_;
  const std::filesystem::path bus_;
  std::string address_;
  std::unique_ptr<trigger::TriggerAuthority> authority_;
  std::unique_ptr<trigger::TriggerServer> server_;
  std::unique_ptr<trigger::TriggerSource> detector_;
  std::map<std::string, std::unique_ptr<KeepingReadout>> readouts_;
  std::vector<std::unique_ptr<ToldNode>> nodes_;
  std::unique_ptr<farm::Supervisor> supervisor_;
  std::set<std::uint64_t> ids_;
  std::vector<trigger::TriggerRange> ranges_;
};

}  // namespace rodeo::test
