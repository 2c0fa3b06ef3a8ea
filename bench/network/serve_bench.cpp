#include "bench/network/serve_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread.h"
#include "bench/network/bare.h"
#include "bench/network/two_processes.h"
#include "bench/readout/scaling.h"
#include "formats/fragment_request.h"
#include "formats/rob.h"
#include "readout/builder/recycle_pool.h"
#include "readout/consumer/hlt_request_handler.h"
#include "transport/requester.h"

namespace rodeo::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kFirstSource = 0x610001;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kStampWords = 2;  // global id, slot: what a fragment begins with
constexpr std::size_t kClearsAtOnce = 100;
constexpr std::uint32_t kQueue = 256;

/// All that nodes have under way; one of them may have an eighth of it.
std::uint32_t sending(const ServeBenchSettings& settings) { return std::max(8U, settings.nodes) * settings.events + 64; }

std::string service_of(std::uint32_t readout) { return fmt::format("bench{}.hlt", readout); }

/// What a fragment has behind its stamp, word by word.
std::uint64_t first_word(std::uint32_t readout, std::uint64_t slot) { return (slot << 8 | readout) * kStep; }

/// Fragments of one readout: slots in one piece of memory, filled once; a fragment that goes out again has another id in it.
class Source final : public FragmentOwner {
 public:
  Source(const ServeBenchSettings& settings, std::uint32_t readout)
      : bytes_(settings.fragment_bytes), slots_(settings.kept + kQueue + sending(settings) + 16) {
    const std::size_t stride = (bytes_ + 63) / 64 * 64 + 64;
    auto arena = base::Arena::create(stride * slots_.size());
    if (!arena) throw SetupError(arena.error().within("fragments of a readout"));
    memory_ = std::move(*arena);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      std::byte* const data = memory_.data() + i * stride;
      slot.part = {data, bytes_};
      slot.source_id = SourceId{kFirstSource + readout};
      slot.parts = &slot.part;
      slot.part_count = 1;
      slot.owner = this;
      std::uint64_t word = first_word(readout, i);
      for (std::size_t at = 0; at < bytes_; at += kWord, word += kStep)
        std::memcpy(data + at, &word, std::min(kWord, bytes_ - at));
      const std::uint64_t number = i;
      std::memcpy(data + kWord, &number, kWord);
      pool_.add(&slot);
    }
  }

  /// Inserts one after the other, until `stop`.
  void run(FragmentConsumer& consumer, const std::atomic<bool>& stop) {
    base::set_thread_name("builder");
    pool_.own();
    for (std::uint64_t id = 0; !stop.load(std::memory_order_relaxed); ++id) {
      Slot* slot = nullptr;
      for (base::Backoff backoff; (slot = pool_.take()) == nullptr; backoff.idle()) {
        if (stop.load(std::memory_order_relaxed)) return;
      }
      slot->sequence = slot->global_id = id;
      slot->l1id = L1Id{static_cast<std::uint32_t>(id)};
      slot->references.store(1, std::memory_order_relaxed);
      std::memcpy(slot->part.data, &id, kWord);
      consumer.insert(FragmentPtr::adopt(slot));
    }
  }

  void reclaim(Fragment& fragment) noexcept override { pool_.give(static_cast<Slot*>(&fragment)); }

 private:
  struct Slot : Fragment {
    FragmentPart part;
    Slot* next_free = nullptr;
  };

  std::size_t bytes_;
  base::Arena memory_;
  std::vector<Slot> slots_;
  readout::RecyclePool<Slot> pool_;
};

/// One readout: what stands for its builder, and the product's own handler.
class Readout {
 public:
  Readout(const ServeBenchSettings& settings, const std::filesystem::path& bus, std::uint32_t number)
      : source_(settings, number),
        handler_({.name = "hlt",
                  .retention = {.max_fragments = settings.kept, .queue = kQueue, .sending = sending(settings)},
                  .service = {.replier = {.name = service_of(number),
                                          .service = "fragments",
                                          .bus = bus,
                                          .providers = {settings.provider},
                                          .page_bytes = settings.page_bytes},
                              .robs = {SourceId{kFirstSource + number}},
                              .most_waiting = 65'536,
                              .frame = {.run_number = 1}},
                  .linger = 100ms}) {
    handler_.start();
  }
  void run(const std::atomic<bool>& stop) { source_.run(handler_, stop); }
  void run_ends() { handler_.run_ends(); }
  void stop() { handler_.stop(); }

