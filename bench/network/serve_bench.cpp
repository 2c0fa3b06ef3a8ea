#include "bench/network/serve_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "bench/network/bare.h"
#include "bench/network/kept_fragments.h"
#include "bench/network/two_processes.h"
#include "bench/readout/scaling.h"
#include "formats/fragment_request.h"
#include "formats/rob.h"
#include "transport/requester.h"

namespace rodeo::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kClearsAtOnce = 100;

/// The fragments that all nodes may have under way; one node may have an eighth of them.
std::uint32_t sending(const ServeBenchSettings& settings) { return std::max(8U, settings.nodes) * settings.events + 64; }

KeptSettings kept(const ServeBenchSettings& settings) {
  return {.provider = settings.provider,
          .fragment_bytes = settings.fragment_bytes,
          .kept = settings.kept,
          .sending = sending(settings),
          .page_bytes = settings.page_bytes};
}

/// One node: takes its share of the events, checks the replies, and clears.
class Node {
 public:
  using Requester = transport::Requester;

  Node(const ServeBenchSettings& settings, const std::filesystem::path& bus, std::uint32_t number, Meeting& meeting)
      : settings_(settings),
        meeting_(meeting),
        requester_({.name = fmt::format("node{}", number),
                    .bus = bus,
                    .provider = settings.provider,
                    .most_requests = 2 * settings.events + 64}),
        events_(settings.events),
        next_(number),
        pending_(settings.readouts),
        told_(settings.readouts) {
    for (std::uint32_t i = 0; i < settings.readouts; ++i) services_.push_back(requester_.add(kept_service(i)));
  }

  void run() {
    base::set_thread_name("node");
    base::Backoff backoff;
    while (!std::ranges::all_of(services_, [&](auto service) { return requester_.connected(service); })) {
      if (stopped()) return;
      take();
      backoff.idle();
    }
    while (!stopped()) {
      clear();
      const bool asked = ask();
      take() || asked ? backoff.reset() : backoff.idle();
    }
  }

 private:
  struct Event {
    std::uint64_t id = 0;
    std::uint64_t since_ns = 0;
    std::uint32_t asked = 0;
    std::uint32_t came = 0;
    bool under_way = false;
  };
  struct Asked {
    Requester::Request request = 0;
    std::uint32_t event = 0;
    std::uint32_t readout = 0;
  };

  bool stopped() const { return meeting_.stop.load(std::memory_order_relaxed); }

  bool ask() {
    bool moved = false;
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      Event& event = events_[i];
      if (!event.under_way)
        event = {.id = std::exchange(next_, next_ + settings_.nodes), .since_ns = base::steady_now_ns(), .under_way = true};
      for (; event.asked < settings_.readouts; ++event.asked) {
        request_.clear();
        formats::append_fetch_request(request_, {.id = event.id, .wait_us = 10'000'000});
        const auto asked = requester_.ask(services_[event.asked],
                                          static_cast<std::uint16_t>(formats::FragmentRequest::fetch), request_, 30s);
        if (!asked) break;
        pending_[event.asked].push_back({*asked, i, event.asked});
        moved = true;
      }
    }
    return moved;
  }

  bool take() {
    replies_.clear();
    requester_.poll(base::steady_now_ns(), replies_);
    for (Requester::Reply& reply : replies_) {
      auto& list = pending_[reply.service];
      const auto asked = std::ranges::find(list, reply.request, &Asked::request);
      if (asked == list.end()) continue;  // this is a reply to a clear
      const Asked one = *asked;
      *asked = list.back();
      list.pop_back();
      if (reply.outcome != Requester::Outcome::answered || reply.status != 0) {
        if (!stopped()) meeting_.lost.fetch_add(1, std::memory_order_relaxed);
      } else {
        prove(reply, events_[one.event].id, one.readout);
      }
      came(events_[one.event]);
    }
    return !replies_.empty();
  }

  void came(Event& event) {
    if (++event.came < settings_.readouts) return;
    event.under_way = false;
    meeting_.latency.record(base::steady_now_ns() - event.since_ns);
    cleared_.push_back(event.id);
  }

  /// Sends clears of finished events to every readout, in batches.
  void clear() {
    if (told_ == services_.size()) {
      if (cleared_.size() < kClearsAtOnce) return;
      make_clear();
      told_ = 0;
    }
    while (told_ < services_.size() &&
           requester_.ask(services_[told_], static_cast<std::uint16_t>(formats::FragmentRequest::clear), clear_, 30s))
      ++told_;
  }

  void make_clear() {
    std::ranges::sort(cleared_);
    formats::ClearRequest clear{.sequence = ++clears_};
    for (const std::uint64_t id : cleared_) {
      if (clear.bitmaps.empty() || id - clear.bitmaps.back().first >= 64) clear.bitmaps.push_back({id, 0});
      clear.bitmaps.back().bits |= std::uint64_t{1} << (id - clear.bitmaps.back().first);
    }
    cleared_.clear();
    clear_.clear();
    formats::append_clear_request(clear_, clear);
  }

  /// Checks, byte by byte, that the ROB belongs to the event and the readout.
  void prove(const Requester::Reply& reply, std::uint64_t id, std::uint32_t readout) {
    const auto bytes = reply.message.in_one_piece(scratch_);
    const auto rob = formats::decode_rob(bytes);
    const auto rod = rob ? rob->rod() : std::unexpected(rob.error());
    const bool good = rod && rob->words.bytes().size() == bytes.size() && rob->source_id == kept_source(readout) &&
                      rod->header.l1id == L1Id{static_cast<std::uint32_t>(id)} &&
                      rod->data.bytes().size() == settings_.fragment_bytes && proves_kept(rod->data.bytes(), id, readout);
    if (!good) meeting_.mismatches.fetch_add(1, std::memory_order_relaxed);
    meeting_.chunks.fetch_add(1, std::memory_order_relaxed);
    meeting_.bytes.fetch_add(settings_.fragment_bytes, std::memory_order_relaxed);
  }

  const ServeBenchSettings& settings_;
  Meeting& meeting_;
  Requester requester_;
  std::vector<Requester::Service> services_;
  std::vector<Event> events_;
  std::uint64_t next_;
  std::vector<std::vector<Asked>> pending_;  // requests under way to each readout
  std::vector<std::uint64_t> cleared_;
  std::uint64_t clears_ = 0;
  std::vector<std::byte> clear_;  // the last batch
  std::size_t told_;              // number of readouts that got the batch
  std::vector<std::byte> request_;
  std::vector<std::byte> scratch_;
  std::vector<Requester::Reply> replies_;
};

