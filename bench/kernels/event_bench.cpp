// The cost of an event in the file writer and the verifier: framing with and without checksum, the digest of the file,
// decoding and proof. Fragments have 192 chunks of 40 bytes, from 96 MiB of memory in a cycle.
#include <benchmark/benchmark.h>

#include <vector>

#include "formats/checksum.h"
#include "formats/event_check.h"
#include "formats/event_frame.h"
#include "formats/file_marks.h"
#include "formats/provable.h"
#include "formats/rod_data.h"
#include "storage/file_verify.h"

namespace {

using namespace rodeo::formats;
using rodeo::Fragment;
using rodeo::FragmentPart;
using rodeo::L1Id;

constexpr std::uint32_t kLinks = 192;
constexpr std::uint32_t kChunkBytes = 40;
constexpr std::size_t kMemoryBytes = 96 << 20;
constexpr std::uint64_t kSeed = 7;

/// Fragments, and the same data in whole events.
struct Events {
  explicit Events(ChecksumType checksum) : frame({.run_number = 1, .event_checksum = checksum}) {
    const Provable provable(kSeed);
    for (std::uint32_t number = 0; data.size() * kLinks * (kChunkBytes + 8) < kMemoryBytes; ++number) {
      const L1Id l1id = L1Id::of(0, number);
      std::vector<std::byte>& bytes = data.emplace_back();
      for (std::uint32_t link = 0; link < kLinks; ++link) {
        std::vector<std::byte> chunk(kChunkBytes);
        provable.write(chunk, link, l1id);
        append_chunk_record(bytes, {.link_id = link}, chunk);
      }
    }
  }

  void store(std::size_t i) {
    const Provable provable(kSeed);
    FragmentPart part{data[i].data(), data[i].size()};
    Fragment fragment;
    fragment.l1id = L1Id::of(0, static_cast<std::uint32_t>(i));
    fragment.bcid = provable.trigger(fragment.l1id).bcid;
    fragment.trigger_type = provable.trigger(fragment.l1id).trigger_type;
    fragment.parts = &part;
    fragment.part_count = 1;
    frame.store(fragment, {}, ends);
  }

  std::vector<std::byte> event(std::size_t i) {
    store(i);
    std::vector<std::byte> out = ends.head;
    append_bytes(out, data[i]);
    append_bytes(out, ends.tail);
    return out;
  }

  EventFrame frame;
  EventEnds ends;
  std::vector<std::vector<std::byte>> data;
};

void set_rates(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * std::int64_t{kLinks * (kChunkBytes + 8)});
}

void frame_event(benchmark::State& state) {
  Events events(state.range(0) == 0 ? ChecksumType::none : ChecksumType::adler32);
  std::size_t i = 0;
  for (auto _ : state) {
    events.store(i);
    benchmark::DoNotOptimize(events.ends.tail.data());
    if (++i == events.data.size()) i = 0;
  }
  set_rates(state);
}
BENCHMARK(frame_event)->ArgName("checksum")->Arg(0)->Arg(1);

void digest_of_file(benchmark::State& state) {
  Events events(ChecksumType::none);
  FileDigest digest;
  std::size_t i = 0;
  for (auto _ : state) {
    digest.update(events.data[i]);
    if (++i == events.data.size()) i = 0;
  }
  benchmark::DoNotOptimize(digest.crc32());
  set_rates(state);
}
BENCHMARK(digest_of_file);

void check_event(benchmark::State& state) {
  Events events(ChecksumType::adler32);
  std::vector<std::vector<std::byte>> whole;
  for (std::size_t i = 0; i < events.data.size(); ++i) whole.push_back(events.event(i));
  EventChecker checker({.ours = true, .run_number = 1, .provable = ProvableMark{.seed = kSeed}});
  Findings findings;
  std::size_t i = 0;
  for (auto _ : state) {
    checker.check(whole[i], 0, "event", findings);
    if (++i == whole.size()) i = 0;
  }
  if (findings.total() > 0) state.SkipWithError("a sound event did not verify");
  set_rates(state);
}
BENCHMARK(check_event);

}  // namespace