 private:
  Source source_;
  readout::HltRequestHandler handler_;
};

/// One node: takes every so many-th event, proves what comes, and clears.
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
    for (std::uint32_t i = 0; i < settings.readouts; ++i) services_.push_back(requester_.add(service_of(i)));
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
        formats::append_fetch_request(request_, {.id = L1Id{static_cast<std::uint32_t>(event.id)}, .wait_us = 10'000'000});
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
      if (asked == list.end()) continue;  // a clear
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

  /// Tells every readout of the events that are over, so many at a time.
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
      const auto low = static_cast<std::uint32_t>(id);
      if (clear.bitmaps.empty() || low - clear.bitmaps.back().first.value >= 64) clear.bitmaps.push_back({L1Id{low}, 0});
      clear.bitmaps.back().bits |= std::uint64_t{1} << (low - clear.bitmaps.back().first.value);
    }
    cleared_.clear();
    clear_.clear();
    formats::append_clear_request(clear_, clear);
  }

  /// The ROB is that of the event and of the readout, and each of its bytes is what the slot had.
  void prove(const Requester::Reply& reply, std::uint64_t id, std::uint32_t readout) {
    const auto bytes = reply.message.in_one_piece(scratch_);
    const auto rob = formats::decode_rob(bytes);
    const auto rod = rob ? rob->rod() : std::unexpected(rob.error());
    const bool good = rod && rob->words.bytes().size() == bytes.size() &&
                      rob->source_id == SourceId{kFirstSource + readout} &&
                      rod->header.l1id == L1Id{static_cast<std::uint32_t>(id)} &&
                      rod->data.bytes().size() == settings_.fragment_bytes && proves(rod->data.bytes(), id, readout);
    if (!good) meeting_.mismatches.fetch_add(1, std::memory_order_relaxed);
    meeting_.chunks.fetch_add(1, std::memory_order_relaxed);
    meeting_.bytes.fetch_add(settings_.fragment_bytes, std::memory_order_relaxed);
  }

  static std::uint64_t load(const std::byte* at) {
    std::uint64_t word;
    std::memcpy(&word, at, kWord);
    return word;
  }

  static bool proves(std::span<const std::byte> data, std::uint64_t id, std::uint32_t readout) {
    const std::byte* const at = data.data();
    if (load(at) != id) return false;
    std::uint64_t word = first_word(readout, load(at + kWord)) + kStampWords * kStep;
    std::uint64_t difference = 0;
    std::size_t byte = kStampWords * kWord;
    for (; byte + kWord <= data.size(); byte += kWord, word += kStep) difference |= load(at + byte) ^ word;
    return difference == 0 && std::memcmp(at + byte, &word, data.size() - byte) == 0;
  }

  const ServeBenchSettings& settings_;
  Meeting& meeting_;
  Requester requester_;
  std::vector<Requester::Service> services_;
  std::vector<Event> events_;
  std::uint64_t next_;
  std::vector<std::vector<Asked>> pending_;  // of each readout
  std::vector<std::uint64_t> cleared_;
  std::uint64_t clears_ = 0;
  std::vector<std::byte> clear_;  // the last
  std::size_t told_;              // so many readouts have been told of it
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
    const auto readouts = [&] {
      std::vector<std::unique_ptr<Readout>> all;
      for (std::uint32_t i = 0; i < settings_.readouts; ++i)
        all.push_back(std::make_unique<Readout>(settings_, folder_.path(), i));
      std::vector<std::jthread> sources;
      for (const auto& one : all) sources.emplace_back([&] { one->run(meeting->stop); });
      while (!meeting->stop.load(std::memory_order_relaxed)) std::this_thread::sleep_for(1ms);
      // A full book holds back who inserts, and nobody clears any more.
      for (const auto& one : all) one->run_ends();
      sources.clear();
      for (const auto& one : all) one->stop();
    };
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
