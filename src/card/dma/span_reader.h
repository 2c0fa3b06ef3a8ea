// Reads a DMA channel as an ordered sequence of spans, which are released in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/dma/channel.h"
#include "card/dma/fixed_queue.h"
#include "rodeo/card.h"

namespace rodeo::card {

/// Divides the channel's buffer into superpages and keeps them in circulation. For one thread; another thread may call
/// release_before() if the caller serialises the calls.
class SpanReader {
 public:
  /// Uses as many superpages of `superpage_bytes` as the buffer holds. Error card.bad_dma if the channel cannot take them,
  /// or if they are fewer than two.
  static Result<SpanReader> create(DmaChannel& channel, std::uint32_t superpage_bytes);

  /// Starts the channel and gives it all superpages. No effect if started.
  Result<void> start();
  /// The next span in order, or nothing if none has arrived; never waits. A superpage of a CRU or C-RORC is one span; one of
  /// a FELIX may come in several spans while the card fills it. After stop() it returns the filled superpages.
  Result<std::optional<CardSpan>> next();
  /// Gives superpages with lower numbers back to the card, if next() has returned them completely.
  Result<void> release_before(std::uint64_t superpage);
  /// Stops the channel; filled superpages can still be read.
  Result<void> stop();

  DmaChannel& channel() const { return *channel_; }
  /// Superpages that the reader holds, or that wait for it; the card has the others.
  std::size_t held() const { return held_.size() + channel_->ready_size(); }
  std::size_t superpages() const { return count_; }

 private:
  SpanReader(DmaChannel& channel, std::uint32_t bytes, std::size_t count)
      : channel_(&channel), bytes_(bytes), count_(count), held_(count), free_(count) {}
  void push_free();

  DmaChannel* channel_;
  std::uint32_t bytes_;
  std::size_t count_;
  FixedQueue<Superpage> held_;  // returned completely, oldest first
  FixedQueue<Superpage> free_;  // waiting for room in the transfer queue
  std::uint64_t first_held_ = 0;
  std::uint64_t current_ = 0;  // number of the next superpage
  std::uint32_t handed_ = 0;   // bytes of the current superpage that next() has returned
};

}  // namespace rodeo::card
