// Chunks whose event is not known yet, by link and in order; their number is bounded. Nothing is allocated after
// construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "rodeo/input.h"

namespace rodeo::readout {

/// A chunk and its known data. Trivial, so that memory for many chunks stays untouched until it is used.
struct ChunkView {
  const std::byte* data;
  std::size_t size;
  Page* page;  ///< the page of the bytes, if they are not to be copied
  std::uint32_t id;
  std::uint16_t bcid;
  LinkIndex link;
  std::uint8_t felix_status;
  std::uint8_t rodeo_status;
  bool lost;  ///< there was no room for the bytes; the chunk is counted already

  std::span<const std::byte> bytes() const { return {data, size}; }
};

inline ChunkView view_of(const ChunkRun& run, std::uint32_t chunk, std::uint32_t id, std::uint16_t bcid,
                         std::uint8_t rodeo_status, Page* page = nullptr) {
  const std::span<const std::byte> bytes = run.chunk(chunk);
  return {.data = bytes.data(),
          .size = bytes.size(),
          .page = page,
          .id = id,
          .bcid = bcid,
          .link = run.link,
          .felix_status = run.chunk_status(chunk),
          .rodeo_status = rodeo_status,
          .lost = false};
}

/// The number of bytes in `n` chunks of a run, from `first` on.
inline std::uint64_t bytes_of(const ChunkRun& run, std::uint32_t first, std::uint32_t n) {
  if (run.entries == nullptr) return std::uint64_t{n} * run.size;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = first; i < first + n; ++i) bytes += run.entries[i].size;
  return bytes;
}

/// For one worker thread. With `copy_bytes`, it copies the bytes into this amount of memory per link; else it keeps page
/// references.
class WaitingChunks {
 public:
  WaitingChunks(std::size_t links, std::size_t chunks, std::size_t copy_bytes)
      : chunks_(chunks), copy_bytes_(copy_bytes), queues_(links) {
    for (Queue& queue : queues_) {
      queue.entries = std::make_unique_for_overwrite<ChunkView[]>(chunks);
      if (copy_bytes != 0) queue.memory = std::make_unique_for_overwrite<std::byte[]>(copy_bytes);
    }
  }

  /// Appends to the link's chunks, which must be fewer than `chunks`. False: there is no room for the bytes, so the chunk
  /// has lost them.
  bool push(const ChunkView& chunk) {
    Queue& queue = queues_[chunk.link];
    ++total_;
    ChunkView& entry = queue.entries[(queue.first + queue.count++) % chunks_];
    entry = chunk;
    if (copy_bytes_ == 0) {
      chunk.page->references.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    std::byte* const room = queue.reserve(chunk.size, copy_bytes_);
    entry.lost = room == nullptr;
    if (entry.lost) return false;
    std::memcpy(room, chunk.data, chunk.size);
    entry.data = room;
    return true;
  }

  /// Takes the link's oldest chunk, valid until its next push(). The caller then owns the page reference.
  ChunkView pop(LinkIndex link) {
    Queue& queue = queues_[link];
    const ChunkView chunk = queue.entries[queue.first];
    --total_;
    queue.first = (queue.first + 1) % chunks_;
    if (--queue.count == 0)
      queue.begin = queue.end = 0;
    else if (copy_bytes_ != 0 && !chunk.lost)
      queue.begin = static_cast<std::size_t>(chunk.data - queue.memory.get()) + chunk.size;
    return chunk;
  }

  std::size_t size(LinkIndex link) const { return queues_[link].count; }
  std::size_t total() const { return total_; }

  /// True if the link uses more than a quarter of its room.
  bool crowded(LinkIndex link) const {
    const Queue& queue = queues_[link];
    const std::size_t bytes = queue.end >= queue.begin ? queue.end - queue.begin : copy_bytes_ - queue.begin + queue.end;
    return queue.count > chunks_ / 4 || bytes > copy_bytes_ / 4;
  }

 private:
  struct Queue {
    std::unique_ptr<ChunkView[]> entries;
    std::unique_ptr<std::byte[]> memory;
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t begin = 0;  // bytes in use: [begin, end), or [begin, last chunk's end) and [0, end)
    std::size_t end = 0;

    // Reserves memory for a chunk, whose bytes are in one piece.
    std::byte* reserve(std::size_t bytes, std::size_t capacity) {
      const bool wrapped = end < begin;
      if (!wrapped && bytes > capacity - end) {
        if (bytes >= begin) return nullptr;
        end = 0;
      } else if (wrapped && bytes >= begin - end) {
        return nullptr;
      }
      std::byte* const at = memory.get() + end;
      end += bytes;
      return at;
    }
  };

  const std::size_t chunks_;
  const std::size_t copy_bytes_;
  std::vector<Queue> queues_;
  std::size_t total_ = 0;
};

}  // namespace rodeo::readout
