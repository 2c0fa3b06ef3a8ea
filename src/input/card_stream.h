// One worker's walk through the memory of one or several cards; decodes its own links in poll().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "card/numa.h"
#include "input/card_spans.h"
#include "input/chunk_limit.h"
#include "input/delivered.h"
#include "input/free_list.h"
#include "input/span_decoder.h"
#include "rodeo/input.h"

namespace rodeo::input {

class CardStream final : public DataStream, public ChunkLimit {
 public:
  /// One card of this stream: where its spans come from, who decodes them, and the stream's index of each of the decoder's links.
  struct Walk {
    std::shared_ptr<CardSpans> spans;
    std::unique_ptr<SpanDecoder> decoder;
    std::vector<LinkIndex> links;
    card::ReaderPlace place = {};  ///< of whoever polls
  };

  /// `max_chunk_bytes`: that the decoders join.
  explicit CardStream(std::vector<Walk> walks, std::uint32_t max_chunk_bytes = 64U << 10);

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override;
  /// The card that is furthest behind, of those that are not held; no card's clock gets ahead of the others' by more than a moment.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  double memory_fill() const override;
  /// Cards, in the order of the walks.
  std::uint32_t sources() const override { return static_cast<std::uint32_t>(positions_.size()); }
  std::uint32_t source_of(LinkIndex link) const override { return card_of_[link]; }
  bool source_ended(std::uint32_t source) const override { return positions_[source].finished; }
  void hold(std::uint32_t source, bool held) override { positions_[source].held = held; }
  void want(LinkIndex link, bool wanted) override;
  std::uint32_t max_chunk_bytes() const override { return max_chunk_bytes_; }

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
    bool held = false;                // by the builder: it is not walked
    std::uint64_t clock_lead_ns = 0;  // of its clock, that does not count
  };

  PollStatus deliver(CardPage& page, const Position& position, Page*& out);
  bool step(Position& position, CardPage& page);
  bool look_around();
  void advance_clock();

  const std::uint32_t max_chunk_bytes_;
  std::vector<Position> positions_;
  std::vector<std::uint32_t> card_of_;  // position of each link
  std::size_t turn_ = 0;
  card::ReaderPlace place_;  // that of all its cards together
  bool placed_ = false;
  std::deque<CardPage> pages_;
  FreeList<CardPage> free_;
  std::uint64_t clock_ns_ = 0;
  Delivered delivered_;
};

}  // namespace rodeo::input
