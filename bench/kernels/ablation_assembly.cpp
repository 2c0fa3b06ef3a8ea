// Ablation: how the workers' slices of an event find each other (slides: a tbb::concurrent_hash_map keyed by L1 id; ours: a
// ring of half-assembled events, Assembler). Each of two workers passes a slice of every event, as after 96 links of 40
// bytes. The last worker of an event builds the fragment and pushes it to a consumer that releases it. All variants use the
// product's building, fragments and slices. Ceiling: workers without exchange, each with both slices of half of the events.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <tbb/concurrent_hash_map.h>

#include "readout/builder/assembler.h"
#include "readout/extractor/field_extractor.h"

namespace rodeo::readout {
namespace {

constexpr int kWorkers = 2;
constexpr std::uint64_t kWindow = 16384;
constexpr std::uint32_t kLinks = 96;
constexpr std::size_t kSlices = kWindow + kWindow / 4;

/// Releases fragments, and counts them and their chunks.
class Releasing final : public FragmentConsumer {
 public:
  void insert(FragmentPtr fragment) override {
    Count& count = counts_[lane()];
    ++count.fragments;
    count.chunks += fragment->chunks;
  }
  Status status() const override { return {}; }
  std::uint64_t fragments() const { return counts_[0].fragments + counts_[1].fragments; }
  std::uint64_t chunks() const { return counts_[0].chunks + counts_[1].chunks; }

  static int& lane() {
    thread_local int lane = 0;
    return lane;
  }

 private:
  struct alignas(64) Count {
    std::uint64_t fragments = 0;
    std::uint64_t chunks = 0;
  };
  std::array<Count, kWorkers> counts_;
};

/// The common part of all variants: the workers' slices and the consumer.
class Common {
 public:
  Common() {
    for (auto& store : stores_) {
      auto made = SliceStore::create({.buffer_bytes = 64, .buffers = kSlices, .max_extensions = 0});
      if (made) store = std::move(*made);
    }
  }
  void own(int worker) {
    stores_[worker]->pool().own();
    Releasing::lane() = worker;
  }
  WorkerPart part(int worker, Sequence sequence) {
    Slice* slice;
    while ((slice = stores_[worker]->pool().acquire()) == nullptr) std::this_thread::yield();
    slice->extension = nullptr;
    slice->used = kLinks * 48;
    WorkerPart part;
    part.slice = slice;
    part.chunks = kLinks;
    part.l1id = L1Id{static_cast<std::uint32_t>(sequence)};
    return part;
  }
  Releasing consumer;

 private:
  std::array<std::unique_ptr<SliceStore>, kWorkers> stores_;
};

Assembler::Settings assembler_settings(std::uint32_t workers) {
  return {.source_id = SourceId{1},
          .link_ids = std::vector<std::uint32_t>(kWorkers * kLinks),
          .workers = workers,
          .window = kWindow,
          .parts_per_slice = 2,
          .fragments_per_worker = kSlices};
}

constexpr Sequence kRunLength = 24;

class Ours : public Common {
 public:
  Ours() : assembler_(assembler_settings(kWorkers), rob_, make_ttc_extractor(), consumer) { assembler_.start(1); }
  void own(int worker) {
    Common::own(worker);
    assembler_.own(static_cast<std::uint32_t>(worker));
  }
  void pass(int worker, Sequence sequence) {
    const auto index = static_cast<std::uint32_t>(worker);
    ++sequence;  // numbers begin above zero
    while (!assembler_.ready(sequence)) {
      assembler_.publish(index, sequence - 1, held_);
      std::this_thread::yield();
    }
    assembler_.pass(index, sequence, part(worker, sequence), {}, held_);
    if (sequence % kRunLength == 0 || sequence == events)
      assembler_.publish(index, sequence, held_);  // this is done once for a run of chunks, which completes many events
  }

  Sequence events = 0;  // events of this run

 private:
  RobSequence rob_{Sequencer::Settings{}, nullptr};  // it is not used, because no number is skipped
  Assembler assembler_;
  std::atomic<bool> held_{false};
};

/// Each worker builds fragments by itself, from chained slices.
class Alone : public Common {
 public:
  Alone() {
    for (auto& assembler : assemblers_)
      assembler = std::make_unique<Assembler>(assembler_settings(1), rob_, make_ttc_extractor(), consumer);
  }
  void own(int worker) {
    Common::own(worker);
    assemblers_[worker]->own(0);
  }
  void build(int worker, WorkerPart part, const WorkerPart& other) {
    part.slice->extension = other.slice;
    part.chunks = static_cast<std::uint16_t>(part.chunks + other.chunks);
    assemblers_[worker]->pass(0, ++passed_[worker], part, {}, held_);  // the other worker has skipped no numbers
  }
  void pass(int worker, Sequence sequence) {
    if (static_cast<int>(sequence % kWorkers) == worker) build(worker, part(worker, sequence), part(worker, sequence));
  }

 private:
  RobSequence rob_{Sequencer::Settings{}, nullptr};
  std::array<std::unique_ptr<Assembler>, kWorkers> assemblers_;
  std::array<Sequence, kWorkers> passed_{};
  std::atomic<bool> held_{false};
};

class HashMap : public Alone {
 public:
  void pass(int worker, Sequence sequence) {
    const WorkerPart mine = part(worker, sequence);
    WorkerPart other;
    {
      Map::accessor entry;
      if (map_.insert(entry, sequence)) {
        entry->second = mine;
        return;
      }
      other = entry->second;
      map_.erase(entry);
    }
    build(worker, mine, other);
  }

 private:
  using Map = tbb::concurrent_hash_map<Sequence, WorkerPart>;
  Map map_;
};

template <typename Assembly>
std::unique_ptr<Assembly>& shared() {
  static std::unique_ptr<Assembly> one;
  return one;
}
template <typename Assembly>
void set_up(const benchmark::State&) {
  shared<Assembly>() = std::make_unique<Assembly>();
}
template <typename Assembly>
void tear_down(const benchmark::State&) {
  shared<Assembly>().reset();
}

template <typename Assembly>
void assembly(benchmark::State& state) {
  Assembly& all = *shared<Assembly>();
  const int worker = state.thread_index();
  all.own(worker);
  if (worker == 0)
    if constexpr (requires { all.events; }) all.events = static_cast<Sequence>(state.max_iterations);
  Sequence sequence = 0;
  for (auto _ : state) all.pass(worker, sequence++);
  if (worker == 0) {  // all workers have passed all events
    const auto events = static_cast<std::uint64_t>(state.iterations());
    if (all.consumer.fragments() != events || all.consumer.chunks() != events * kLinks * kWorkers)
      state.SkipWithError("events were lost");
    state.SetItemsProcessed(state.iterations());
  }
  state.SetLabel("events of two slices");
}

template <typename Assembly>
void add(const char* name) {
  benchmark::RegisterBenchmark(name, &assembly<Assembly>)
      ->Threads(kWorkers)
      ->Setup(&set_up<Assembly>)
      ->Teardown(&tear_down<Assembly>);
}

const bool added = [] {
  add<HashMap>("assembly/tbb_hash_map");
  add<Ours>("assembly/ours");
  add<Alone>("assembly/ceiling");
  return true;
}();

}  // namespace
}  // namespace rodeo::readout
