// DataInput: what brings chunk runs (software ROD paper, section V).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rodeo/chunk.h"

namespace rodeo {

/// A piece of input memory with the runs found in it. Owned by the input; valid from poll() until the last reference is dropped.
struct Page {
  std::span<const ChunkRun> runs;
  class DataStream* stream = nullptr;
  std::atomic<std::uint32_t> references{
      0};  ///< set to 1 by poll(); a builder that keeps pointers into the page adds its own

  inline void drop();
};

enum class PollStatus : std::uint8_t {
  page,   ///< a page was delivered
  empty,  ///< nothing there now: the input is drained
  full,   ///< nothing can come before pages are given back: their memory, or they themselves, are all handed out
  end,    ///< nothing will come any more
};

/// Counters of one stream, read by any thread at any time. Every chunk that the stream saw but did not hand over is in one of
/// them by name.
struct StreamCounters {
  std::uint64_t chunks = 0;  ///< handed over, in runs
  std::uint64_t bytes = 0;   ///< payload bytes handed over
  std::uint64_t pages = 0;
};

/// One ordered sequence of pages. poll() and clock_ns() are called by one thread, the worker that opened it; release() by any.
class DataStream {
 public:
  virtual ~DataStream() = default;

  /// Next page, without blocking. With PollStatus::page, `page` holds one reference, which the caller drops.
  virtual PollStatus poll(Page*& page) = 0;

  /// The last reference to a page is gone; its memory may be reused. Pages may come back in any order. Any thread.
  virtual void release(Page& page) noexcept = 0;

  /// Time up to which this stream has delivered all that was sent, on the input's own clock (monotonic, nanoseconds). Event
  /// time-outs run on it: an input that falls behind holds its clock back, and no loss is invented.
  virtual std::uint64_t clock_ns() const = 0;

  virtual StreamCounters counters() const = 0;

  /// Share of this stream's page memory that is handed out, 0 to 1. A builder that keeps pages copies what it keeps when this
  /// gets high. Any thread.
  virtual double memory_fill() const { return 0; }

  /// Sources that this stream reads in turn and that run independently of one another: cards. What one has brought says nothing of how far the
  /// others are, so a builder bounds them against each other with hold(). Constant.
  virtual std::uint32_t sources() const { return 1; }

  /// The source (below sources()) that a link belongs to: all runs of a page are of one. Constant.
  virtual std::uint32_t source_of(LinkIndex /*link*/) const { return 0; }

  /// True once poll() has delivered all that will ever come from this source. The worker that polls.
  virtual bool source_ended(std::uint32_t /*source*/) const { return false; }

  /// From now on poll() leaves the data of this source where they are - memory fills, the source at last is busy -, or takes them again.
  /// `empty` then says that the others are drained, clock_ns() goes by the others, and there is no `end` while a source is held. Only called where
  /// there are several sources, by the worker that polls.
  virtual void hold(std::uint32_t /*source*/, bool /*held*/) {}

  /// From now on nothing of this link is needed, or it is again: a stream that can then leaves its data out, uncounted, before it decodes them. At
  /// first all links are wanted. Between two poll(), by the worker that polls.
  virtual void want(LinkIndex /*link*/, bool /*wanted*/) {}
};

inline void Page::drop() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) stream->release(*this);
}

/// A named counter that an input, builder or consumer offers to reports and metrics.
struct NamedCounter {
  std::string name;  ///< snake_case, a reason where it counts losses
  std::uint64_t value = 0;
};

/// Brings the data of one process. Created from the configuration, then connected, started, stopped, destroyed by the
/// application's thread.
class DataInput {
 public:
  virtual ~DataInput() = default;

  /// Every link that this input can deliver, in a fixed order.
  virtual std::span<const Fid> links() const = 0;

  /// Opens a stream that carries just these links; ChunkRun::link is the position in `links`. Called before start(), once per
  /// worker. Throws std::runtime_error with a complete sentence if a link is unknown or already taken.
  virtual std::unique_ptr<DataStream> open(std::span<const Fid> links) = 0;

  /// Opens the trigger's own list (TTC packets as chunks of TTC format), if this input carries it; nullptr otherwise.
  virtual std::unique_ptr<DataStream> open_trigger_list() { return nullptr; }

  virtual void start() = 0;

  /// Ends the flow: streams deliver what is under way, then end; also if start() was not called, or threw. May be called again. Returns at once.
  virtual void stop() = 0;

  /// Totals for the report: "sent" (chunks), "triggers", "vetoed" (refused while busy), "lost_..." (each ends a run INCOMPLETE), faults by name. Any thread,
  /// once the streams are open.
  virtual std::vector<NamedCounter> counters() const { return {}; }

  /// Why this input cannot go on: one complete sentence, empty while all is well, and unchanged once it is said. It ends the run: the application
  /// calls stop() and the report is ABORTED with this sentence. Streams must come to PollStatus::end as after any stop(). Any thread, at any
  /// time, about twenty times a second: does not block and does not throw.
  virtual std::string failure() const { return {}; }

  /// CPU seconds that this input's own threads have used.
  virtual double cpu_seconds() const { return 0; }

  /// Where in links() each group of links begins that come the same way, as those of one DMA channel of a card do: who shares links out among threads
  /// reads such a group with one, and nothing is looked at twice. Ascending, the first 0. Constant.
  virtual std::vector<std::size_t> link_groups() const { return {0}; }
};

}  // namespace rodeo
