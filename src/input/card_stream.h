// One worker's walk through the memory of one or several cards. It decodes its own links in poll().
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
  /// One card of this stream: its spans, its decoder, and the stream's index of each of the decoder's links.
  struct Walk {
    std::shared_ptr<CardSpans> spans;
    std::unique_ptr<SpanDecoder> decoder;
    std::vector<LinkIndex> links;
    card::ReaderPlace place = {};  ///< CPUs for the polling thread
  };

  /// `max_chunk_bytes`: limit up to which the decoders join chunks.
  explicit CardStream(std::vector<Walk> walks, std::uint32_t max_chunk_bytes = 64U << 10);

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override;
  /// The clock of the slowest card, held cards excluded. A card's clock counts at most 2 ms ahead of the others.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  double memory_fill() const override;
  /// The number of cards; source numbers follow the order of the walks.
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
    CardSpans::Slot* slot = nullptr;  // the span that the page's runs point into
    CardPage* next_free = nullptr;
  };
  struct Position {
    Walk walk;
    std::uint64_t number = 0;  // number of the current span
    std::size_t at = 0;        // decoded bytes of that span
    bool finished = false;
    bool held = false;                // the builder holds the card, so it is not read
    std::uint64_t clock_lead_ns = 0;  // part of the card's clock that does not count
  };

  PollStatus deliver(CardPage& page, const Position& position, Page*& out);
  bool step(Position& position, CardPage& page);
  bool check_cards();
  void advance_clock();

  const std::uint32_t max_chunk_bytes_;
  std::vector<Position> positions_;
  std::vector<std::uint32_t> card_of_;  // position of each link's card
  std::size_t turn_ = 0;
  card::ReaderPlace place_;  // the CPUs of all cards together
  bool placed_ = false;
  std::deque<CardPage> pages_;
  FreeList<CardPage> free_;
  std::uint64_t clock_ns_ = 0;
  Delivered delivered_;
};

}  // namespace rodeo::input
