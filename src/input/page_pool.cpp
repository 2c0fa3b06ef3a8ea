#include "input/page_pool.h"

#include <utility>

#include "base/error.h"

namespace rodeo::input {

PagePool::PagePool(std::size_t pages, PageShape shape, DataStream& stream, std::string_view purpose) : shape_(shape) {
  // Allocate the pages' memory first: if it is too large, the error comes before other large allocations.
  auto memory = base::Arena::create(pages * shape.bytes);
  if (!memory) {
    Error error = memory.error().within(purpose);
    error.next = "make readout.input.memory smaller, or end other programs";
    throw SetupError(std::move(error));
  }
  memory_ = std::move(*memory);
  pages_ = std::vector<PooledPage>(pages);
  runs_.resize(pages * shape.runs);
  entries_.resize(pages * shape.entries);
  for (std::size_t i = pages; i-- > 0;) {
    PooledPage& page = pages_[i];
    page.stream = &stream;
    page.memory = memory_.data() + i * shape.bytes;
    page.run_storage = runs_.data() + i * shape.runs;
    page.entry_storage = entries_.data() + i * shape.entries;
    free_.put(page);
  }
}

PooledPage* PagePool::acquire() {
  PooledPage* const page = free_.acquire();
  if (page == nullptr) return nullptr;
  page->used_bytes = page->used_runs = page->used_entries = page->chunks = 0;
  page->payload_bytes = 0;
  return page;
}

}  // namespace rodeo::input
