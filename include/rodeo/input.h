// DataInput: the source of chunk runs (software ROD paper, section V).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rodeo/chunk.h"

namespace rodeo {

/// A piece of input memory with the runs found in it. Owned by the input; valid from poll() until the last reference is
/// dropped.
struct Page {
  std::span<const ChunkRun> runs;
  class DataStream* stream = nullptr;
  std::atomic<std::uint32_t> references{
      0};  ///< set to 1 by poll(); a builder that keeps pointers into the page adds its own

  inline void drop();
};

enum class PollStatus : std::uint8_t {
  page,   ///< a page was delivered
  empty,  ///< no data now: the input is drained
  full,   ///< no data can come before pages are released: their memory, or all page objects, are in use
  end,    ///< no more data will come
};

/// Counters of one stream; any thread may read them at any time. Every chunk that the stream saw but did not deliver is in
/// one of them by name.
struct StreamCounters {
  std::uint64_t chunks = 0;  ///< delivered, in runs
  std::uint64_t bytes = 0;   ///< payload bytes delivered
  std::uint64_t pages = 0;
};

/// One ordered sequence of pages. poll() and clock_ns() are called by one thread, the worker that opened it; release() by
/// any.
class DataStream {
 public:
  virtual ~DataStream() = default;

  /// Next page, without blocking. With PollStatus::page, `page` holds one reference, which the caller drops.
  virtual PollStatus poll(Page*& page) = 0;

  /// Called when the last reference to a page is gone: its memory may be reused. Pages may come back in any order. Any
  /// thread.
  virtual void release(Page& page) noexcept = 0;

  /// Time up to which this stream has delivered everything that was sent, on the input's own clock (monotonic, nanoseconds).
  /// Event time-outs use it: an input that falls behind holds its clock back, so no loss is invented.
  virtual std::uint64_t clock_ns() const = 0;

  virtual StreamCounters counters() const = 0;

  /// Fraction of this stream's page memory in use, 0 to 1. A builder that keeps pages copies their data when this
  /// gets high. Any thread.
  virtual double memory_fill() const { return 0; }

  /// Number of sources (cards) that this stream reads in turn and that run independently. The progress of one source says
  /// nothing about the others, so a builder limits their distance with hold(). Constant.
  virtual std::uint32_t sources() const { return 1; }

  /// The source (below sources()) of a link: all runs of a page have the same source. Constant.
  virtual std::uint32_t source_of(LinkIndex /*link*/) const { return 0; }

  /// True once poll() has delivered all data of this source. The polling worker calls it.
  virtual bool source_ended(std::uint32_t /*source*/) const { return false; }

  /// While a source is held, poll() leaves its data in place: memory fills, and finally the source is busy. After the
  /// release, poll() reads the data again. While a source is held, `empty` says that the others are drained, clock_ns()
  /// follows the others, and `end` does not occur. The polling worker calls it, and only if there are several sources.
  virtual void hold(std::uint32_t /*source*/, bool /*held*/) {}

  /// Says whether the data of this link are needed. A stream may leave out unwanted data before decoding, without counting
  /// them. At first all links are wanted. The polling worker calls it between two poll().
  virtual void want(LinkIndex /*link*/, bool /*wanted*/) {}
};

inline void Page::drop() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) stream->release(*this);
}

/// A named counter of an input, builder or consumer, for reports and metrics.
struct NamedCounter {
  std::string name;  ///< snake_case; for losses: the reason
  std::uint64_t value = 0;
};

/// Brings the data of one process. The application's thread creates it from the configuration, then connects, starts, stops
/// and destroys it.
class DataInput {
 public:
  virtual ~DataInput() = default;

  /// Every link that this input can deliver, in a fixed order.
  virtual std::span<const Fid> links() const = 0;

  /// Opens a stream that carries just these links; ChunkRun::link is the position in `links`. Called before start(), once
  /// per worker. Throws std::runtime_error with a complete sentence if a link is unknown or already taken.
  virtual std::unique_ptr<DataStream> open(std::span<const Fid> links) = 0;

  /// Opens the trigger list (TTC packets as chunks of TTC format), if this input carries it; nullptr otherwise.
  virtual std::unique_ptr<DataStream> open_trigger_list() { return nullptr; }

  virtual void start() = 0;

  /// Ends the flow: streams deliver the data under way, then end; also if start() was not called, or threw. May be called
  /// again. Returns at once.
  virtual void stop() = 0;

  /// Totals for the report: "sent" (chunks), "triggers", "vetoed" (refused while busy), "lost_..." (each ends a run
  /// INCOMPLETE), faults by name. Any thread, once the streams are open.
  virtual std::vector<NamedCounter> counters() const { return {}; }

  /// The reason why this input cannot continue: one complete sentence, constant from then on; empty: no failure. It ends the
  /// run: the application calls stop(), and the report is ABORTED with this sentence. Streams must reach PollStatus::end as
  /// after any stop(). Any thread, at any time, about twenty times a second: does not block and does not throw.
  virtual std::string failure() const { return {}; }

  /// CPU seconds used by this input's own threads.
  virtual double cpu_seconds() const { return 0; }

  /// The begin of each group in links(). A group shares a path, for example one DMA channel of a card. If one thread reads a
  /// whole group, no data are decoded twice. Ascending, the first is 0. Constant.
  virtual std::vector<std::size_t> link_groups() const { return {0}; }
};

}  // namespace rodeo
