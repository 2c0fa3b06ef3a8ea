// The cost of a consumer: the proof of a chunk, and the hand-over of a fragment, through a queue and inline. Run by hand on
// a quiet machine.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/provable.h"
#include "formats/rod_data.h"
#include "readout/consumer/file_writer.h"
#include "readout/consumer/fragment_processor.h"
#include "readout/consumer/works.h"

namespace rodeo::readout {
namespace {

/// Fragments that live as long as the bench: reclaim() is empty, so that only the consumer is measured.
class Fragments final : public FragmentOwner {
 public:
  Fragments(std::size_t count, std::uint32_t links, std::uint32_t chunk_bytes) {
    const formats::Provable provable(1);
    const std::size_t step = chunk_record_bytes(chunk_bytes);
    memory_.resize(count * links * step);
    for (std::size_t n = 0; n < count; ++n) {
      auto& held = fragments_.emplace_back(std::make_unique<Held>());
      Fragment& fragment = held->fragment;
      fragment.sequence = n;
      fragment.l1id = L1Id{static_cast<std::uint32_t>(n)};
      fragment.bcid = provable.trigger(fragment.l1id).bcid;
      fragment.trigger_type = provable.trigger(fragment.l1id).trigger_type;
      fragment.chunks = links;
      std::byte* at = memory_.data() + n * links * step;
      held->part = {at, links * step};
      for (std::uint32_t i = 0; i < links; ++i, at += step) {
        const ChunkHeader header{.link_id = 0x40000 + i};
        store_chunk_header(at, header, chunk_bytes);
        provable.write({at + chunk_header_bytes(chunk_bytes), chunk_bytes}, header.link_id, fragment.l1id);
      }
      fragment.parts = &held->part;
      fragment.part_count = 1;
      fragment.owner = this;
    }
  }
  void reclaim(Fragment&) noexcept override {}
  std::size_t size() const { return fragments_.size(); }
  Fragment& operator[](std::size_t i) { return fragments_[i]->fragment; }
  FragmentPtr hand_out(std::size_t i) {
    fragments_[i]->fragment.references.store(1, std::memory_order_relaxed);
    return FragmentPtr::adopt(&fragments_[i]->fragment);
  }

 private:
  struct Held {
    Fragment fragment;
    FragmentPart part;
  };
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<Held>> fragments_;
};

void verify(benchmark::State& state) {
  const auto chunk_bytes = static_cast<std::uint32_t>(state.range(0));
  const auto links = static_cast<std::uint32_t>(state.range(1));
  Fragments fragments(64, links, chunk_bytes);
  VerifyWork work({.seed = 1});
  std::size_t i = 0;
  for (auto _ : state) {
    work.process(fragments[i]);
    i = (i + 1) % fragments.size();
  }
  state.SetItemsProcessed(state.iterations() * links);
  state.SetBytesProcessed(state.iterations() * links * chunk_bytes);
  if (work.counters()[1].value != 0) state.SkipWithError("mismatches");
}
BENCHMARK(verify)->Args({40, 192})->Args({40, 1152})->Args({5000, 12});

void read(benchmark::State& state) {
  Fragments fragments(64, 12, 5000);
  ReadWork work;
  std::size_t i = 0;
  for (auto _ : state) {
    work.process(fragments[i]);
    i = (i + 1) % fragments.size();
  }
  state.SetBytesProcessed(state.iterations() * 12 * 5000);
}
BENCHMARK(read);

/// The time of insert() alone, with a consumer thread that keeps up (range 1), or in the inserting thread (range 0).
void insert(benchmark::State& state) {
  Fragments fragments(4096, 1, 8);
  FragmentProcessor processor(
      {.queue = {.name = "release", .threads = static_cast<unsigned>(state.range(0)), .capacity = 65536}},
      [] { return std::make_unique<ReleaseWork>(); });
  processor.start();
  std::size_t i = 0;
  for (auto _ : state) {
    processor.insert(fragments.hand_out(i));
    i = (i + 1) % fragments.size();
  }
  processor.stop();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(insert)->Arg(0)->Arg(1);

/// Writes events to files in a temporary directory (TMPDIR), with Adler-32 of each event and CRC-32 of the file; measures
/// the CPU of all threads.
void write(benchmark::State& state) {
  std::string directory = (std::filesystem::temp_directory_path() / "rodeo-bench-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) return state.SkipWithError("no temporary directory");
  {
    Fragments fragments(4096, 192, 40);
    FileWriterSettings settings;
    settings.queue.name = "writer";
    settings.files.directory = directory;
    settings.files.disk.direct = state.range(0) != 0;
    settings.files.files.max_bytes = std::uint64_t{512} << 20;
    FileWriter writer(settings);
    writer.start();
    std::size_t i = 0;
    for (auto _ : state) {
      writer.insert(fragments.hand_out(i));
      if (++i == fragments.size()) i = 0;
    }
    writer.stop();
    state.SetItemsProcessed(state.iterations());
    state.SetBytesProcessed(state.iterations() * 192 * 48);
  }
  std::filesystem::remove_all(directory);
}
BENCHMARK(write)->ArgName("direct")->Arg(1)->Arg(0)->Iterations(150'000)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace
}  // namespace rodeo::readout
