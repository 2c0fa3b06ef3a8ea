// Pages that an input owns: a fixed number of them in one piece of memory, with a lock-free way back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "input/free_list.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// A page with the memory behind it. The producer fills it, the worker that polls reads it.
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
  std::uint64_t clock_ns = 0;  ///< everything up to this time is in this page and those before it

  PooledPage* next_free = nullptr;
};

struct PageShape {
  std::uint32_t bytes = 0;
  std::uint32_t runs = 0;
  std::uint32_t entries = 0;  ///< 0: uniform runs only
};

/// take() and free_at_least() belong to one thread, the producer; give_back() to any.
class PagePool {
 public:
  /// Throws SetupError if there is no memory for that. `purpose` is named in the error.
  PagePool(std::size_t pages, PageShape shape, DataStream& stream, std::string_view purpose);

  /// An empty page, or nullptr when all are in use.
  PooledPage* take();

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
