#include "input/generator_input.h"

#include <ctime>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_counters.h"
#include "base/pin.h"

namespace rodeo::input {
namespace {

// Waking up more often would only cost CPU: a chunk waits longer than this for its run anyway.
constexpr std::uint64_t kShortestSleep = 200'000;
constexpr std::uint64_t kLongestCatchUp = 200'000'000;  // time for triggers that are still due at a stop

void sleep_until(std::uint64_t time_ns) {
  timespec until{};
  until.tv_sec = static_cast<time_t>(time_ns / 1'000'000'000U);
  until.tv_nsec = static_cast<long>(time_ns % 1'000'000'000U);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace

InternalDataGenerator::InternalDataGenerator(GeneratorSettings settings)
    : generator_(std::move(settings)), links_(generator_.settings().links) {}

InternalDataGenerator::~InternalDataGenerator() {
  abandoned_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<DataStream> InternalDataGenerator::open(std::span<const Fid> links) {
  if (thread_.joinable()) throw std::runtime_error("The generator is running: streams are opened before it starts.");
  std::vector<LinkIndex> wanted;
  for (const std::size_t position : links_.select(links, "the generator"))
    wanted.push_back(static_cast<LinkIndex>(position));
  return std::make_unique<StreamHandle>(generator_.add_stream(wanted));
}

std::unique_ptr<DataStream> InternalDataGenerator::open_trigger_list() {
  if (thread_.joinable()) throw std::runtime_error("The generator is running: streams are opened before it starts.");
  return std::make_unique<StreamHandle>(generator_.add_trigger_list());
}

void InternalDataGenerator::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void InternalDataGenerator::stop() {
  const std::uint64_t now = base::steady_now_ns();
  std::uint64_t going_on = 0;
  const bool first = stop_ns_.compare_exchange_strong(going_on, now, std::memory_order_acq_rel);
  // Without the thread, this call must end the streams.
  if (first && !thread_.joinable()) generator_.finish(now);
}

void InternalDataGenerator::run() {
  base::set_thread_name("rodeo-gen");
  base::pin_thread_or_warn(generator_.settings().cpu, "rodeo-gen");
  cpu_.attach();
  generator_.start(base::steady_now_ns());
  bool finishing = false;
  std::uint64_t last_ns = 0;
  while (!abandoned_.load(std::memory_order_acquire)) {
    const std::uint64_t now = base::steady_now_ns();
    if (finishing) {
      if (generator_.finish(now)) break;
      sleep_until(now + kShortestSleep);
      continue;
    }
    // Accepts triggers that were due at the stop, if the generator catches up soon.
    const std::uint64_t stop = stop_ns_.load(std::memory_order_acquire);
    const std::uint64_t end = stop == 0 ? now : std::max(stop, last_ns);
    if (generator_.exhausted() || (stop != 0 && (!generator_.behind(end) || now > end + kLongestCatchUp))) {
      if (stop != 0) generator_.end_offering(end);
      finishing = true;
      continue;
    }
    last_ns = end;
    const std::uint64_t next = generator_.advance(end);
    if (next > end && !generator_.exhausted()) sleep_until(std::max(stop == 0 ? next : now, now + kShortestSleep));
  }
  cpu_.detach();
}

std::vector<NamedCounter> InternalDataGenerator::counters() const {
  std::vector<NamedCounter> all{{"sent", generator_.chunks_sent()}, {"sent_bytes", generator_.bytes_sent()}};
  const auto counted =
      base::named_counters(generator_.counters(), kGeneratorCounters, [](GeneratorCounter) { return true; });
  all.insert(all.end(), counted.begin(), counted.end());
  return all;
}

}  // namespace rodeo::input
