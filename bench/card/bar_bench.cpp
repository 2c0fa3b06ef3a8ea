#include "bench/card/bar_bench.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <thread>

#include "base/child_process.h"
#include "base/clock.h"
#include "bench/card/ceilings.h"

namespace rodeo::bench {

using namespace card;

namespace {

constexpr unsigned kMostProcesses = 128;  // an emulated card serves 256 clients: leave places for others during a bench
constexpr std::uint64_t kPatienceNs = 10'000'000'000;
constexpr unsigned kRounds = 7;
constexpr unsigned kBatch = 16;  // accesses between two looks at the clock

struct alignas(64) Share {
  std::atomic<int> state;  // 0 not ready, 1 ready, 1 + n: n rounds done, -1 failed
  std::uint64_t operations[kRounds];
  double seconds[kRounds];
  std::uint64_t wrong;
  bool mapped;
  char code[64];
  char what[256];
};

unsigned rounds_of(const BarBenchSettings& settings) { return settings.cycles > 0 ? 1 : kRounds; }

/// The state that the processes share.
struct Meeting {
  std::atomic<unsigned> go;  // number of rounds that may begin
  Share shares[kMostProcesses];
};

void copy_text(char* to, std::size_t size, const std::string& text) {
  std::strncpy(to, text.c_str(), size - 1);
  to[size - 1] = '\0';
}

/// Passes of loads or stores, mapped or trapped. A pass returns the last error.
class Accesses {
 public:
  Accesses(const Bar& bar, const BarBenchSettings& settings) : bar_(bar), target_(settings.target), write_(settings.write) {
    if (target_.width_bytes == 8) {
      wide_ = bar.mapped<std::uint64_t>(target_.offset);
    } else {
      narrow_ = bar.mapped<std::uint32_t>(target_.offset);
    }
  }
  bool mapped() const { return wide_ || narrow_; }

  Result<void> batch(std::uint64_t cycles, std::uint64_t& operations, std::uint64_t& wrong) const {
    for (std::uint64_t i = 0; i < cycles; ++i) {
      if (write_) {
        RODEO_TRY(write());
        ++operations;
      }
      const auto value = RODEO_TRY(read());
      ++operations;
      if (write_ && value != *write_) ++wrong;
    }
    return {};
  }

 private:
  Result<std::uint64_t> read() const {
    if (wide_) return wide_.load();
    if (narrow_) return narrow_.load();
    return read_register(bar_, target_);
  }
  Result<void> write() const {
    if (wide_) {
      wide_.store(*write_);
      return {};
    }
    if (narrow_) {
      narrow_.store(static_cast<std::uint32_t>(*write_));
      return {};
    }
    return write_register(bar_, target_, *write_);
  }

