#include "readout/consumer/queued_consumer.h"

#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "readout/consumer/end_of_list.h"

namespace rodeo::readout {
namespace {

// Seats for inserting threads of a consumer without own threads. Usually there are fewer builder workers than seats;
// otherwise two threads share a seat and wait for each other.
constexpr unsigned kInlineSeats = 8;

unsigned number_of_this_thread() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

std::uint64_t us_of(std::uint64_t ns) { return (ns + 999) / 1000; }

Settings<QueueSettings>::Lines all_but_threads() {
  using Q = QueueSettings;
  using base::IdlePolicy;
  Settings<Q>::Lines lines =
      setting(&Q::capacity, "queue",
              "Fragments that may wait, rounded up to a power of two. A full queue delays the stages before it.",
              {.minimum = 2, .maximum = 1 << 22});
  const auto idle =
      setting(&Q::idle, "idle", {{"spin", IdlePolicy::spin}, {"yield", IdlePolicy::yield}, {"sleep", IdlePolicy::sleep}},
              "What a thread does while its queue is empty: spin (lowest latency, a core each), yield, or sleep (kind to a "
              "laptop).");
  const auto first_cpu = setting(&Q::first_cpu, "first_cpu", "Pins thread i to CPU first_cpu + i. -1: not pinned.",
                                 {.minimum = -1, .maximum = 4095});
  lines.insert(lines.end(), {idle.front(), first_cpu.front()});
  return lines;
}

}  // namespace

const Settings<QueueSettings>& queue_settings() {
  static const Settings<QueueSettings> settings{
      setting(&QueueSettings::threads, "threads",
              "Threads that take fragments from the queue. 0: the work is done in the thread that hands the fragment over.",
              {.maximum = 256}),
      all_but_threads(),
  };
  return settings;
}

const Settings<QueueSettings>& one_thread_settings() {
  static const Settings<QueueSettings> settings{all_but_threads()};
  return settings;
}

QueuedConsumer::QueuedConsumer(QueueSettings settings)
    : settings_(std::move(settings)), inline_(settings_.threads == 0), queue_(settings_.capacity) {
  next_ = end_of_list();
  const unsigned seats = inline_ ? kInlineSeats : settings_.threads;
  for (unsigned i = 0; i < seats; ++i) seats_.push_back(std::make_unique<Seat>());
}

QueuedConsumer::~QueuedConsumer() { QueuedConsumer::stop(); }

void QueuedConsumer::link(FragmentConsumer* next) { next_ = next != nullptr ? next : end_of_list(); }

void QueuedConsumer::start() {
  for (unsigned i = 0; i < seats_.size(); ++i) seats_[i]->worker = make_worker(i);
  if (inline_) return;
  for (unsigned i = 0; i < seats_.size(); ++i) {
    seats_[i]->thread = std::thread([this, i] { run(*seats_[i], i); });
  }
}

void QueuedConsumer::stop() {
  draining_.store(true, std::memory_order_release);
  for (const auto& seat : seats_) {
    if (seat->thread.joinable()) seat->thread.join();
  }
}

void QueuedConsumer::run(Seat& seat, unsigned index) {
  seat.cpu.attach();
  base::set_thread_name(settings_.threads == 1 ? settings_.name : fmt::format("{}-{}", settings_.name.substr(0, 12), index));
  if (settings_.first_cpu >= 0 && !base::pin_thread(settings_.first_cpu + static_cast<int>(index))) {
    base::log_warning("{}: thread {} cannot be pinned to CPU {}", settings_.name, index,
                      settings_.first_cpu + static_cast<int>(index));
  }
  base::Backoff backoff(settings_.idle);
  FragmentPtr fragment;
  for (;;) {
    // Read before the queue: all fragments were inserted before the flag was set, so an empty queue now stays empty.
    const bool draining = draining_.load(std::memory_order_acquire);
    if (queue_.try_pop(fragment)) {
      backoff.reset();
      process(seat, std::move(fragment));
    } else if (seat.worker->on_idle(draining)) {
      break;
    } else {
      backoff.idle();
    }
  }
  seat.cpu.detach();
}

void QueuedConsumer::process(Seat& seat, FragmentPtr fragment) {
  if (gives_up()) [[unlikely]]
    return seat.counters.add(Count::given_up);
  // Times one fragment in sixteen: reading the clock costs more than the queue.
  if (fragment->handed_over_ns != 0 && seat.timed++ % 16 == 0) {
    const std::uint64_t now = base::steady_now_ns();
    seat.latency.record(now > fragment->handed_over_ns ? now - fragment->handed_over_ns : 0);
  }
  try {
    seat.worker->work(std::move(fragment));
  } catch (const std::exception& problem) {
    seat.counters.add(Count::exceptions);
    if (const auto turn = exception_log_.turn()) base::log_error("{}: {}{}", settings_.name, problem.what(), turn.suffix());
  } catch (...) {
    seat.counters.add(Count::exceptions);
    if (const auto turn = exception_log_.turn()) base::log_error("{}: unknown exception{}", settings_.name, turn.suffix());
  }
  seat.counters.add(Count::consumed);
}

void QueuedConsumer::work_inline(FragmentPtr fragment) {
  Seat& seat = *seats_[number_of_this_thread() % kInlineSeats];
  if (seat.busy.test_and_set(std::memory_order_acquire)) [[unlikely]] {
    stalls_.fetch_add(1, std::memory_order_relaxed);
    base::Backoff backoff(base::IdlePolicy::yield);
    while (seat.busy.test_and_set(std::memory_order_acquire)) backoff.idle();
  }
  process(seat, std::move(fragment));
  seat.busy.clear(std::memory_order_release);
}

void QueuedConsumer::wait_and_push(FragmentPtr fragment) {
  stalls_.fetch_add(1, std::memory_order_relaxed);
  base::Backoff backoff(settings_.idle);
  // A refused push leaves the fragment in place.
  while (!queue_.try_push(std::move(fragment))) backoff.idle();  // NOLINT(bugprone-use-after-move)
}

void QueuedConsumer::fail(std::string why) {
  const std::lock_guard lock(failure_mutex_);
  if (failure_.empty()) failure_ = std::move(why);
  failed_.store(true, std::memory_order_release);
}

FragmentConsumer::Status QueuedConsumer::status() const {
  Status out;
  out.name = settings_.name;
  out.queue_fill = inline_ ? 0 : static_cast<double>(queue_.size()) / static_cast<double>(queue_.capacity());
  out.stalls = stalls_.load(std::memory_order_relaxed);
  base::LatencySummary latency;
  std::uint64_t exceptions = 0;
  std::uint64_t given_up = 0;
  for (const auto& seat : seats_) {
    out.consumed += seat->counters.read(Count::consumed);
    exceptions += seat->counters.read(Count::exceptions);
    given_up += seat->counters.read(Count::given_up);
    out.cpu_seconds += seat->cpu.seconds();
    seat->latency.add_to(latency);
  }
  out.counters = {{"exceptions", exceptions}};
  if (given_up > 0) out.counters.push_back({"given_up", given_up});
  if (latency.max_ns() > 0) {
    out.counters.insert(out.counters.end(), {{"latency_p50_us", us_of(latency.percentile_ns(0.50))},
                                             {"latency_p99_us", us_of(latency.percentile_ns(0.99))},
                                             {"latency_max_us", us_of(latency.max_ns())}});
  }
  {
    const std::lock_guard lock(failure_mutex_);
    out.failure = failure_;
  }
  return out;
}

}  // namespace rodeo::readout
