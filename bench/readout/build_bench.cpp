#include "bench/readout/build_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/need.h"
#include "base/thread.h"
#include "base/units.h"
#include "readout/consumer/works.h"
#include "settings/key_value.h"

namespace rodeo::bench {

using namespace readout;

namespace {

constexpr std::size_t kPiece = 64 << 10;  // bytes of a piece of memory in the ceilings
constexpr std::uint64_t kVerifyEvery = 1000;
constexpr std::int64_t kSpareBuffers = 5120;  // buffers beyond those of the window
constexpr double kWarmUpSeconds = 0.3;
constexpr std::uint32_t kFirstSource = 0x610001;
constexpr std::uint32_t kSourcesPerRob = 0x10000;  // the FULL-mode builder numbers its groups from its own source id on

/// The first consumer of the list: counts the chunks of fragments, verifies one fragment in a thousand byte by byte (this
/// takes a thousandth of a building thread's time), and passes all fragments on to the product's own consumer.
class Counter final : public FragmentConsumer {
 public:
  Counter(std::span<const std::unique_ptr<PreparedInput>> inputs, std::size_t expected_chunks, std::size_t threads)
      : inputs_(inputs), expected_chunks_(expected_chunks), lanes_(threads) {}

  void insert(FragmentPtr fragment) override {
    Lane& lane = lanes_[lane_of_this_thread()];
    lane.add(Count::fragments);
    lane.add(Count::chunks, fragment->chunks);
    if (lane.read(Count::fragments) % kVerifyEvery == 1) [[unlikely]] {
      // Do not verify after the run: workers stop at once, so the open fragments are incomplete.
      if (running_.load(std::memory_order_relaxed)) verify(*fragment, lane);
    }
    next_->insert(std::move(fragment));
  }
  Status status() const override { return {}; }

  void end() { running_.store(false, std::memory_order_relaxed); }

  enum class Count : std::size_t { fragments, chunks, verified, mismatches, count };
  std::uint64_t read(Count what) const {
    std::uint64_t total = 0;
    for (const Lane& lane : lanes_) total += lane.read(what);
    return total;
  }

 private:
  using Lane = base::CounterBlock<Count>;  // counters of one thread

  void verify(Fragment& fragment, Lane& lane) const {
    const PreparedInput& input = *inputs_[(fragment.source_id.value - kFirstSource) / kSourcesPerRob];
    std::size_t chunks = 0;
    bool good = fragment.for_each_chunk([&](const ChunkHeader& header, std::span<std::byte> bytes) {
      ++chunks;
      if (header.felix_status != 0 || header.rodeo_status != 0 || !input.matches(bytes, header.link_id, fragment.l1id))
        lane.add(Count::mismatches);
    });
    if (!good || chunks != expected_chunks_) lane.add(Count::mismatches);
    lane.add(Count::verified);
  }

  std::size_t lane_of_this_thread() {
    thread_local const std::size_t lane = next_lane_.fetch_add(1) % lanes_.size();
    return lane;
  }

  const std::span<const std::unique_ptr<PreparedInput>> inputs_;
  const std::size_t expected_chunks_;
  std::atomic<std::size_t> next_lane_{0};
  std::atomic<bool> running_{true};
  std::vector<Lane> lanes_;
};

/// Keeps a number of fragments, like a handler with a farm that clears each event after the same time. So memory comes back
/// long after its last use.
class Keeper final : public FragmentConsumer {
 public:
  Keeper(std::uint64_t fragments, std::size_t threads) {
    for (std::size_t i = 0; i < threads && fragments > 0; ++i)
      lanes_.push_back(std::make_unique<Lane>((fragments + threads - 1) / threads));
  }

  void insert(FragmentPtr fragment) override {
    if (!lanes_.empty()) {
      Lane& lane = *lanes_[lane_of_this_thread()];
      std::swap(fragment, lane.kept[lane.next]);
      if (++lane.next == lane.kept.size()) {
        lane.next = 0;
        full_.store(true, std::memory_order_relaxed);
      }
      if (!fragment) return;
    }
    next_->insert(std::move(fragment));
  }
  Status status() const override { return {}; }

  /// True if at least one thread keeps the wanted number.
  bool full() const { return lanes_.empty() || full_.load(std::memory_order_relaxed); }
  void release_all() { lanes_.clear(); }

 private:
  struct alignas(base::kCacheLine) Lane {
    explicit Lane(std::size_t fragments) : kept(fragments) {}
    std::vector<FragmentPtr> kept;
    std::size_t next = 0;
  };