  const Bar& bar_;
  RegisterTarget target_;
  std::optional<std::uint64_t> write_;
  pci::MappedRegister<std::uint64_t> wide_;
  pci::MappedRegister<std::uint32_t> narrow_;
};

Result<void> take_part(const CardEntry& entry, const BarBenchSettings& settings, Meeting& meeting, Share& share) {
  const auto card = RODEO_TRY(Card::open(entry.function));
  const auto bar = RODEO_TRY(card->bar(settings.target.bar));
  const Accesses accesses(*bar, settings);
  std::uint64_t ignored = 0;
  RODEO_TRY(accesses.batch(1, ignored, ignored));
  share.mapped = accesses.mapped();
  share.state.store(1, std::memory_order_release);
  for (unsigned round = 0; round < rounds_of(settings); ++round) {
    while (meeting.go.load(std::memory_order_acquire) <= round) std::this_thread::sleep_for(std::chrono::microseconds{100});
    const std::uint64_t begin = base::steady_now_ns();
    const std::uint64_t end = begin + static_cast<std::uint64_t>(std::chrono::nanoseconds(settings.time).count()) / kRounds;
    std::uint64_t now = begin;
    if (settings.cycles > 0) {
      RODEO_TRY(accesses.batch(settings.cycles, share.operations[round], share.wrong));
      now = base::steady_now_ns();
    }
    while (settings.cycles == 0 && now < end) {
      RODEO_TRY(accesses.batch(kBatch, share.operations[round], share.wrong));
      now = base::steady_now_ns();
    }
    share.seconds[round] = static_cast<double>(now - begin) * 1e-9;
    share.state.fetch_add(1, std::memory_order_release);
  }
  return {};
}

void process(const CardEntry& entry, const BarBenchSettings& settings, Meeting& meeting, Share& share) {
  const auto outcome = take_part(entry, settings, meeting, share);
  if (!outcome) {
    copy_text(share.code, sizeof share.code, outcome.error().code);
    copy_text(share.what, sizeof share.what, outcome.error().what);
    share.state.store(-1, std::memory_order_release);
  }
  for (;;) ::pause();  // wait for the signal that ends it: a process that ends without a signal counts as dead
}

double median(std::span<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

Error bench_error(std::string what) { return {"card.bench", std::move(what), {}, {}}; }

/// The number of plain loads from the first-level cache that a loop can do in a second.
double load_ceiling(std::chrono::milliseconds time) {
  volatile std::uint64_t word = 1;
  std::uint64_t sum = 0;
  std::uint64_t loads = 0;
  const std::uint64_t begin = base::steady_now_ns();
  const std::uint64_t end = begin + static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  std::uint64_t now = begin;
  while (now < end) {
    for (unsigned i = 0; i < kBatch; ++i) sum += word;
    loads += kBatch;
    now = base::steady_now_ns();
  }
  return sum == 0 ? 0 : static_cast<double>(loads) / (static_cast<double>(now - begin) * 1e-9);
}

/// Waits until every share is at least in `state`; an error if a process failed or died, or if the wait takes too long.
Result<void> wait_for(const Meeting& meeting, unsigned processes, int state, std::uint64_t patience_ns) {
  const std::uint64_t end = base::steady_now_ns() + patience_ns;
  while (true) {
    unsigned there = 0;
    for (unsigned i = 0; i < processes; ++i) {
      const int now = meeting.shares[i].state.load(std::memory_order_acquire);
      if (now < 0) return std::unexpected(Error{meeting.shares[i].code, meeting.shares[i].what, {}, {}});
      if (now >= state) ++there;
    }
    if (there == processes) return {};
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
      return std::unexpected(bench_error(fmt::format("process {} of the bench has died", ended.si_pid)));
    if (base::steady_now_ns() > end)
      return std::unexpected(bench_error(fmt::format("only {} of {} processes have started", there, processes)));
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace

Result<BarBenchResult> run_bar_bench(const CardEntry& card, const BarBenchSettings& settings) {
  if (settings.processes == 0 || settings.processes > kMostProcesses)
    return std::unexpected(Error{
        "card.bad_setting", fmt::format("{} processes are not possible, only 1 to {}", settings.processes, kMostProcesses),
        card.function.address.text(), "take fewer"});
  void* shared = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::unexpected(bench_error(std::string("no shared memory: ") + std::strerror(errno)));
  auto* meeting = new (shared) Meeting{};
  BarBenchResult result;
  const auto round_time = settings.time / kRounds;
  const unsigned rounds = rounds_of(settings);
  std::array<double, kRounds> rates{}, ceilings{}, ratios{};
  const auto outcome = [&]() -> Result<void> {
    std::vector<base::ChildProcess> processes;
    for (unsigned i = 0; i < settings.processes; ++i) {
      processes.push_back(
          RODEO_TRY(base::ChildProcess::fork([&] { process(card, settings, *meeting, meeting->shares[i]); })));
    }
    RODEO_TRY(wait_for(*meeting, settings.processes, 1, kPatienceNs));
    result.mapped = meeting->shares[0].mapped;
    const std::uint64_t patience_ns =
        settings.cycles > 0 ? UINT64_MAX / 2
                            : kPatienceNs + static_cast<std::uint64_t>(std::chrono::nanoseconds(round_time).count());
    for (unsigned round = 0; round < rounds; ++round) {
      meeting->go.store(round + 1, std::memory_order_release);
      const int state = static_cast<int>(round) + 2;
      RODEO_TRY(wait_for(*meeting, settings.processes, state, patience_ns));
      ceilings[round] =
          result.mapped ? load_ceiling(round_time) : ping_pong_ceiling(std::chrono::microseconds{0}, round_time);
    }
    return {};
  }();
  if (outcome) {
    for (unsigned i = 0; i < settings.processes; ++i) {
      const Share& share = meeting->shares[i];
      for (unsigned round = 0; round < rounds; ++round)
        rates[round] += static_cast<double>(share.operations[round]) / share.seconds[round];
      const std::uint64_t operations = std::accumulate(share.operations, share.operations + rounds, std::uint64_t{0});
      const double seconds = std::accumulate(share.seconds, share.seconds + rounds, 0.0);
      result.per_process.push_back(static_cast<double>(operations) / seconds);
      result.operations += operations;
      result.seconds = std::max(result.seconds, seconds);
      result.wrong_reads += share.wrong;
    }
    for (unsigned round = 0; round < rounds; ++round)
      ratios[round] = ceilings[round] > 0 ? rates[round] / ceilings[round] : 0;
    const double mean = std::accumulate(result.per_process.begin(), result.per_process.end(), 0.0) / settings.processes;
    for (const double rate : result.per_process)
      result.unfairness = std::max(result.unfairness, std::abs(rate - mean) / mean);
    result.operations_per_second = median(std::span(rates).first(rounds));
    result.ceiling_per_second = median(std::span(ceilings).first(rounds));
    result.of_ceiling = median(std::span(ratios).first(rounds));
  }
  ::munmap(shared, sizeof(Meeting));
  if (!outcome) {
    Error error = outcome.error();
    if (error.where.empty()) error.where = card.function.address.text();
    return std::unexpected(std::move(error));
  }
  return result;
}

}  // namespace rodeo::bench
