// The generator's cost per chunk, with pages handed over and given back at once.
#include <benchmark/benchmark.h>

#include <numeric>

#include "input/generator.h"

namespace {

using namespace rodeo;
using namespace rodeo::input;

void generate(benchmark::State& state, GeneratorSettings settings) {
  settings.rate_hz = GeneratorSettings::kUnlimited;
  settings.complete();
  const std::size_t links = settings.links.size();
  Generator generator(std::move(settings));
  std::vector<LinkIndex> all(links);
  std::iota(all.begin(), all.end(), LinkIndex{0});
  PagedStream& stream = generator.add_stream(all);
  std::uint64_t now = 1'000'000;
  generator.start(now);
  for (auto _ : state) {
    generator.advance(now += 100'000);
    Page* page = nullptr;
    while (stream.poll(page) == PollStatus::page) page->drop();
  }
  const StreamCounters made = stream.counters();
  state.SetItemsProcessed(static_cast<std::int64_t>(made.chunks));
  state.SetBytesProcessed(static_cast<std::int64_t>(made.bytes));
}

void gbt(benchmark::State& state) {
  GeneratorSettings s;
  s.links = generated_fids(static_cast<std::size_t>(state.range(0)), 0, 0, false);
  generate(state, s);
}
BENCHMARK(gbt)->Arg(24)->Arg(192)->Arg(1152);

void gbt_with_faults(benchmark::State& state) {
  GeneratorSettings s;
  s.links = generated_fids(192, 0, 0, false);
  s.faults.missing = s.faults.corrupt = s.faults.late = 1e-5;
  generate(state, s);
}
BENCHMARK(gbt_with_faults);

void gbt_with_crc(benchmark::State& state) {
  GeneratorSettings s;
  s.links = generated_fids(192, 0, 0, false);
  s.crc = true;
  generate(state, s);
}
BENCHMARK(gbt_with_crc);

void full(benchmark::State& state) {
  GeneratorSettings s;
  s.links = generated_fids(24, 0, 0, true);
  s.chunk_bytes = 5000;
  generate(state, s);
}
BENCHMARK(full);

}  // namespace
