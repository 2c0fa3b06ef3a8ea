// Ablation: where a slice's memory comes from (paper, section IX.E and Figure 6a: new and delete against blocks kept in a
// tbb::concurrent_queue, which gained "almost 50 %"); the third variant is Rodeo's pool. Each thread builds slices of 48
// links with the builder's own kernel, 24 events at a time, and gives them to another thread (itself, if alone), which
// releases them later, as a consumer does. Argument: bytes of a chunk. Ceiling: the same buffers always, without a
// hand-over.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <tbb/concurrent_queue.h>

#include "base/cpu.h"
#include "base/spsc_ring.h"
#include "formats/rod_data.h"
#include "readout/builder/append_kernel.h"
#include "readout/builder/slice_store.h"

namespace rodeo::readout {
namespace {

constexpr std::uint32_t kLinks = 48;
constexpr std::uint32_t kRun = 24;          // events that are open at once
constexpr std::size_t kHeld = 512;          // events that a consumer holds before it releases the oldest
constexpr std::size_t kBlocks = 4 * kHeld;  // blocks of each thread
constexpr std::size_t kMostThreads = 8;
constexpr std::size_t kInput = 4 << 20;

/// A thread's part of one event. new and delete allocate its descriptor, too.
struct Block {
  std::byte* data = nullptr;
  std::uint32_t used = 0;
};

class NewDelete {
 public:
  using Handle = Block*;
  NewDelete(std::size_t bytes, int) : bytes_(bytes) {}
  void own(int) {}
  Handle take(int) { return new Block{new std::byte[bytes_]}; }
  static std::byte* data(Handle block) { return block->data; }
  void give(Handle block) {
    delete[] block->data;
    delete block;
  }

 private:
  const std::size_t bytes_;
};

class TbbQueue {
 public:
  using Handle = Block*;
  TbbQueue(std::size_t bytes, int threads)
      : memory_(static_cast<std::size_t>(threads) * kBlocks * bytes), blocks_(static_cast<std::size_t>(threads) * kBlocks) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].data = memory_.data() + i * bytes;
      free_.push(&blocks_[i]);
    }
  }
  void own(int) {}
  Handle take(int) {
    Handle block = nullptr;
    return free_.try_pop(block) ? block : nullptr;
  }
  static std::byte* data(Handle block) { return block->data; }
  void give(Handle block) { free_.push(block); }

 private:
  std::vector<std::byte> memory_;
  std::vector<Block> blocks_;
  tbb::concurrent_queue<Handle> free_;
};

/// Rodeo's choice: SliceStore with its RecyclePool, one for each thread.
class Pools {
 public:
  using Handle = Slice*;
  Pools(std::size_t bytes, int threads) {
    for (int thread = 0; thread < threads; ++thread) {
      auto made = SliceStore::create({.buffer_bytes = bytes - kStoreSlack, .buffers = kBlocks, .max_extensions = 0});
      if (made) stores_[thread] = std::move(*made);
    }
  }
  void own(int thread) { stores_[thread]->pool().own(); }
  Handle take(int thread) { return stores_[thread]->pool().acquire(); }
  static std::byte* data(Handle slice) { return slice->data; }
  void give(Handle slice) { give_back(slice); }

 private:
  std::array<std::unique_ptr<SliceStore>, kMostThreads> stores_;
};

/// The ceiling: each thread's blocks in turn, without a check that they are free.
class Cycle {
 public:
  using Handle = std::byte*;
  Cycle(std::size_t bytes, int threads) : bytes_(bytes), memory_(static_cast<std::size_t>(threads) * 2 * kRun * bytes) {}
  void own(int) {}
  Handle take(int thread) {
    std::size_t& at = at_[thread][0];
    at = at + 1 == 2 * kRun ? 0 : at + 1;
    return memory_.data() + (static_cast<std::size_t>(thread) * 2 * kRun + at) * bytes_;
  }
  static std::byte* data(Handle block) { return block; }
  void give(Handle) {}

 private:
  const std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::array<std::array<std::size_t, 8>, kMostThreads> at_{};  // a cache line for each thread
};

template <typename Memory>
struct Shared {
  std::unique_ptr<Memory> memory;
  /// Ring i goes from thread i to the next one.
  std::array<std::unique_ptr<base::SpscRing<typename Memory::Handle>>, kMostThreads> built;
  std::atomic<int> finished{0};
};
template <typename Memory>
Shared<Memory>& shared() {
  static Shared<Memory> one;
  return one;
}

