// Pages owned by an input: a fixed number in one piece of memory, returned without locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "input/free_list.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// A page with its memory. The producer fills it; the polling worker reads it.
struct PooledPage : Page {
  std::byte* memory = nullptr;
  ChunkRun* run_storage = nullptr;
  ChunkEntry* entry_storage = nullptr;

  // Filled by the producer.
  std::uint32_t used_bytes = 0;
  std::uint32_t used_runs = 0;
  std::uint32_t used_entries = 0;
  std::uint32_t chunks = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t clock_ns = 0;  ///< all data up to this time are in this page or earlier ones

  PooledPage* next_free = nullptr;
};

struct PageShape {
  std::uint32_t bytes = 0;
  std::uint32_t runs = 0;
  std::uint32_t entries = 0;  ///< 0: the page has uniform runs only
};

/// The producer's thread calls acquire() and free_at_least(); any thread calls give_back().
class PagePool {
 public:
  /// Throws SetupError if there is not enough memory; the error names `purpose`.
  PagePool(std::size_t pages, PageShape shape, DataStream& stream, std::string_view purpose);

  /// An empty page, or nullptr when all are in use.
  PooledPage* acquire();

  bool free_at_least(std::size_t pages) { return free_.at_least(pages); }

  void give_back(PooledPage& page) noexcept { free_.give_back(page); }

  std::size_t pages() const { return pages_.size(); }
  const PageShape& shape() const { return shape_; }

 private:
  PageShape shape_;
  base::Arena memory_;
  std::vector<PooledPage> pages_;
  std::vector<ChunkRun> runs_;
  std::vector<ChunkEntry> entries_;
  FreeList<PooledPage> free_;
};

}  // namespace rodeo::input
