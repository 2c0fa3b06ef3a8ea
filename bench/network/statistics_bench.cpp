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

constexpr std::uint32_t kPageBytes = 64U << 10;  // page size of publishers
constexpr std::uint32_t kPages = 64;
constexpr std::chrono::milliseconds kReadInterval{100};

/// A data thread: its own links, and a subscriber to all of them, which takes every page at once.
class DataThread {
 public:
  DataThread(PreparedInput& input, std::span<const Fid> links)
      : stream_(input.open(links)),
        links_(links.begin(), links.end()),
        memory_(made_memory()),
        pages_(input.memory().back().size() / input.page_bytes() +
               (input.memory().back().size() % input.page_bytes() != 0)) {
    // Count one cycle of the input, independently of the measured designs.
    had_.resize((pages_ + 1) * links.size());
    for (std::size_t page = 0; page < pages_; ++page) {
      std::copy_n(&had_[page * links.size()], links.size(), &had_[(page + 1) * links.size()]);
      Page* polled = nullptr;
      while (stream_->poll(polled) != PollStatus::page) {
      }
      for (const ChunkRun& run : polled->runs)
        had_[(page + 1) * links.size() + run.link] += run.more_follows ? 0 : run.count;
      polled->drop();
    }
  }

  /// The number of chunks of the link since the thread began to route, derived from the pages of the input.
  std::uint64_t handled(std::size_t link) const {
    return polled_ / pages_ * had_[pages_ * links_.size() + link] + had_[polled_ % pages_ * links_.size() + link];
  }
  std::uint64_t in_pages() const { return in_pages_; }  ///< chunks put into the subscriber's pages in the last run
  double cpu_seconds() const { return cpu_seconds_; }   ///< CPU time of the last run

  template <bool kEachChunk, typename Thread>
  [[gnu::noinline]] void route(Thread& statistics, const std::atomic<bool>& stop) {
    // The numbers of chunks start at those of the design.
    transport::Subscription subscription(wish(), all_links(), {memory_.data(), memory_.size()}, kPageBytes,
                                         std::vector<std::uint32_t>(links_.size()), std::vector<std::uint8_t>(links_.size()),
                                         0);
    std::uint64_t sent = 0;
    const double before = base::thread_cpu_seconds();
    do {
      Page* page = nullptr;
      if (stream_->poll(page) != PollStatus::page) continue;
      for (const ChunkRun& run : page->runs) {
        formats::RunPlace place;
        auto&& link = statistics.link(run.link);
        while (!subscription.append(run.link, link.number(), run, place)) send(subscription.ring(), sent);
        if constexpr (kEachChunk) {
          for (std::uint32_t i = 0; i < run.count; ++i)
            link.count({.size = static_cast<std::uint32_t>(run.chunk(i).size()),
                        .count = 1,
                        .link = run.link,
                        .status = run.chunk_status(i),
                        .more_follows = run.more_follows});
        } else {
          link.count(run);
        }
      }
      statistics.page_is_over();
      page->drop();
      ++polled_;
    } while (!stop.load(std::memory_order_relaxed));
    cpu_seconds_ = base::thread_cpu_seconds() - before;
    in_pages_ = subscription.chunks();
  }

 private:
  static base::Arena made_memory() {
    auto memory = base::Arena::create(std::size_t{kPages} * kPageBytes);
    if (!memory) throw SetupError(memory.error().within("pages"));
    return std::move(*memory);
  }
  formats::ControlSubscribe wish() const {
    formats::ControlSubscribe wish;
    wish.links = links_;
    return wish;
  }
  std::vector<LinkIndex> all_links() const {
    std::vector<LinkIndex> all;
    for (std::size_t link = 0; link < links_.size(); ++link) all.push_back(static_cast<LinkIndex>(link));
    return all;
  }

  static void send(transport::PageRing& ring, std::uint64_t& sent) {
    while (const auto page = ring.next()) {
      ring.sending();
      ring.sent(page->slot);
      (void)ring.taken(++sent);
    }
  }

  std::unique_ptr<DataStream> stream_;
  std::vector<Fid> links_;
  base::Arena memory_;
  std::size_t pages_;               // pages in a cycle of the input
  std::vector<std::uint64_t> had_;  // chunks of the cycle before this page, by page and link
  std::uint64_t polled_ = 0;
  std::uint64_t in_pages_ = 0;
  double cpu_seconds_ = 0;
};

/// The result of one run of a design.
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
      if (design.drain()) until = {};  // more records wait
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
  std::vector<std::uint64_t> before;
  for (const DataThread& one : data) {
    for (std::size_t link = 0; link < settings.links; ++link) before.push_back(one.handled(link));
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

  // The true counts come from the pages of the input, independently of the design.
  LinkTally sum;
  for (std::size_t i = 0; i < data.size(); ++i) {
    run.chunks_per_second += static_cast<double>(data[i].in_pages()) / data[i].cpu_seconds();
    run.cpu_share += data[i].cpu_seconds() / (wall * static_cast<double>(data.size()));
    run.chunks += data[i].in_pages();
    for (std::size_t link = 0; link < settings.links; ++link) {
      const std::uint64_t handled = data[i].handled(link) - before[i * settings.links + link];
      const LinkTally right{handled, handled * settings.chunk_bytes, 0};
      sum += right;
      run.mismatches += design.at(i, link) == right ? 0 : 1;
      run.mismatches +=
          design.thread(i).link(static_cast<LinkIndex>(link)).number() == static_cast<std::uint32_t>(handled) ? 0 : 1;
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
  // The number of values below the median is distributed like heads of coins: finds the first place that it hardly reaches.
  const auto n = static_cast<double>(values.size());
  double probability = std::exp2(-n);  // probability of exactly `place` heads
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
  (void)none();  // touches the memory and warms the caches
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
