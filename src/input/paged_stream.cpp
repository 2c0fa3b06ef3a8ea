#include "input/paged_stream.h"

#include <algorithm>
#include <cassert>

namespace rodeo::input {

// One page is open in addition to the reserve.
PagedStream::PagedStream(std::size_t pages, PageShape shape, std::string_view purpose, std::size_t reserve)
    : pool_(pages, shape, *this, purpose), ring_(pages), most_out_(pages - reserve - 1) {}

PollStatus PagedStream::poll(Page*& page) {
  // Read both before the ring: then the ring already has all pages that this clock or end covers.
  const bool ended = ended_.load(std::memory_order_acquire);
  const std::uint64_t clock = clock_ns_.load(std::memory_order_acquire);
  PooledPage* next = nullptr;
  if (!ring_.try_pop(next)) {
    delivered_ns_ = std::max(delivered_ns_, clock);
    if (ended) return PollStatus::end;
    return out_.load(std::memory_order_relaxed) > most_out_ ? PollStatus::full : PollStatus::empty;
  }
  delivered_ns_ = std::max(delivered_ns_, next->clock_ns);
  delivered_.add(next->chunks, next->payload_bytes);
  next->references.store(1, std::memory_order_relaxed);
  out_.fetch_add(1, std::memory_order_relaxed);
  page = next;
  return PollStatus::page;
}

bool PagedStream::next_page() {
  close_page();
  open_ = pool_.acquire();
  return open_ != nullptr;
}

bool PagedStream::ensure(std::uint32_t bytes, std::uint32_t chunks) {
  const PageShape& shape = pool_.shape();
  if (open_ != nullptr && shape.bytes - open_->used_bytes >= bytes && shape.runs - open_->used_runs >= chunks &&
      (shape.entries == 0 || shape.entries - open_->used_entries >= chunks)) {
    return true;
  }
  return next_page();
}

std::byte* PagedStream::add_run(LinkIndex link, std::uint32_t size, std::uint32_t want, std::uint32_t& fit) {
  const PageShape& shape = pool_.shape();
  if (open_ == nullptr || open_->used_runs == shape.runs || shape.bytes - open_->used_bytes < size) {
    if (!next_page()) return nullptr;
  }
  PooledPage& page = *open_;
  fit = std::min(want, (shape.bytes - page.used_bytes) / size);
  std::byte* data = page.memory + page.used_bytes;
  page.run_storage[page.used_runs++] = ChunkRun{.data = data, .size = size, .stride = size, .count = fit, .link = link};
  page.used_bytes += fit * size;
  page.payload_bytes += std::uint64_t{fit} * size;
  page.chunks += fit;
  open_run_ = nullptr;
  return data;
}

std::byte* PagedStream::add_chunk(LinkIndex link, std::uint32_t size, std::uint8_t status) {
  PooledPage& page = *open_;
  assert(pool_.shape().bytes - page.used_bytes >= size);
  std::byte* data = page.memory + page.used_bytes;
  const bool with_entries = pool_.shape().entries != 0;
  ChunkRun* run = open_run_;
  if (run == nullptr || run->link != link || (!with_entries && (run->size != size || run->status != status))) {
    run = open_run_ = &page.run_storage[page.used_runs++];
    *run = ChunkRun{.data = data, .size = size, .stride = size, .link = link, .status = status};
    if (with_entries) run->entries = page.entry_storage + page.used_entries;
  }
  if (with_entries) {
    page.entry_storage[page.used_entries++] =
        ChunkEntry{.offset = static_cast<std::uint32_t>(data - run->data), .size = size, .status = status};
  }
  ++run->count;
  ++page.chunks;
  page.used_bytes += size;
  page.payload_bytes += size;
  return data;
}

void PagedStream::close_page() {
  open_run_ = nullptr;
  if (open_ == nullptr || open_->chunks == 0) return;
  PooledPage& page = *open_;
  open_ = nullptr;
  page.runs = {page.run_storage, page.used_runs};
  page.clock_ns = page_clock_ns_;
  sent_.add(page.chunks);
  sent_bytes_.add(page.payload_bytes);
  const bool pushed = ring_.try_push(&page);
  assert(pushed && "the ring has room for every page");
  (void)pushed;
}

void PagedStream::advance_clock(std::uint64_t clock_ns) {
  set_page_clock(clock_ns);
  clock_ns_.store(page_clock_ns_, std::memory_order_release);
}

void PagedStream::end() {
  close_page();
  ended_.store(true, std::memory_order_release);
}

}  // namespace rodeo::input
