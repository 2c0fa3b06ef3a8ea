// Ablation: the slot of an event by mask or by modulo (slides, "Data receiving thread optimization example": 10 % of the
// whole). Each iteration appends a run of 24 chunks of 40 bytes to 24 open events, with headers and accounting, as the
// builder's kernel does. Ceiling: plain copying of the same bytes.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "formats/rod_data.h"
#include "readout/builder/append_kernel.h"

namespace rodeo::readout {
namespace {

constexpr std::uint32_t kLinks = 192;
constexpr std::uint32_t kRun = 24;
constexpr std::uint32_t kChunk = 40;
constexpr std::size_t kWindow = 16384;
// This is not a multiple of a page: events must not share cache sets.
constexpr std::size_t kSlice = kLinks * formats::short_record_bytes(kChunk) + 192;
constexpr std::size_t kInput = 4 << 20;  // stays in the last-level cache, so that the index dominates

/// The ring, and slices for twice as many events as are open at once; links of an event arrive one after the other.
class Ring {
 public:
  Ring() : slots_(kWindow), slices_(2 * kRun * kSlice), input_(kInput), bcids_(kRun) {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = static_cast<std::byte>(i * 131 >> 3);
  }

  /// The run of the next link; after the last link, opens the next 24 events and returns the run of their first link.
  AppendRun next() {
    if (link_ == kLinks) {
      link_ = 0;
      first_ += kRun;
    }
    if (link_ == 0) {
      for (std::uint32_t i = 0; i < kRun; ++i) {
        EventSlot& slot = slots_[(first_ + i) & (kWindow - 1)];
        slot.write = slices_.data() + (first_ + i) % (2 * kRun) * kSlice;
        slot.end = slot.write + kLinks * formats::short_record_bytes(kChunk);
        slot.remaining = kLinks;
      }
    }
    const AppendRun run{.data = input_.data() + 64 + at_,
                        .size = kChunk,
                        .stride = kChunk,
                        .count = kRun,
                        .header = link_ * 0x1'0000'0000ULL + formats::short_record_bytes(kChunk),
                        .bcids = bcids_.data(),
                        .first = first_};
    at_ += kRun * kChunk;
    if (at_ + kRun * kChunk + 128 > kInput) at_ = 0;
    ++link_;
    return run;
  }
  EventSlot* slots() { return slots_.data(); }

 private:
  std::vector<EventSlot> slots_;
  std::vector<std::byte> slices_;
  std::vector<std::byte> input_;
  std::vector<std::uint16_t> bcids_;
  std::size_t at_ = 0;
  std::uint64_t first_ = 0;
  std::uint32_t link_ = 0;
};

struct Mask {
  std::size_t size;
  std::size_t operator()(std::uint64_t sequence) const { return sequence & (size - 1); }
};
struct Modulo32 {
  std::size_t size;
  std::size_t operator()(std::uint64_t sequence) const {
    return static_cast<std::uint32_t>(sequence) % static_cast<std::uint32_t>(size);
  }
};
struct Modulo64 {
  std::size_t size;
  std::size_t operator()(std::uint64_t sequence) const { return sequence % size; }
};

// The builder's portable kernel, with the index as a parameter.
template <typename Index>
__attribute__((noinline)) std::uint32_t append(EventSlot* ring, Index index, const AppendRun& run) {
  constexpr std::uint32_t kRecord = formats::short_record_bytes(kChunk);
  const std::byte* source = run.data;
  for (std::uint32_t i = 0; i < run.count; ++i, source += run.stride) {
    EventSlot& slot = ring[index(run.first + i)];
    std::byte* out = slot.write;
    if (static_cast<std::size_t>(slot.end - out) < kRecord) return i;
    std::memcpy(out, &run.header, 8);
    std::memcpy(out + 8, source, kChunk);
    slot.write = out + kRecord;
    slot.remaining -= 1;
    slot.bcid_difference = static_cast<std::uint16_t>(slot.bcid_difference | (slot.bcid ^ run.bcids[i]));
  }
  return run.count;
}

template <typename Append>
void measure(benchmark::State& state, Append&& append_run) {
  Ring ring;
  std::uint64_t appended = 0;
  for (auto _ : state) appended += append_run(ring.slots(), ring.next());
  if (appended != static_cast<std::uint64_t>(state.iterations()) * kRun) state.SkipWithError("chunks did not fit");
  state.SetItemsProcessed(static_cast<std::int64_t>(appended));
  state.SetLabel("chunks");
}

template <typename Index>
void ring_index(benchmark::State& state) {
  std::size_t size = kWindow;
  benchmark::DoNotOptimize(size);  // hides the value from the compiler: it stands for a setting
  measure(state, [index = Index{size}](EventSlot* slots, const AppendRun& run) { return append(slots, index, run); });
}

void ring_index_ours(benchmark::State& state) {
  const AppendKernel kernel = append_kernel(kChunk, base::cpu_level());
  measure(state, [kernel](EventSlot* slots, const AppendRun& run) { return kernel(slots, kWindow - 1, run); });
}

void ring_index_ceiling(benchmark::State& state) {
  std::vector<std::byte> target(kRun * kChunk);
  measure(state, [&](EventSlot*, const AppendRun& run) {
    std::memcpy(target.data(), run.data, target.size());
    benchmark::ClobberMemory();
    return kRun;
  });
}

BENCHMARK(ring_index<Modulo32>)->Name("ring_index/modulo32");
BENCHMARK(ring_index<Modulo64>)->Name("ring_index/modulo64");
BENCHMARK(ring_index<Mask>)->Name("ring_index/mask");
BENCHMARK(ring_index_ours)->Name("ring_index/ours");
BENCHMARK(ring_index_ceiling)->Name("ring_index/ceiling");

}  // namespace
}  // namespace rodeo::readout
