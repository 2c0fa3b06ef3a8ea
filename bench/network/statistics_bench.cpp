#include "bench/network/statistics_bench.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread.h"
#include "bench/network/statistics_designs.h"
#include "bench/readout/prepared_input.h"
#include "bench/readout/scaling.h"
#include "transport/subscription.h"

namespace rodeo::bench {
namespace {

constexpr std::uint32_t kPageBytes = 64U << 10;  // as publishers have them
constexpr std::uint32_t kPages = 64;
constexpr std::chrono::milliseconds kReadInterval{100};

/// What a data thread has: links of its own, and a subscriber of all of them who takes every page at once.
class DataThread {
 public:
  DataThread(PreparedInput& input, std::span<const Fid> links)
      : stream_(input.open(links)),
        counts_(links.size()),
        memory_(made_memory()),
        subscription_(wish(links), all_of(links.size()), {memory_.data(), memory_.size()}, kPageBytes, counts_,
                      std::vector<std::uint8_t>(links.size()), 0) {}

  const std::vector<std::uint32_t>& counts() const { return counts_; }  ///< chunks that each link has had, as its pages say
  std::uint64_t chunks() const { return subscription_.chunks(); }       ///< in pages
  double cpu_seconds() const { return cpu_seconds_; }                   ///< of the last run

  template <bool kEachChunk, typename Thread>
  [[gnu::noinline]] void route(Thread& statistics, const std::atomic<bool>& stop) {
    const double before = base::thread_cpu_seconds();
    do {
      Page* page = nullptr;
      if (stream_->poll(page) != PollStatus::page) continue;
      for (const ChunkRun& run : page->runs) {
        if constexpr (kEachChunk) {
          for (std::uint32_t i = 0; i < run.count; ++i)
            statistics.count({.size = static_cast<std::uint32_t>(run.chunk(i).size()),
                              .count = 1,
                              .link = run.link,
                              .status = run.chunk_status(i),
                              .more_follows = run.more_follows});
        } else {
          statistics.count(run);
        }
        publish(run);
      }
      statistics.page_is_over();
      page->drop();
    } while (!stop.load(std::memory_order_relaxed));
    cpu_seconds_ = base::thread_cpu_seconds() - before;
  }

 private:
  static base::Arena made_memory() {
    auto memory = base::Arena::create(std::size_t{kPages} * kPageBytes);
    if (!memory) throw SetupError(memory.error().within("pages"));
    return std::move(*memory);
  }
  static formats::ControlSubscribe wish(std::span<const Fid> links) {
    formats::ControlSubscribe wish;
    wish.links.assign(links.begin(), links.end());
    return wish;
  }
  static std::vector<LinkIndex> all_of(std::size_t links) {
    std::vector<LinkIndex> all;
    for (std::size_t link = 0; link < links; ++link) all.push_back(static_cast<LinkIndex>(link));
    return all;
  }

  void publish(const ChunkRun& run) {
    formats::RunPlace place;
    while (!subscription_.append(run.link, counts_[run.link], run, place)) send();
    counts_[run.link] += run.more_follows ? 0 : run.count;
  }
  void send() {
    transport::PageRing& ring = subscription_.ring();
    while (const auto page = ring.next()) {
      ring.sending();
      ring.sent(page->slot);
      (void)ring.taken(++sent_);
    }
  }

  std::unique_ptr<DataStream> stream_;
  std::vector<std::uint32_t> counts_;
  base::Arena memory_;
  transport::Subscription subscription_;
  std::uint64_t sent_ = 0;
  double cpu_seconds_ = 0;
};

/// What a run of one design came to.
struct Run {
  double chunks_per_second = 0;
  double cpu_share = 0;
  double statistics_cpu_share = 0;
  std::uint64_t chunks = 0;
  std::uint64_t mismatches = 0;
};

/// Reads the statistics ten times a second, the first time half an interval after the beginning, and at the end.
template <typename Design>
void collect_until(Design& design, const std::stop_token& stop) {
  base::set_thread_name("statistics");
  std::mutex mutex;
  std::condition_variable_any told;
  auto next = std::chrono::steady_clock::now() + kReadInterval / 2;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    auto until = next;
    if constexpr (requires { design.drain(); }) {
      if (design.drain()) until = {};  // there is more
      until = std::min(until, std::chrono::steady_clock::now() + std::chrono::milliseconds{1});
    }
    told.wait_until(lock, stop, until, [] { return false; });
    if (std::chrono::steady_clock::now() < next) continue;
    design.collect();
    next += kReadInterval;
  }
}

template <typename Design, bool kEachChunk>
Run run_design(std::deque<DataThread>& data, const StatisticsBenchSettings& settings, double seconds) {
  Design design(data.size(), settings.links);
  std::vector<std::vector<std::uint32_t>> before;
  std::vector<std::uint64_t> chunks_before;
  for (const DataThread& one : data) {
    before.push_back(one.counts());
    chunks_before.push_back(one.chunks());
  }
  Run run;
  double statistics_cpu = 0;
  const std::uint64_t begin_ns = base::steady_now_ns();
  std::jthread statistics([&](const std::stop_token& stop) {
    collect_until(design, stop);
    statistics_cpu = base::thread_cpu_seconds();
  });
  {
    std::atomic<bool> stop{false};
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < data.size(); ++i)
      threads.emplace_back([&, i] { data[i].template route<kEachChunk>(design.thread(i), stop); });
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop.store(true, std::memory_order_relaxed);
  }
  const double wall = static_cast<double>(base::steady_now_ns() - begin_ns) * 1e-9;
  statistics.request_stop();
  statistics.join();
  run.statistics_cpu_share = statistics_cpu / wall;
  design.collect();

