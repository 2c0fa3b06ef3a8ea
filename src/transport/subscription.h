// The publisher's side of one subscription: its links, and the pages on their way to the subscriber. No socket, thread or
// clock of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/network_control.h"
#include "formats/network_page.h"
#include "rodeo/chunk.h"

namespace rodeo::transport {

/// The reason for closing a page.
enum class Flush : std::uint8_t {
  full,        ///< the next chunk had no room
  time,        ///< its first run had waited for `flush`
  clock,       ///< subscribers need the time, and there was little or nothing to send
  end,         ///< the subscriber leaves, or no more runs will come
  unbuffered,  ///< the subscriber wants each run at once
  count
};
using FlushCounts = std::array<std::uint64_t, static_cast<std::size_t>(Flush::count)>;

/// Fills pages in a ring of slots, in order. A slot is being filled, then full, then on the network, then kept until the
/// subscriber acknowledges the page, then free.
class PageRing {
 public:
  PageRing(std::span<std::byte> memory, std::size_t page_bytes);

  std::size_t page_bytes() const { return page_bytes_; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(bytes_.size()); }

  /// Returns the page that is being filled, or nullptr if no slot is free.
  formats::NetworkPageWriter* writer();
  bool has_runs() const { return writer_ && writer_->runs() > 0; }

  /// Closes the page that is being filled; this page becomes the last one to send. `chunks` is the number of chunks in pages
  /// so far, this page included.
  void close(std::uint64_t clock_ns, std::uint64_t chunks);

  /// The next full page to send.
  struct Full {
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };
  std::optional<Full> next() const;
  void sending();                 ///< the network owns the slot of next()
  void sent(std::uint32_t slot);  ///< the network has released the slot
  /// The subscriber has acknowledged this number of pages in all. False: more than were sent.
  bool taken(std::uint64_t pages);
  /// Called when the connection is gone and the network has released all pages. Pages without acknowledgement are sent
  /// again.
  void unsend();

  std::uint64_t closed() const { return closed_; }                                      ///< number of all closed pages
  std::uint32_t filled() const { return static_cast<std::uint32_t>(closed_ - done_); }  ///< closed pages in use
  bool empty() const { return done_ == closed_ && !has_runs(); }
  std::uint64_t taken_chunks() const { return taken_chunks_; }

 private:
  void free_slots();

  std::span<std::byte> memory_;
  std::size_t page_bytes_;
  std::optional<formats::NetworkPageWriter> writer_;  // writes slot closed_ % slots
  std::vector<std::uint32_t> bytes_;                  // bytes of the full page in each slot
  std::vector<std::uint64_t> chunks_;                 // chunks in pages when the slot's page was closed
  std::vector<bool> on_network_;                      // slots that the network owns
  std::uint64_t closed_ = 0;
  std::uint64_t given_ = 0;       // pages passed to the network, on this or earlier connections
  std::uint64_t most_given_ = 0;  // highest given_ so far
  std::uint64_t taken_ = 0;       // acknowledged by the subscriber
  std::uint64_t done_ = 0;        // acknowledged, and released by the network
  std::uint64_t taken_chunks_ = 0;
};

/// The links of one subscription, by position, and their pages.
class Subscription {
 public:
  /// `links` has the publisher's index for each position. `begun` says for each of these links whether it is in the middle
  /// of a chunk; the rest of that chunk is skipped. `counts` has the number of chunks of each link so far. `clock_ns` is the
  /// stream's time at the begin of the session.
  Subscription(formats::ControlSubscribe wish, std::vector<LinkIndex> links, std::span<std::byte> memory,
               std::size_t page_bytes, std::span<const std::uint32_t> counts, std::span<const std::uint8_t> begun,
               std::uint64_t clock_ns);

  const formats::ControlSubscribe& wish() const { return wish_; }
  /// The subscriber has come back, perhaps from another address.
  void resume(formats::ControlSubscribe wish) { wish_ = std::move(wish); }
  const std::vector<LinkIndex>& links() const { return links_; }
  PageRing& ring() { return ring_; }
  const PageRing& ring() const { return ring_; }

  /// The subscriber leaves: append() puts nothing more into pages.
  void leave() { left_ = true; }
  bool left() const { return left_; }

  /// Copies a run of a link into pages, beginning at `from`. `count` is the number of chunks of the link before the run.
  /// False: no slot is free; call it again later with the same arguments. A monitor never waits for slots: its chunks are
  /// dropped.
  bool append(std::size_t position, std::uint32_t count, const ChunkRun& run, formats::RunPlace& from);

  /// Closes the page that is being filled, if it is not empty or `why` is `clock`. `clock_ns` is the time of the stream.
  /// False: no slot was free.
  bool close_page(std::uint64_t clock_ns, Flush why);

  /// All runs of the stream up to this time are in pages.
  void set_clock(std::uint64_t clock_ns) { clock_ns_ = clock_ns; }

  std::uint64_t chunks() const { return chunks_; }
  /// The number of chunks in pages that the subscriber has not acknowledged.
  std::uint64_t untaken_chunks() const { return chunks_ - ring_.taken_chunks(); }
  std::uint64_t dropped_chunks() const { return dropped_chunks_; }
  const FlushCounts& flushes() const { return flushes_; }  ///< number of pages for each reason to close them

 private:
  struct State {
    std::uint32_t base = 0;   // chunks of the link before the subscription, which are not counted
    bool skips_rest = false;  // skips the rest of a chunk whose beginning was dropped, or came before the subscription
  };

  void close(Flush why);

  formats::ControlSubscribe wish_;
  std::vector<LinkIndex> links_;
  std::vector<State> states_;
  PageRing ring_;
  std::uint64_t clock_begin_;
  std::uint64_t clock_ns_;
  bool left_ = false;
  std::uint64_t chunks_ = 0;
  std::uint64_t dropped_chunks_ = 0;
  FlushCounts flushes_{};
};

}  // namespace rodeo::transport
