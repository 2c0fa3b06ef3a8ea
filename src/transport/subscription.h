// What a publisher has of one subscriber: the links that it wants, and the pages that are on their way to it. No socket, no thread, no clock of its own.
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

/// Why a page was closed.
enum class Flush : std::uint8_t {
  full,        ///< the next chunk had no room
  time,        ///< its first run had waited for long enough
  clock,       ///< to say the time: there was little or nothing to send
  end,         ///< the subscriber leaves, or no more will come
  unbuffered,  ///< the subscriber wants each run at once
  count
};
using FlushCounts = std::array<std::uint64_t, static_cast<std::size_t>(Flush::count)>;

/// Fills pages in a ring of slots, one after the other. A slot is filled, then full, then the network's, then kept until the subscriber says that it
/// has the page, then free.
class PageRing {
 public:
  PageRing(std::span<std::byte> memory, std::size_t page_bytes);

  std::size_t page_bytes() const { return page_bytes_; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(bytes_.size()); }

  /// The page that is being filled; nullptr: there is no slot for one.
  formats::NetworkPageWriter* writer();
  bool has_runs() const { return writer_ && writer_->runs() > 0; }

  /// Closes the page that is being filled: it is the next to be sent. `chunks`: that have come into pages so far, this one included.
  void close(std::uint64_t clock_ns, std::uint64_t chunks);

  /// The next full page to be sent.
  struct Full {
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };
  std::optional<Full> next() const;
  void sending();                 ///< next() is the network's
  void sent(std::uint32_t slot);  ///< and is no longer
  /// The subscriber has so many pages in all. False: so many have never been sent to it.
  bool taken(std::uint64_t pages);
  /// The connection is gone, and the network has none of them. What the subscriber does not have is sent again.
  void unsend();

  std::uint64_t closed() const { return closed_; }                                      ///< pages in all
  std::uint32_t filled() const { return static_cast<std::uint32_t>(closed_ - done_); }  ///< of these, not free again
  bool empty() const { return done_ == closed_ && !has_runs(); }
  std::uint64_t taken_chunks() const { return taken_chunks_; }

 private:
  void free_slots();

  std::span<std::byte> memory_;
  std::size_t page_bytes_;
  std::optional<formats::NetworkPageWriter> writer_;  // of slot closed_ % slots
  std::vector<std::uint32_t> bytes_;                  // of each slot's full page
  std::vector<std::uint64_t> chunks_;                 // of each slot: that had come into pages when it was closed
  std::vector<bool> on_network_;                      // each slot
  std::uint64_t closed_ = 0;
  std::uint64_t given_ = 0;       // to the network, on this connection or before
  std::uint64_t most_given_ = 0;  // on any connection
  std::uint64_t taken_ = 0;       // by the subscriber
  std::uint64_t done_ = 0;        // taken, and not on the network either
  std::uint64_t taken_chunks_ = 0;
};

/// The links of one subscription, by position, and their pages.
class Subscription {
 public:
  /// `links`: the publisher's index of each position. `begun`: of each of these links, whether it is in the middle of a chunk, whose rest is not for us.
  /// `counts`: chunks that the link has had so far. `clock_ns`: the stream's, where the session's begins.
  Subscription(formats::ControlSubscribe wish, std::vector<LinkIndex> links, std::span<std::byte> memory,
               std::size_t page_bytes, std::span<const std::uint32_t> counts, std::span<const std::uint8_t> begun,
               std::uint64_t clock_ns);

  const formats::ControlSubscribe& wish() const { return wish_; }
  /// The subscriber has come back, perhaps from another address.
  void resume(formats::ControlSubscribe wish) { wish_ = std::move(wish); }
  const std::vector<LinkIndex>& links() const { return links_; }
  PageRing& ring() { return ring_; }
  const PageRing& ring() const { return ring_; }

  /// No more comes into pages: the subscriber has said so.
  void leave() { left_ = true; }
  bool left() const { return left_; }

  /// Copies a run of a link into pages, from `from` on; `count`: chunks that the link has had before the run. False: there is no slot; again later, with
  /// the same. A monitor is never short of slots: chunks are dropped.
  bool append(std::size_t position, std::uint32_t count, const ChunkRun& run, formats::RunPlace& from);

  /// Closes the page that is being filled, if it has something or is to tell the clock. `clock_ns`: of the stream. False: there was no slot.
  bool close_page(std::uint64_t clock_ns, Flush why);

  /// All runs that the stream has had up to this time are in pages.
  void set_clock(std::uint64_t clock_ns) { clock_ns_ = clock_ns; }

  std::uint64_t chunks() const { return chunks_; }
  /// In pages that the subscriber has not said to have.
  std::uint64_t untaken_chunks() const { return chunks_ - ring_.taken_chunks(); }
  std::uint64_t dropped_chunks() const { return dropped_chunks_; }
  const FlushCounts& flushes() const { return flushes_; }  ///< pages by the reason for which they were closed

 private:
  struct State {
    std::uint32_t base = 0;   // chunks that are not counted: before the subscription
    bool skips_rest = false;  // of a chunk in parts, whose beginning it has not had
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