std::size_t slice_bytes(std::uint32_t chunk) {
  return (kLinks * formats::short_record_bytes(chunk) + kStoreSlack + 63) / 64 * 64 + 64;
}

template <typename Memory>
void set_up(const benchmark::State& state) {
  Shared<Memory>& all = shared<Memory>();
  all.memory = std::make_unique<Memory>(slice_bytes(static_cast<std::uint32_t>(state.range(0))), state.threads());
  for (auto& ring : all.built) ring = std::make_unique<base::SpscRing<typename Memory::Handle>>(2 * kHeld);
  all.finished = 0;
}

template <typename Memory>
void tear_down(const benchmark::State&) {
  shared<Memory>().memory.reset();
}

template <typename Memory>
void slice_memory(benchmark::State& state) {
  using Handle = typename Memory::Handle;
  Shared<Memory>& all = shared<Memory>();
  const int thread = state.thread_index();
  const int threads = state.threads();
  const auto chunk = static_cast<std::uint32_t>(state.range(0));
  const AppendKernel kernel = append_kernel(chunk, base::cpu_level());
  std::vector<std::byte> input(kInput);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i * 131 >> 3);
  const std::vector<std::uint16_t> bcids(kRun);
  std::vector<EventSlot> ring(64);
  std::array<Handle, kRun> open{};
  auto& outgoing = *all.built[thread];
  auto& incoming = *all.built[(thread + threads - 1) % threads];
  // Like a consumer: holds up to kHeld events, then releases the oldest.
  const auto consume = [&](std::size_t keep) {
    Handle handle;
    while (incoming.size() > keep && incoming.try_pop(handle)) all.memory->give(handle);
  };
  std::size_t at = 0;
  std::uint64_t first = 0;
  std::uint64_t appended = 0;
  benchmark::IterationCount left = state.max_iterations;
  all.memory->own(thread);

  for (auto _ : state) {
    for (std::uint32_t i = 0; i < kRun; ++i) {
      while ((open[i] = all.memory->take(thread)) == Handle{}) {
        consume(0);
        std::this_thread::yield();
      }
      EventSlot& slot = ring[(first + i) % ring.size()];
      slot.write = Memory::data(open[i]);
      slot.end = slot.write + kLinks * formats::short_record_bytes(chunk);
      slot.remaining = kLinks;
    }
    for (std::uint32_t link = 0; link < kLinks; ++link) {
      const AppendRun run{.data = input.data() + 64 + at,
                          .size = chunk,
                          .stride = chunk,
                          .count = kRun,
                          .header = link * 0x1'0000'0000ULL + formats::short_record_bytes(chunk),
                          .bcids = bcids.data(),
                          .first = first};
      appended += kernel(ring.data(), ring.size() - 1, run);
      at += kRun * chunk;
      if (at + kRun * chunk + 128 > kInput) at = 0;
    }
    first += kRun;
    for (Handle& handle : open) {
      // try_push() does not move the handle if the ring is full. NOLINTNEXTLINE(bugprone-use-after-move)
      while (!outgoing.try_push(std::move(handle))) {
        consume(kHeld);
        if (all.finished.load(std::memory_order_relaxed) != 0) {  // the receiver has ended
          all.memory->give(handle);
          break;
        }
        std::this_thread::yield();
      }
    }
    consume(kHeld);
    if (--left == 0) all.finished.fetch_add(1, std::memory_order_relaxed);
  }
  // All threads have left their loops.
  if (thread == 0) {
    for (auto& rest : all.built) {
      Handle handle;
      while (rest->try_pop(handle)) all.memory->give(handle);
    }
  }
  const auto events = static_cast<std::uint64_t>(state.iterations()) * kRun;
  if (appended != events * kLinks) state.SkipWithError("chunks did not fit");
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
  state.SetLabel("slices of 48 links");
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("chunk_bytes")->Arg(40)->Arg(80)->Arg(120)->Arg(160)->Arg(200)->Arg(240)->Threads(1)->Threads(2);
}

template <typename Memory>
void add(const char* name) {
  benchmark::RegisterBenchmark(name, &slice_memory<Memory>)
      ->Apply(sizes)
      ->Setup(&set_up<Memory>)
      ->Teardown(&tear_down<Memory>);
}

const bool added = [] {
  add<NewDelete>("slice_memory/new_delete");
  add<TbbQueue>("slice_memory/tbb_queue");
  add<Pools>("slice_memory/ours");
  add<Cycle>("slice_memory/ceiling");
  return true;
}();

}  // namespace
}  // namespace rodeo::readout
