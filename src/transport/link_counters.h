// Counters of each link of a publisher. Its thread counts run by run, and any thread may read (felixcore-statistics-slides:
// separate atomics, pull). Runs on the network carry the count of chunks in any case, so statistics add only the count of
// bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/counters.h"
#include "rodeo/chunk.h"

namespace rodeo::transport {

enum class LinkCounter : std::uint8_t { chunks, bytes, errors, count };
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(LinkCounter::count)> kLinkCounters{{
    {"link_chunks", "chunks", "Chunks of the link that came to its publisher."},
    {"link_bytes", "bytes", "Bytes of the chunks of the link."},
    {"link_errors", "chunks", "Chunks of the link that came with a status: truncated, malformed, CRC, busy."},
}};

/// The counts of one run, of one link, or of all links. A chunk in parts counts with its last part, its bytes with each.
struct LinkTally {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;

  LinkTally& operator+=(const LinkTally& more) {
    chunks += more.chunks;
    bytes += more.bytes;
    errors += more.errors;
    return *this;
  }
  bool operator==(const LinkTally&) const = default;
  /// In the order of LinkCounter.
  std::uint64_t operator[](std::size_t counter) const { return std::array{chunks, bytes, errors}[counter]; }
};

static_assert(chunk_status::kOk == 0);

inline LinkTally tally_of(const ChunkRun& run) {
  LinkTally tally{.chunks = run.more_follows ? 0 : run.count};
  if (run.entries == nullptr) {
    tally.bytes = std::uint64_t{run.count} * run.size;
    tally.errors = run.status == chunk_status::kOk ? 0 : tally.chunks;
    return tally;
  }
  for (const ChunkEntry& entry : std::span(run.entries, run.count)) {
    tally.bytes += entry.size;
    tally.errors += entry.status == chunk_status::kOk ? 0 : 1;
  }
  if (run.more_follows) tally.errors = 0;
  return tally;
}

/// The counters of one link. The thread that publishes the link calls number(), count() and skip(). Any thread may call
/// tally().
class alignas(32) LinkCounters {
 public:
  /// The number of the next chunk, as runs carry it: modulo 2^32.
  std::uint32_t number() const { return static_cast<std::uint32_t>(number_.get()); }

  void count(const ChunkRun& run) {
    if (run.entries == nullptr && (run.status | std::uint8_t{run.more_follows}) == 0) [[likely]] {
      number_.add(run.count);
      bytes_.add(std::uint64_t{run.count} * run.size);
    } else {
      count_any(run);
    }
  }
  /// Gives numbers to chunks that were lost before they arrived here; no count includes them.
  void skip(std::uint32_t chunks) {
    number_.add(chunks);
    skipped_.add(chunks);
  }

  LinkTally tally() const { return {number_.get() - skipped_.get(), bytes_.get(), errors_.get()}; }

 private:
  [[gnu::noinline]] void count_any(const ChunkRun& run) {
    const LinkTally more = tally_of(run);
    number_.add(more.chunks);
    bytes_.add(more.bytes);
    errors_.add(more.errors);
  }

  base::Gauge<std::uint64_t> number_, bytes_, errors_, skipped_;
};

}  // namespace rodeo::transport
