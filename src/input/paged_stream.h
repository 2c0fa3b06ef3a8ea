// A stream of pages from one producing thread to one worker. The generator and the replay of files use it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/counters.h"
#include "base/spsc_ring.h"
#include "input/chunk_limit.h"
#include "input/delivered.h"
#include "input/page_pool.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// The producer adds chunks to an open page, closes it, and moves the clock; the worker polls. No allocation after
/// construction.
class PagedStream final : public DataStream, public ChunkLimit {
 public:
  /// The producer continues while `reserve` pages are free. Throws SetupError if there is no memory for `pages` pages.
  PagedStream(std::size_t pages, PageShape shape, std::string_view purpose, std::size_t reserve);

  // The worker's side.
  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override {
    pool_.give_back(static_cast<PooledPage&>(page));
    out_.fetch_sub(1, std::memory_order_relaxed);
  }
  std::uint64_t clock_ns() const override { return delivered_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  std::uint32_t max_chunk_bytes() const override { return pool_.shape().bytes; }

  // The producer's side.
  bool free_at_least(std::size_t pages) { return pool_.free_at_least(pages); }
  std::size_t pages() const { return pool_.pages(); }

  /// Makes sure that the open page has room for `chunks` more chunks of any kind, `bytes` long together; false if memory ran
  /// out.
  bool ensure(std::uint32_t bytes, std::uint32_t chunks);

  /// Opens a run of equal chunks: at least one, at most `want`. `fit` returns the number. The caller writes fit * size bytes
  /// to the result. nullptr if memory ran out.
  std::byte* add_run(LinkIndex link, std::uint32_t size, std::uint32_t want, std::uint32_t& fit);

  /// Adds one chunk, to the last run if possible. Call only after ensure().
  std::byte* add_chunk(LinkIndex link, std::uint32_t size, std::uint8_t status);

  /// The next chunk starts a new run.
  void end_run() { open_run_ = nullptr; }

  /// Sets the clock of pages closed from now on: their data are complete up to this time.
  void set_page_clock(std::uint64_t clock_ns) { page_clock_ns_ = std::max(page_clock_ns_, clock_ns); }

  /// Makes the open page visible to the worker, unless it is empty.
  void close_page();

  /// Says that all data up to `clock_ns` are delivered. The worker sees the new clock after the pages closed before.
  void advance_clock(std::uint64_t clock_ns);

  /// Ends the stream: no more data will come.
  void end();

  std::uint64_t chunks_sent() const { return sent_.get(); }
  std::uint64_t bytes_sent() const { return sent_bytes_.get(); }

 private:
  bool next_page();

  PagePool pool_;
  base::SpscRing<PooledPage*> ring_;

  PooledPage* open_ = nullptr;
  ChunkRun* open_run_ = nullptr;
  std::uint64_t page_clock_ns_ = 0;
  base::Gauge<std::uint64_t> sent_;
  base::Gauge<std::uint64_t> sent_bytes_;

  alignas(base::kCacheLine) std::atomic<std::uint64_t> clock_ns_{0};
  std::atomic<bool> ended_{false};

  alignas(base::kCacheLine) std::atomic<std::size_t> out_{0};  // pages in use by readers
  const std::size_t most_out_;                                 // if more pages are out, the producer waits
  alignas(base::kCacheLine) std::uint64_t delivered_ns_ = 0;   // the worker's clock
  Delivered delivered_;
};

/// The object that an input hands out. The stream itself stays in the input, so that pages can return as long as the input
/// lives.
class StreamHandle final : public DataStream, public ChunkLimit {
 public:
  explicit StreamHandle(DataStream& stream) : stream_(stream) {}
  PollStatus poll(Page*& page) override { return stream_.poll(page); }
  void release(Page& page) noexcept override { stream_.release(page); }
  std::uint64_t clock_ns() const override { return stream_.clock_ns(); }
  StreamCounters counters() const override { return stream_.counters(); }
  double memory_fill() const override { return stream_.memory_fill(); }
  std::uint32_t sources() const override { return stream_.sources(); }
  std::uint32_t source_of(LinkIndex link) const override { return stream_.source_of(link); }
  bool source_ended(std::uint32_t source) const override { return stream_.source_ended(source); }
  void hold(std::uint32_t source, bool held) override { stream_.hold(source, held); }
  void want(LinkIndex link, bool wanted) override { stream_.want(link, wanted); }
  std::uint32_t max_chunk_bytes() const override { return input::max_chunk_bytes(stream_); }
  bool delivers_parts() const override { return input::delivers_parts(stream_); }
  bool plays_file() const override { return player_of(stream_) != nullptr; }
  std::uint64_t quiet_until() const override { return plays_file() ? player_of(stream_)->quiet_until() : 0; }

 private:
  DataStream& stream_;
};

}  // namespace rodeo::input
