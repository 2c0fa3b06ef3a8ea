// The output of a block decoder for one page: runs, the sizes of unequal chunks, and chunks joined from pieces.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "rodeo/chunk.h"

namespace rodeo::formats {

/// Pieces of chunks that a decoder joined.
using JoinedParts = std::vector<std::span<const std::byte>>;

/// One for each page, made once and reused: runs() and the memory behind it are valid until clear(). Never allocates after
/// construction. Written by one thread at a time; other threads may read it after they are notified.
class DecodeBuffer {
 public:
  struct Capacity {
    std::size_t runs = 0;
    std::size_t entries = 0;
    std::size_t carry_bytes = 0;

    Capacity operator+(const Capacity& more) const {
      return {runs + more.runs, entries + more.entries, carry_bytes + more.carry_bytes};
    }
  };

  explicit DecodeBuffer(Capacity capacity)
      : capacity_(capacity),
        runs_(std::make_unique_for_overwrite<ChunkRun[]>(capacity.runs)),
        entries_(std::make_unique_for_overwrite<ChunkEntry[]>(capacity.entries)),
        carry_(std::make_unique_for_overwrite<std::byte[]>(capacity.carry_bytes)) {
    clear();
  }

  std::span<const ChunkRun> runs() const { return {runs_.get(), run_count_}; }
  /// runs(), writable by the owner: to change the link indices of the runs.
  std::span<ChunkRun> own_runs() { return {runs_.get(), run_count_}; }

  void clear() {
    run_count_ = carry_used_ = 0;
    entries_left_ = capacity_.entries;
  }

  /// True if `more` still fits.
  bool has_room(const Capacity& more) const {
    return capacity_.runs - run_count_ >= more.runs && entries_left_ >= more.entries &&
           capacity_.carry_bytes - carry_used_ >= more.carry_bytes;
  }

  // For decoders, which check has_room() first.

  void add(const ChunkRun& run) {
    assert(run_count_ < capacity_.runs);
    runs_[run_count_++] = run;
  }
  ChunkEntry* allocate_entries(std::size_t n) {
    assert(n <= entries_left_);
    entries_left_ -= n;
    return entries_.get() + entries_left_;
  }
  /// Entries are allocated from the end of their memory to its begin, because blocks are read in this order. A decoder
  /// writes entries below entries_end(), and then keeps them by passing the lowest one.
  ChunkEntry* entries_end() { return entries_.get() + entries_left_; }
  void set_entries_end(const ChunkEntry* first) { entries_left_ = static_cast<std::size_t>(first - entries_.get()); }
  std::byte* allocate_carry(std::size_t bytes) {
    assert(bytes <= capacity_.carry_bytes - carry_used_);
    std::byte* const first = carry_.get() + carry_used_;
    carry_used_ += bytes;
    return first;
  }

 private:
  Capacity capacity_;
  std::size_t run_count_ = 0;
  std::size_t entries_left_ = 0;
  std::size_t carry_used_ = 0;
  std::unique_ptr<ChunkRun[]> runs_;
  std::unique_ptr<ChunkEntry[]> entries_;
  std::unique_ptr<std::byte[]> carry_;
};

}  // namespace rodeo::formats
