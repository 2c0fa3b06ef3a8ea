// Counts what a stream has delivered to its worker. The worker counts; any thread may read.
#pragma once

#include <cstdint>
#include <span>

#include "base/counters.h"
#include "rodeo/input.h"

namespace rodeo::input {

class Delivered {
 public:
  /// Counts a page.
  void add(std::uint64_t chunks, std::uint64_t bytes) {
    chunks_.add(chunks);
    bytes_.add(bytes);
    pages_.add(1);
  }
  void add(std::span<const ChunkRun> runs) {
    std::uint64_t chunks = 0;
    std::uint64_t bytes = 0;
    for (const ChunkRun& run : runs) {
      chunks += run.more_follows ? 0 : run.count;
      if (run.entries == nullptr) bytes += std::uint64_t{run.count} * run.size;
      for (std::uint32_t i = 0; run.entries != nullptr && i < run.count; ++i) bytes += run.entries[i].size;
    }
    add(chunks, bytes);
  }
  StreamCounters counters() const { return {chunks_.get(), bytes_.get(), pages_.get()}; }

 private:
  base::Gauge<std::uint64_t> chunks_;
  base::Gauge<std::uint64_t> bytes_;
  base::Gauge<std::uint64_t> pages_;
};

}  // namespace rodeo::input