  std::size_t lane_of_this_thread() {
    thread_local const std::size_t lane = next_lane_.fetch_add(1) % lanes_.size();
    return lane;
  }

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<std::size_t> next_lane_{0};
  std::atomic<bool> full_{false};
};

[[gnu::noinline]] void read_plainly(std::span<const std::byte> piece) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + sizeof sums <= piece.size(); i += sizeof sums) {
    std::uint64_t words[8];
    std::memcpy(words, piece.data() + i, sizeof words);
    for (int k = 0; k < 8; ++k) sums[k] ^= words[k];
  }
  asm volatile("" : : "r"(sums[0] ^ sums[1] ^ sums[2] ^ sums[3] ^ sums[4] ^ sums[5] ^ sums[6] ^ sums[7]));
}

// The rate of the best of three passes over the prepared memory, piece by piece [bytes per second].
template <typename Work>
double best_pass(const PreparedInput& input, Work&& work) {
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const double before = base::thread_cpu_seconds();
    for (const auto memory : input.memory()) {
      for (std::size_t at = 0; at < memory.size(); at += kPiece)
        work(memory.subspan(at, std::min(kPiece, memory.size() - at)), at);
    }
    best = std::max(best, static_cast<double>(input.bytes()) / (base::thread_cpu_seconds() - before));
  }
  return best;
}

// Measures with prefetches as in the reading work, and without. The CPU's own prefetching decides which way is faster.
double read_ceiling(const PreparedInput& input) {
  const double asking = best_pass(input, [](std::span<const std::byte> piece, std::size_t) {
    const std::uint64_t sum = xor_of(piece);
    asm volatile("" : : "r"(sum));
  });
  return std::max(asking, best_pass(input, [](std::span<const std::byte> piece, std::size_t) { read_plainly(piece); }));
}

const ComponentInfo& info_of(const base::ComponentRegistry& registry, base::ComponentKind kind, std::string_view name) {
  const auto found = registry.find(kind, name);
  if (!found) throw SetupError(found.error());
  return (*found)->info;
}

}  // namespace

double copy_ceiling(const PreparedInput& input) {
  std::vector<std::byte> target(4 * kPiece);
  return best_pass(input, [&](std::span<const std::byte> piece, std::size_t at) {
    std::memcpy(target.data() + at % target.size(), piece.data(), piece.size());
    asm volatile("" : : "r"(target.data()) : "memory");
  });
}

Parameters parameters_of(const ComponentInfo& info) {
  Parameters parameters;
  for (const Key& key : info.keys) {
    if (!key.required) parameters.set(key.name, need(settings::default_value(key, key.name, "")));
  }
  return parameters;
}

