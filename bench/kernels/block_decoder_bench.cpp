// The cost per chunk of decoding FELIX blocks, compared with plain reading and plain copying of the same memory.
//
// The input is 96 MiB of prepared blocks, links interleaved block by block with random phase, in a cycle of pages, so that
// the cache contents are those of a readout.
#include <benchmark/benchmark.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "base/arena.h"
#include "formats/block_decoder.h"
#include "formats/block_encoder.h"

namespace {

using namespace rodeo::formats;

constexpr std::size_t kMemoryBytes = 96 << 20;
constexpr std::size_t kPageBytes = 64 << 10;

struct Recording {
  BlockFormat format;
  std::vector<std::uint16_t> elinks;
  rodeo::base::Arena arena;  // on the largest pages of the host, like a readout's memory
  std::span<std::byte> memory;
};

/// Sizes are drawn from 20 to 60 bytes if chunk_bytes is 0.
std::unique_ptr<Recording> make(BlockFormat format, std::size_t links, std::size_t chunk_bytes) {
  std::mt19937 random(1);
  auto recording = std::make_unique<Recording>();
  recording->format = format;
  // A whole number of cycles of sequence numbers, so that a new cycle has no gap.
  const std::size_t round_bytes = links * 32 * format.block_bytes;
  const std::size_t bytes = (kMemoryBytes + round_bytes - 1) / round_bytes * round_bytes;
  recording->arena = rodeo::base::Arena::create(bytes).value();
  recording->memory = {recording->arena.data(), bytes};
  std::vector<BlockEncoder> encoders;
  std::vector<std::span<const std::byte>> rests(links);
  std::vector<std::byte> payload(1 << 16, std::byte{0x5a});
  for (std::size_t i = 0; i < links; ++i) {
    recording->elinks.push_back(static_cast<std::uint16_t>(i));
    encoders.emplace_back(format, static_cast<std::uint16_t>(i));
    // Random phase: the first chunk of a link is incomplete.
    const std::size_t size = chunk_bytes != 0 ? chunk_bytes : 40;
    rests[i] = std::span{payload}.first(1 + random() % size);
  }
  const std::size_t blocks = recording->memory.size() / format.block_bytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    BlockEncoder& encoder = encoders[b % links];
    auto& rest = rests[b % links];
    encoder.begin(recording->memory.subspan(b * format.block_bytes, format.block_bytes));
    while (encoder.push(rest)) rest = std::span{payload}.first(chunk_bytes != 0 ? chunk_bytes : 20 + random() % 41);
  }
  return recording;
}

const Recording& recording(BlockFormat format, std::size_t links, std::size_t chunk_bytes) {
  static std::unique_ptr<Recording> last;
  static std::tuple<std::uint16_t, std::size_t, std::size_t> key;
  const std::tuple wanted{format.marker(), links, chunk_bytes};
  if (!last || key != wanted) {
    last.reset();
    last = make(format, links, chunk_bytes);
    key = wanted;
  }
  return *last;
}