  // The thread knows what it handled from the counts that its pages carry, which are in no design.
  LinkTally sum;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::uint64_t chunks = data[i].chunks() - chunks_before[i];
    run.chunks_per_second += static_cast<double>(chunks) / data[i].cpu_seconds();
    run.cpu_share += data[i].cpu_seconds() / (wall * static_cast<double>(data.size()));
    run.chunks += chunks;
    for (std::size_t link = 0; link < settings.links; ++link) {
      const std::uint32_t handled = data[i].counts()[link] - before[i][link];
      const LinkTally right{handled, std::uint64_t{handled} * settings.chunk_bytes, 0};
      sum += right;
      run.mismatches += design.at(i, link) == right ? 0 : 1;
    }
  }
  run.mismatches += design.sum() == sum && sum.chunks == run.chunks ? 0 : 1;
  return run;
}

template <bool kEachChunk>
constexpr std::array<decltype(&run_design<NoStatistics, kEachChunk>), kStatisticsDesigns.size()> kRuns{
    run_design<PulledStatistics, kEachChunk>, run_design<PushedStatistics, kEachChunk>,
    run_design<CentralStatistics, kEachChunk>, run_design<QueuedStatistics, kEachChunk>};

}  // namespace

double upper_limit_of_median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  // As many are below the median as coins show heads: the first whose place hardly so many reach.
  const auto n = static_cast<double>(values.size());
  double probability = std::exp2(-n);  // of as many heads as `place`
  double heads = 0;
  for (std::size_t place = 0; place < values.size(); ++place) {
    heads += probability;
    if (heads >= 0.95) return values[place];
    probability *= (n - static_cast<double>(place)) / static_cast<double>(place + 1);
  }
  return values.back();
}

StatisticsBenchResult run_statistics_bench(const StatisticsBenchSettings& settings) {
  PreparedInput input({.links = settings.links * settings.threads, .chunk_bytes = settings.chunk_bytes, .blocks = true});
  std::deque<DataThread> data;
  for (std::uint32_t i = 0; i < settings.threads; ++i)
    data.emplace_back(input, input.links().subspan(std::size_t{i} * settings.links, settings.links));

  const double seconds = settings.seconds / (settings.rounds * 2.0 * kStatisticsDesigns.size());
  const auto& runs = settings.each_chunk ? kRuns<true> : kRuns<false>;
  const auto none = [&] {
    return (settings.each_chunk ? run_design<NoStatistics, true> : run_design<NoStatistics, false>)(data, settings, seconds);
  };
  StatisticsBenchResult result;
  struct Rounds {
    std::vector<double> rates, relative, cost, statistics_cpu;
  };
  std::array<Rounds, kStatisticsDesigns.size()> rounds;
  std::vector<double> none_rates, shares, central_to_pull;
  (void)none();  // memory is touched, caches are warm
  for (std::uint32_t round = 0; round < settings.rounds; ++round) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Run beside;
      if (round % 2 == 0) beside = none();
      const Run run = runs[i](data, settings, seconds);
      if (round % 2 != 0) beside = none();
      none_rates.push_back(beside.chunks_per_second);
      shares.push_back(beside.cpu_share);
      rounds[i].rates.push_back(run.chunks_per_second);
      rounds[i].relative.push_back(run.chunks_per_second / beside.chunks_per_second);
      rounds[i].cost.push_back(1 - rounds[i].relative.back());
      rounds[i].statistics_cpu.push_back(run.statistics_cpu_share);
      result.chunks += run.chunks;
      result.mismatches += run.mismatches;
    }
    central_to_pull.push_back(rounds[2].relative.back() / rounds[0].relative.back());
  }
  result.none_chunks_per_second = median(none_rates);
  result.cpu_share = median(shares);
  result.central_to_pull = median(central_to_pull);
  for (std::size_t i = 0; i < rounds.size(); ++i)
    result.designs[i] = {.chunks_per_second = median(rounds[i].rates),
                         .relative = median(rounds[i].relative),
                         .cost_upper_limit = upper_limit_of_median(rounds[i].cost),
                         .statistics_cpu_share = median(rounds[i].statistics_cpu)};
  return result;
}

}  // namespace rodeo::bench
