// A scripted supervisor and scripted readouts for a filter node, on the real network of this host.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "formats/assignment.h"
#include "formats/encode_event.h"
#include "formats/event_record.h"
#include "formats/fragment_request.h"
#include "formats/rob_frame.h"
#include "formats/rod_data.h"
#include "transport/replier.h"

namespace rodeo::test {

constexpr std::uint32_t kRun = 7;

inline std::vector<std::byte> rob_of(SourceId source_id, L1Id id, std::uint32_t run = kRun, std::size_t bytes = 100) {
  std::vector<std::byte> data;
  formats::append_chunk_record(data, ChunkHeader{.link_id = source_id.value},
                               std::vector<std::byte>(bytes, static_cast<std::byte>(id.value)));
  const formats::RodHeader rod{.source_id = source_id, .run_number = run, .l1id = id, .bcid = 5, .trigger_type = 9};
  return formats::encode_rob({.source_id = source_id}, formats::encode_rod(rod, std::vector<std::uint32_t>{0}, data));
}

inline void append_absent(std::vector<std::byte>& to, SourceId source_id, L1Id id, std::uint32_t status) {
  formats::append_absent_rob(to, {.run_number = kRun}, source_id, id, status);
}

/// An answer in preparation.
struct SentAnswer final : transport::ReplyOwner {
  explicit SentAnswer(std::vector<std::byte> of) : bytes(std::move(of)) {}
  void sent(std::uint64_t) noexcept override { delete this; }
  std::vector<std::byte> bytes;
};

/// One thread, as a Replier.
class ScriptedReadout {
 public:
  /// The answer for one ROB of one event; `times`: number of earlier requests for it.
  using Says = std::function<void(std::vector<std::byte>& answer, SourceId rob, L1Id id, std::uint32_t times)>;

  ScriptedReadout(const std::string& bus, std::string name, std::vector<SourceId> robs)
      : robs_(std::move(robs)),
        replier_(std::make_unique<transport::Replier>(
            transport::ReplierSettings{.name = std::move(name), .service = "fragments", .bus = bus})) {}

  /// Closes all connections: nodes cannot reach it any more.
  void cut() { replier_.reset(); }

  Says says = [](std::vector<std::byte>& answer, SourceId rob, L1Id id, std::uint32_t) {
    formats::append_bytes(answer, rob_of(rob, id));
  };
  bool silent = false;
  bool slow = false;  ///< fetches wait for their answers until this is false
  std::uint64_t fetches = 0;
  std::vector<formats::FetchRequest> asked;

  void poll() {
    std::vector<transport::Replier::Request> requests;
    std::vector<transport::Replier::Dropped> dropped;
    if (replier_ == nullptr) return;
    replier_->poll(base::steady_now_ns(), requests, dropped);
    for (auto& request : requests) {
      std::vector<std::byte> scratch;
      if (request.kind == static_cast<std::uint16_t>(formats::FragmentRequest::describe)) {
        std::vector<std::byte> answer;
        formats::append_describe_reply(answer, {.run_number = kRun, .robs = robs_});
        reply(request, std::move(answer));
        continue;
      }
      formats::FetchRequest fetch;
      if (!formats::read_fetch_request(request.message.in_one_piece(scratch), fetch)) throw std::runtime_error("no fetch");
      ++fetches;
      asked.push_back(fetch);
      if (!silent) waiting_.push_back({std::move(request), std::move(fetch)});
    }
    if (slow) return;
    for (auto& [request, fetch] : waiting_) {
      std::vector<std::byte> answer;
      for (const SourceId rob : fetch.robs.empty() ? robs_ : fetch.robs)
        says(answer, rob, L1Id{static_cast<std::uint32_t>(fetch.id)}, times_[{rob.value, fetch.id}]++);
      reply(request, std::move(answer));
    }
    waiting_.clear();
  }

 private:
  void reply(const transport::Replier::Request& request, std::vector<std::byte> answer) {
    auto* const sent = new SentAnswer{std::move(answer)};
    const std::span<const std::byte> part(sent->bytes);
    replier_->reply(request.client, request.number, 0, {&part, 1}, sent);
  }

  std::vector<SourceId> robs_;
  std::unique_ptr<transport::Replier> replier_;
  std::vector<std::pair<transport::Replier::Request, formats::FetchRequest>> waiting_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> times_;
};

/// One thread, as a Replier. Answers RECORDs by its script, in order; an empty entry means no answer. Then it records all
/// events.
class ScriptedRecorder {
 public:
  ScriptedRecorder(const std::string& bus, std::string name)
      : replier_({.name = std::move(name), .service = "events", .bus = bus}) {}

  std::deque<std::optional<formats::RecordStatus>> script;
  formats::RecordStatus after_script = formats::RecordStatus::recorded;
  std::vector<std::uint64_t> asked;  ///< ids of RECORD, in order of arrival

  void poll() {
    std::vector<transport::Replier::Request> requests;
    std::vector<transport::Replier::Dropped> dropped;
    replier_.poll(base::steady_now_ns(), requests, dropped);
    for (auto& request : requests) {
      std::vector<std::byte> scratch;
      if (request.kind != formats::event_request::kRecord) throw std::runtime_error("no RECORD");
      asked.push_back(formats::decode_record_head(request.message.in_one_piece(scratch))->head.global_id);
      std::optional<formats::RecordStatus> says = after_script;
      if (!script.empty()) {
        says = script.front();
        script.pop_front();
      }
      if (!says) continue;
      const auto status = static_cast<std::uint16_t>(*says);
      if (status >= formats::kFirstRefusal) {
        replier_.refuse(request.client, request.number, status);
      } else {
        replier_.reply(request.client, request.number, status, {});
      }
    }
  }