BuildBenchResult run_build_bench(const BuildBenchSettings& settings, const base::ComponentRegistry& registry) {
  const bool full = settings.mode == "full";
  const std::uint32_t groups = full ? (settings.groups == 0 ? settings.links : settings.groups) : 0;
  if (full && settings.links % groups != 0)
    throw SetupError({"readout.bench", "the links do not divide evenly into groups"});
  BuildBenchResult result;
  if (settings.robs == 0) throw SetupError({"readout.bench", "the number of ROBs is 0"});
  std::vector<std::unique_ptr<PreparedInput>> inputs;
  for (std::uint32_t rob = 0; rob < settings.robs; ++rob) {
    inputs.push_back(std::make_unique<PreparedInput>(PreparedSettings{.links = settings.links,
                                                                      .groups = groups,
                                                                      .chunk_bytes = settings.chunk_bytes,
                                                                      .run_length = full ? 1 : settings.run_length,
                                                                      .blocks = settings.source == "blocks",
                                                                      .crc = settings.checker == "crc32",
                                                                      .seed = rob + 1}));
  }
  const PreparedInput& input = *inputs.front();

  Parameters consumer_parameters = parameters_of(info_of(registry, base::ComponentKind::consumer, "processor"));
  consumer_parameters.set("threads", std::int64_t{0});
  consumer_parameters.set("work", std::string(full ? "read" : "release"));
  const auto consumer = need(registry.make_consumer("processor", consumer_parameters));
  Counter counter(inputs, full ? 1 : settings.links, std::size_t{settings.robs} * settings.workers);
  Keeper keeper(settings.retained * settings.robs, std::size_t{settings.robs} * settings.workers);
  counter.link(&keeper);
  keeper.link(consumer.get());

  std::vector<BuilderLink> links;
  for (std::size_t i = 0; i < input.links().size(); ++i) {
    links.push_back({input.links()[i], input.links()[i].default_link_id(), input.group_of(i)});
  }
  Parameters extractor_parameters = parameters_of(info_of(registry, base::ComponentKind::extractor, settings.extractor));
  extractor_parameters.set("l1id_bits", static_cast<std::int64_t>(input.l1id_bits()));
  BuilderContext context{
      .source_id = SourceId{kFirstSource},
      .links = links,
      .input = inputs.front().get(),
      .consumer = &counter,
      .make_extractor = [&] { return need(registry.make_extractor(settings.extractor, extractor_parameters)); },
      .make_checker = {}};
  if (!settings.checker.empty()) {
    const Parameters checker_parameters = parameters_of(info_of(registry, base::ComponentKind::checker, settings.checker));
    context.make_checker = [&registry, &settings, checker_parameters] {
      return need(registry.make_checker(settings.checker, checker_parameters));
    };
  }
  Parameters builder_parameters = parameters_of(info_of(registry, base::ComponentKind::builder, settings.mode));
  builder_parameters.set("workers", static_cast<std::int64_t>(settings.workers));
  builder_parameters.set("window", static_cast<std::int64_t>(settings.window));
  if (!full) {
    builder_parameters.set("chunk_size", static_cast<std::int64_t>(settings.chunk_bytes));
    builder_parameters.set("buffers", static_cast<std::int64_t>(settings.window + settings.retained) + kSpareBuffers);
  }
  std::vector<std::unique_ptr<FragmentBuilder>> builders;
  // Hide the builders' warnings of narrow ids: the prepared pages have narrow ids on purpose.
  const base::LogLevel level = base::log_level();
  base::set_log_level(std::max(level, base::LogLevel::error));
  for (std::uint32_t rob = 0; rob < settings.robs; ++rob) {
    if (settings.pinned) {
      std::vector<std::uint64_t> cpus;
      for (std::uint32_t i = 0; i < settings.workers; ++i) {
        cpus.push_back((rob * settings.workers + i) % std::max(1U, std::thread::hardware_concurrency()));
      }
      builder_parameters.set("cpus", cpus);
    }
    context.source_id = SourceId{kFirstSource + rob * kSourcesPerRob};
    context.input = inputs[rob].get();
    builders.push_back(need(registry.make_builder(settings.mode, builder_parameters, context)));
  }
  base::set_log_level(level);
  result.copy_ceiling_bytes_per_second = copy_ceiling(input);
  result.read_ceiling_bytes_per_second = read_ceiling(input);

  const auto status = [&builders] {
    FragmentBuilder::Status sum;
    for (const auto& builder : builders) {
      const FragmentBuilder::Status one = builder->status();
      sum.incomplete += one.incomplete;
      sum.chunks_received += one.chunks_received;
      sum.chunks_built += one.chunks_built;
      sum.window_events = one.window_events;
      sum.lost.insert(sum.lost.end(), one.lost.begin(), one.lost.end());
    }
    return sum;
  };
  const auto lost_of = [](const FragmentBuilder::Status& totals) {
    std::uint64_t sum = 0;
    for (const NamedCounter& lost : totals.lost) sum += lost.value;
    return sum;
  };
  const auto sleep = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
  consumer->start();
  for (const auto& builder : builders) builder->start();
  sleep(kWarmUpSeconds);
  for (int i = 0; i < 6000 && !keeper.full(); ++i) sleep(0.01);
  const std::uint64_t chunks_before = counter.read(Counter::Count::chunks);
  const std::uint64_t fragments_before = counter.read(Counter::Count::fragments);
  const double cpu_before = base::process_cpu_seconds();
  const std::uint64_t start = base::steady_now_ns();
  sleep(settings.seconds);
  // A busy machine may have left the workers no time: continue the measurement until they have data.
  for (int i = 0; i < 1000 && counter.read(Counter::Count::chunks) == chunks_before; ++i) sleep(0.01);
  result.cpu_seconds = base::process_cpu_seconds() - cpu_before;
  result.seconds = static_cast<double>(base::steady_now_ns() - start) * 1e-9;
  result.chunks = counter.read(Counter::Count::chunks) - chunks_before;
  result.fragments = counter.read(Counter::Count::fragments) - fragments_before;
  const FragmentBuilder::Status running = status();
  counter.end();
  for (const auto& each : inputs) each->stop();
  for (const auto& builder : builders) builder->join();
  keeper.release_all();
  consumer->stop();

  const FragmentBuilder::Status ended = status();
  result.payload_bytes = result.chunks * settings.chunk_bytes;
  for (const auto& each : inputs) result.input_bytes += each->bytes();
  result.window_events = running.window_events;
  result.incomplete = running.incomplete;
  result.lost = lost_of(running);
  result.unaccounted = ended.chunks_received - ended.chunks_built - lost_of(ended);
  result.verified_fragments = counter.read(Counter::Count::verified);
  result.mismatches = counter.read(Counter::Count::mismatches);
  return result;
}

Error not_proven(std::uint64_t mismatches, std::uint64_t incomplete, std::uint64_t lost) {
  return {"readout.bench_mismatch",
          fmt::format("the data of a benchmark's run are wrong: mismatches {}, fragments incomplete {}, chunks lost {}",
                      mismatches, incomplete, lost)};
}

BuildBenchResult run_proven_build_bench(const BuildBenchSettings& settings, const base::ComponentRegistry& registry) {
  BuildBenchResult result = run_build_bench(settings, registry);
  if (!result.proven()) throw SetupError(not_proven(result.mismatches, result.incomplete, result.lost + result.unaccounted));
  return result;
}

}  // namespace rodeo::bench