class Rounds {
 public:
  explicit Rounds(const ServeBenchSettings& settings)
      : settings_(settings), rounds_(rounds_of(settings.seconds)), seconds_(settings.seconds / rounds_) {}

  ServeBenchResult run() {
    for (int round = 0; round < rounds_; ++round) {
      const Window bare = bare_pages(settings_.provider, settings_.page_bytes, false, seconds_);
      const Window filled = bare_pages(settings_.provider, settings_.page_bytes, true, seconds_);
      const Window ours = serve();
      add(fragments_, ours.chunks / ours.seconds);
      add(fragments_per_core_, ours.chunks / ours.sender_cpu_seconds);
      add(bytes_, ours.bytes_per_second());
      add(bytes_per_core_, ours.bytes_per_core_second());
      add(bare_, bare.bytes_per_second());
      add(bare_per_core_, bare.bytes_per_core_second());
      add(filled_, filled.bytes_per_second());
      add(of_bare_, ours.bytes_per_second() / bare.bytes_per_second());
      add(of_bare_per_core_, ours.bytes_per_core_second() / bare.bytes_per_core_second());
      add(of_filled_, ours.bytes_per_second() / filled.bytes_per_second());
    }
    result_.fragments_per_second = median(fragments_);
    result_.fragments_per_core_second = median(fragments_per_core_);
    result_.bytes_per_second = median(bytes_);
    result_.bytes_per_core_second = median(bytes_per_core_);
    result_.bare_bytes_per_second = median(bare_);
    result_.bare_bytes_per_core_second = median(bare_per_core_);
    result_.filled_bytes_per_second = median(filled_);
    result_.of_bare = median(of_bare_);
    result_.of_bare_per_core = median(of_bare_per_core_);
    result_.of_filled = median(of_filled_);
    result_.events_per_second = result_.fragments_per_second / settings_.readouts;
    result_.latency_p50_us = median(latency_p50_);
    result_.latency_p99_us = median(latency_p99_);
    return result_;
  }

 private:
  static void add(std::vector<double>& to, double value) { to.push_back(value); }

  Window serve() {
    const SharedMeeting meeting;
    const auto readouts = [&] { run_kept_readouts(kept(settings_), folder_.path(), settings_.readouts, meeting->stop); };
    const auto nodes = [&] {
      std::vector<std::jthread> threads;
      for (std::uint32_t i = 0; i < settings_.nodes; ++i)
        threads.emplace_back([&, i] { Node(settings_, folder_.path(), i, *meeting).run(); });
    };
    const Window window = measure(*meeting, seconds_, readouts, nodes);
    base::LatencySummary latency;
    meeting->latency.add_to(latency);
    add(latency_p50_, static_cast<double>(latency.percentile_ns(0.50)) * 1e-3);
    add(latency_p99_, static_cast<double>(latency.percentile_ns(0.99)) * 1e-3);
    result_.seconds += window.seconds;
    result_.verified_fragments += meeting->chunks.load();
    result_.mismatches += meeting->mismatches.load();
    result_.lost += meeting->lost.load();
    return window;
  }

  const ServeBenchSettings& settings_;
  const int rounds_;
  const double seconds_;
  const BenchFolder folder_;
  ServeBenchResult result_;
  std::vector<double> fragments_, fragments_per_core_, bytes_, bytes_per_core_, bare_, bare_per_core_, filled_, of_bare_,
      of_bare_per_core_, of_filled_, latency_p50_, latency_p99_;
};

}  // namespace

ServeBenchResult run_serve_bench(const ServeBenchSettings& settings) { return Rounds(settings).run(); }

}  // namespace rodeo::bench
