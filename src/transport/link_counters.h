// What came on each link of a publisher: counted run by run by its thread, pulled by whoever looks (felixcore-statistics-slides: separate atomics,
// pull). The count of chunks is the one that runs carry on the network, so that statistics add the bytes to what is counted in any case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "rodeo/chunk.h"

namespace rodeo::transport {

enum class LinkCounter : std::uint8_t { chunks, bytes, errors, count };
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(LinkCounter::count)> kLinkCounters{{
    {"link_chunks", "chunks", "Chunks of the link that came to its publisher."},
    {"link_bytes", "bytes", "Bytes of the chunks of the link."},
    {"link_errors", "chunks", "Chunks of the link that came with a status: truncated, malformed, CRC, busy."},
}};

/// What a run adds, or has come to on a link, or on all of them. A chunk in parts counts with its last, its bytes with each.
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

/// Of one stream. count() and skip() by the thread that publishes it, at() by any.
class LinkCounters {
 public:
  explicit LinkCounters(std::size_t links) : links_(links) {}

  void count(const ChunkRun& run) {
    Cells& cells = links_[run.link];
    if (run.entries == nullptr && run.status == chunk_status::kOk && !run.more_follows) [[likely]] {
      cells.number.add(run.count);
      cells.bytes.add(std::uint64_t{run.count} * run.size);
    } else {
      add(cells, run);
    }
  }
  /// So many chunks of the link were lost before they came here: they have numbers, and are in no count.
  void skip(LinkIndex link, std::uint32_t chunks) {
    links_[link].number.add(chunks);
    links_[link].skipped.add(chunks);
  }

  /// Of the chunk that comes next, as runs carry it: modulo 2^32.
  std::uint32_t number(LinkIndex link) const { return static_cast<std::uint32_t>(links_[link].number.get()); }

  LinkTally at(std::size_t link) const {
    const Cells& cells = links_[link];
    return {cells.number.get() - cells.skipped.get(), cells.bytes.get(), cells.errors.get()};
  }
  LinkTally sum() const {
    LinkTally sum;
    for (std::size_t link = 0; link < links_.size(); ++link) sum += at(link);
    return sum;
  }

 private:
  struct alignas(32) Cells {
    base::Gauge<std::uint64_t> number, bytes, errors, skipped;
  };
  [[gnu::noinline]] static void add(Cells& cells, const ChunkRun& run) {
    const LinkTally more = tally_of(run);
    cells.number.add(more.chunks);
    cells.bytes.add(more.bytes);
    cells.errors.add(more.errors);
  }

  std::vector<Cells> links_;
};

}  // namespace rodeo::transport
