// A DMA channel as its reader wants it: an ordered sequence of spans, given back in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "card/dma/channel.h"
#include "card/dma/fixed_queue.h"
#include "rodeo/card.h"

namespace rodeo::card {

/// Owns the division of the channel's buffer into superpages and their way round. One thread, except that release_before() may come from another if
/// the caller serialises.
class SpanReader {
 public:
  /// Superpages of `superpage_bytes`: as many as the buffer holds. card.bad_dma if the channel cannot take them or there are fewer than two.
  static Result<SpanReader> create(DmaChannel& channel, std::uint32_t superpage_bytes);

  /// Starts the channel and gives it all superpages. Ignored if started.
  Result<void> start();
  /// The next span in order, or nothing if there is none now; never waits. A CRU's or C-RORC's superpage is one span, a FELIX's may come in several
  /// while the card fills it. After stop() it hands out what was filled.
  Result<std::optional<CardSpan>> next();
  /// Gives all superpages with lower numbers back to the card. Only those that were handed out whole.
  Result<void> release_before(std::uint64_t superpage);
  /// Stops the channel; what is filled can still be read.
  Result<void> stop();

  DmaChannel& channel() const { return *channel_; }
  /// Superpages that the reader holds or has not been given yet; the rest is the card's.
  std::size_t held() const { return held_.size() + channel_->ready_size(); }
  std::size_t superpages() const { return count_; }

 private:
  SpanReader(DmaChannel& channel, std::uint32_t bytes, std::size_t count)
      : channel_(&channel), bytes_(bytes), count_(count), held_(count), free_(count) {}
  void push_free();

  DmaChannel* channel_;
  std::uint32_t bytes_;
  std::size_t count_;
  FixedQueue<Superpage> held_;  // handed out whole, oldest first
  FixedQueue<Superpage> free_;  // waiting for room in the transfer queue
  std::uint64_t first_held_ = 0;
  std::uint64_t current_ = 0;  // number of the superpage that comes next
  std::uint32_t handed_ = 0;   // bytes of it that were handed out
};

}  // namespace rodeo::card