 private:
  transport::Replier replier_;
};

/// One thread, as a Replier. Assigns the events of `events` when the node has room, and keeps its decisions.
class ScriptedSupervisor {
 public:
  ScriptedSupervisor(const std::string& bus, std::vector<std::string> readouts, std::vector<std::string> first_recorders)
      : recorders(std::move(first_recorders)),
        readouts_(std::move(readouts)),
        replier_(std::make_unique<transport::Replier>(settings(bus))),
        bus_(bus) {}

  std::vector<std::string> recorders;          ///< sent in each welcome
  std::vector<formats::AssignedEvent> events;  ///< events to assign, in this order
  std::map<std::uint64_t, std::vector<formats::EventDecision>> decisions;
  std::vector<formats::NodeHello> hellos;
  std::set<std::uint64_t> let_go;  ///< sent in the next welcome
  bool makes_safe = true;
  bool over_when_done = false;
  std::uint32_t give_back = 0;  ///< sent with the next orders
  std::uint64_t newer_than = 0;
  std::chrono::nanoseconds event_timeout = std::chrono::seconds{10};

  void assign(std::uint64_t first, std::uint64_t count, std::uint8_t flags = 0) {
    for (std::uint64_t id = first; id < first + count; ++id)
      events.push_back({.id = id, .lumi_block = 1, .scan_step = 3, .flags = flags});
  }

  /// The supervisor dies and starts again, and knows nothing of the node.
  void start_anew() {
    replier_.reset();
    waiting_.clear();
    session_ = 0;
    replier_ = std::make_unique<transport::Replier>(settings(bus_));
  }

  void poll() {
    std::vector<transport::Replier::Request> requests;
    std::vector<transport::Replier::Dropped> dropped;
    replier_->poll(base::steady_now_ns(), requests, dropped);
    for (auto& request : requests) {
      std::vector<std::byte> scratch;
      const auto bytes = request.message.in_one_piece(scratch);
      if (request.kind == static_cast<std::uint16_t>(formats::AssignmentKind::hello)) {
        formats::NodeHello hello;
        if (!formats::decode(bytes, hello)) throw std::runtime_error("no HELLO");
        hellos.push_back(hello);
        for (const auto& decision : hello.decisions) decisions[decision.id].push_back(decision);
        session_ = 100 + hellos.size();
        said_ = safe_ = hello.decisions.size();
        if (!makes_safe) safe_ = 0;
        assigned_ = 0;
        granted_ = hello.slots;
        waiting_.clear();
        formats::NodeWelcome welcome{.run_number = kRun,
                                     .session = session_,
                                     .event_timeout_ns = static_cast<std::uint64_t>(event_timeout.count()),
                                     .patience_ns = 200'000'000,
                                     .system = "test",
                                     .readouts = readouts_,
                                     .recorders = recorders,
                                     .let_go = {let_go.begin(), let_go.end()}};
        let_go.clear();
        answer(request, [&](auto& out) { formats::encode(welcome, out); });
        continue;
      }
      formats::NodeWork work;
      if (!formats::decode(bytes, work)) throw std::runtime_error("no WORK");
      if (work.session != session_ || work.first != said_ + 1) {
        replier_->refuse(request.client, request.number, static_cast<std::uint16_t>(formats::AssignmentRefusal::say_hello));
        continue;
      }
      for (const auto& decision : work.decisions) decisions[decision.id].push_back(decision);
      said_ += work.decisions.size();
      granted_ = work.granted;
      for (auto& waiting : waiting_) orders(waiting);
      waiting_.clear();
      waiting_.push_back({request.client, request.number, base::steady_now_ns()});
    }
    std::erase_if(waiting_, [&](const Waiting& one) {
      const bool news = give_back > 0 || (!events.empty() && assigned_ < granted_) || (makes_safe && safe_ < said_);
      const bool old = base::steady_now_ns() - one.since_ns > 200'000'000;
      if (!news && !old) return false;
      orders(one);
      return true;
    });
  }

 private:
  struct Waiting {
    transport::Replier::Client client = 0;
    std::uint64_t number = 0;
    std::uint64_t since_ns = 0;
  };

  static transport::ReplierSettings settings(const std::string& bus) {
    return {.name = "supervisor", .service = "assignments", .bus = bus};
  }

  template <typename To, typename Encode>
  void answer(const To& to, Encode encode) {
    std::vector<std::byte> bytes;
    encode(bytes);
    const std::span<const std::byte> part(bytes);
    replier_->reply(to.client, to.number, 0, {&part, 1});
  }

  void orders(const Waiting& waiting) {
    if (makes_safe) safe_ = said_;
    formats::NodeOrders orders{.safe = safe_, .first = assigned_ + 1};
    orders.give_back = std::exchange(give_back, 0);
    orders.newer_than = newer_than;
    while (!events.empty() && assigned_ < granted_) {
      orders.events.push_back(events.front());
      events.erase(events.begin());
      ++assigned_;
    }
    if (over_when_done && events.empty() && safe_ == said_ && said_ >= assigned_) orders.flags |= formats::NodeOrders::kOver;
    answer(waiting, [&](auto& out) { formats::encode(orders, out); });
  }

  std::vector<std::string> readouts_;
  std::unique_ptr<transport::Replier> replier_;
  std::string bus_;
  std::vector<Waiting> waiting_;
  std::uint64_t session_ = 0;
  std::uint64_t said_ = 0;
  std::uint64_t safe_ = 0;
  std::uint64_t assigned_ = 0;
  std::uint64_t granted_ = 0;
};

}  // namespace rodeo::test