void report(benchmark::State& state, double chunks) {
  state.counters["chunks"] = benchmark::Counter(chunks, benchmark::Counter::kIsRate);
  state.counters["per_chunk"] = benchmark::Counter(chunks, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// ranges: family (16, 32, or block KiB of a Phase-2 format as negative number), links, chunk bytes
BlockFormat format_of(std::int64_t family) {
  if (family == 16) return {BlockFamily::trailer16, 1024};
  if (family == 32) return {BlockFamily::trailer32, 1024};
  return {BlockFamily::phase2, static_cast<std::uint32_t>(-family) * 1024};
}

/// Works on the pages in a cycle; returns the number of bytes.
template <typename Work>
double cycle(benchmark::State& state, const Recording& input, const Work& work) {
  std::size_t at = 0;
  for (auto _ : state) {
    work(input.memory.subspan(at, kPageBytes));
    at = at + 2 * kPageBytes > input.memory.size() ? 0 : at + kPageBytes;
  }
  return static_cast<double>(state.iterations()) * kPageBytes;
}

/// Decodes the blocks of these links, and passes the runs to `use`.
template <typename Use>
void cycle_decoded(benchmark::State& state, const Recording& input, const std::vector<std::uint16_t>& elinks,
                   const Use& use) {
  BlockDecoder decoder({input.format}, elinks);
  DecodeBuffer out(decoder.capacity_for(kPageBytes / input.format.block_bytes));
  cycle(state, input, [&](std::span<const std::byte> page) {
    out.clear();
    decoder.decode(page, out);
    use(out.runs());
  });
  report(state, static_cast<double>(decoder.counters().read(BlockCounter::chunks)));
  state.counters["gaps"] = static_cast<double>(decoder.counters().read(BlockCounter::sequence_gaps));
}

const Recording& recording_of(const benchmark::State& state) {
  return recording(format_of(state.range(0)), static_cast<std::size_t>(state.range(1)),
                   static_cast<std::size_t>(state.range(2)));
}

void nothing_more(std::span<const rodeo::ChunkRun> runs) { benchmark::DoNotOptimize(runs.data()); }

void decode(benchmark::State& state) {
  const Recording& input = recording_of(state);
  cycle_decoded(state, input, input.elinks, nothing_more);
}

/// The decoder, then a read of the first eight bytes of every chunk, as in a trigger extraction.
void decode_and_extract(benchmark::State& state) {
  const Recording& input = recording_of(state);
  std::uint64_t sum = 0;
  cycle_decoded(state, input, input.elinks, [&](std::span<const rodeo::ChunkRun> runs) {
    for (const rodeo::ChunkRun& run : runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto chunk = run.chunk(i);
        std::uint64_t word = 0;
        if (chunk.size() >= 8) std::memcpy(&word, chunk.data(), 8);
        sum += word;
      }
    }
  });
  benchmark::DoNotOptimize(sum);
}

/// Measures one of `share` workers on a stream with the links of all workers: it skips the blocks of the others, and counts
/// its own chunks.
void decode_share(benchmark::State& state) {
  const Recording& input = recording(format_of(16), 192, 40);
  const std::size_t own = input.elinks.size() / static_cast<std::size_t>(state.range(0));
  cycle_decoded(state, input, {input.elinks.begin(), input.elinks.begin() + static_cast<std::ptrdiff_t>(own)}, nothing_more);
}

/// Ceilings, counted in 40-byte chunks of 16-bit blocks, for comparison with the first figure.
template <typename Work>
void cycle_plainly(benchmark::State& state, const Work& work) {
  constexpr double kChunksPerByte = 1020.0 / 42 / 1024;
  const double bytes = cycle(state, recording(format_of(16), 192, 40), work);
  report(state, bytes * kChunksPerByte);
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

void read_ceiling(benchmark::State& state) {
  std::uint64_t sum = 0;
  cycle_plainly(state, [&](std::span<const std::byte> page) {
    for (std::size_t i = 0; i < kPageBytes; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, page.data() + i, 8);
      sum += word;
    }
  });
  benchmark::DoNotOptimize(sum);
}

void copy_ceiling(benchmark::State& state) {
  std::vector<std::byte> target(kPageBytes);
  cycle_plainly(state, [&](std::span<const std::byte> page) {
    std::memcpy(target.data(), page.data(), kPageBytes);
    benchmark::ClobberMemory();
  });
}

BENCHMARK(read_ceiling);
BENCHMARK(copy_ceiling);
BENCHMARK(decode)
    ->ArgNames({"family", "links", "bytes"})
    ->Args({16, 192, 40})
    ->Args({16, 1152, 40})
    ->Args({16, 192, 0})
    ->Args({32, 192, 40})
    ->Args({32, 192, 0})
    ->Args({-4, 192, 40})
    ->Args({-16, 192, 40})
    ->Args({-64, 192, 40})
    ->Args({-4, 24, 5000})
    ->Args({32, 24, 5000});
BENCHMARK(decode_share)->ArgName("share")->Arg(1)->Arg(2)->Arg(4)->Arg(8);
BENCHMARK(decode_and_extract)
    ->ArgNames({"family", "links", "bytes"})
    ->Args({16, 192, 40})
    ->Args({32, 192, 40})
    ->Args({16, 192, 0});

}  // namespace
