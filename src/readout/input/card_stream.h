// One worker's walk through the memory of one or several cards; decodes its own links in poll().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "card/numa.h"
#include "readout/input/card_spans.h"
#include "readout/input/return_list.h"
#include "readout/input/span_decoder.h"
#include "rodeo/input.h"

namespace rodeo::readout {

class CardStream final : public DataStream {
 public:
  /// One card of this stream: where its spans come from, who decodes them, and the stream's index of each of the decoder's links.
  struct Walk {
    std::shared_ptr<CardSpans> spans;
    std::unique_ptr<SpanDecoder> decoder;
    std::vector<LinkIndex> links;
    card::ReaderPlace place = {};  ///< of whoever polls
  };

  explicit CardStream(std::vector<Walk> walks);

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override;
  /// The card that is furthest behind.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return {chunks_.get(), bytes_.get(), pages_polled_.get()}; }
  double memory_fill() const override;

  std::vector<NamedCounter> decoder_counters() const;

 private:
  struct CardPage : Page {
    CardPage(formats::DecodeBuffer::Capacity capacity, CardStream& of) : decoded(capacity) { stream = &of; }
    formats::DecodeBuffer decoded;
    CardSpans::Slot* slot = nullptr;  // what its runs point into
    CardPage* next_free = nullptr;
  };
  struct Position {
    Walk walk;
    std::uint64_t number = 0;  // of the span that is walked
    std::size_t at = 0;        // bytes of it that are decoded
    bool finished = false;
  };

  CardPage* take_page();
  PollStatus deliver(CardPage& page, const Position& position, Page*& out);
  bool step(Position& position, CardPage& page);

  std::vector<Position> positions_;
  std::size_t turn_ = 0;
  card::ReaderPlace place_;  // that of all its cards together
  bool placed_ = false;
  std::deque<CardPage> pages_;
  CardPage* free_ = nullptr;
  ReturnList<CardPage> returned_;
  std::uint64_t clock_ns_ = 0;
  base::Gauge<std::uint64_t> chunks_;
  base::Gauge<std::uint64_t> bytes_;
  base::Gauge<std::uint64_t> pages_polled_;
};

}  // namespace rodeo::readout
