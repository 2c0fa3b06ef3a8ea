#include "readout/input/page_pool.h"

#include <utility>

#include "base/error.h"

namespace rodeo::readout {

PagePool::PagePool(std::size_t pages, PageShape shape, DataStream& stream, std::string_view purpose)
    : shape_(shape), pages_(pages), runs_(pages * shape.runs), entries_(pages * shape.entries) {
  auto memory = base::Arena::create(pages * shape.bytes);
  if (!memory) throw SetupError(memory.error().within(purpose));
  memory_ = std::move(*memory);
  for (std::size_t i = pages; i-- > 0;) {
    PooledPage& page = pages_[i];
    page.stream = &stream;
    page.memory = memory_.data() + i * shape.bytes;
    page.run_storage = runs_.data() + i * shape.runs;
    page.entry_storage = entries_.data() + i * shape.entries;
    page.next_free = free_;
    free_ = &page;
  }
  free_count_ = pages;
}

PooledPage* PagePool::take() {
  if (returned_.load(std::memory_order_relaxed) != nullptr) collect();
  PooledPage* page = free_;
  if (page == nullptr) return nullptr;
  free_ = page->next_free;
  --free_count_;
  page->used_bytes = page->used_runs = page->used_entries = page->chunks = 0;
  page->payload_bytes = 0;
  return page;
}

void PagePool::collect() {
  PooledPage* first = returned_.exchange(nullptr, std::memory_order_acquire);
  if (first == nullptr) return;
  PooledPage* last = first;
  for (++free_count_; last->next_free != nullptr; last = last->next_free) ++free_count_;
  last->next_free = free_;
  free_ = first;
}

void PagePool::give_back(PooledPage& page) noexcept {
  // Only the producer takes from this list, and it takes all at once: a plain push cannot meet the ABA problem.
  page.next_free = returned_.load(std::memory_order_relaxed);
  while (!returned_.compare_exchange_weak(page.next_free, &page, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace rodeo::readout
