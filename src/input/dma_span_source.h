// A card's DMA channel as a source of spans for several workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "card/card.h"
#include "card/dma/channel.h"
#include "card/dma/fixed_queue.h"
#include "card/dma/memory.h"
#include "card/dma/span_reader.h"
#include "input/card_spans.h"

namespace rodeo::input {

/// Owns its memory and its channel; shares the card with sources of other channels. One caller at a time.
class DmaSpanSource final : public SpanSource {
 public:
  struct Settings {
    unsigned channel = 0;
    std::uint64_t memory_bytes = 0;     ///< a multiple of superpage_bytes
    std::uint32_t superpage_bytes = 0;  ///< a multiple of 32 KiB
    int node = -1;                      ///< NUMA node to bind the memory to; -1: any
    card::DmaSettings dma;
  };
  /// Takes the channel's lock and registers the memory with the card.
  static Result<std::unique_ptr<DmaSpanSource>> open(std::shared_ptr<card::Card> card, const Settings& settings);

  Result<void> start() override;
  Result<void> stop() override;
  Result<std::optional<CardSpan>> next() override;
  void give_back() override;
  std::uint64_t lost_packets() const override { return lost_packets_; }
  std::uint64_t memory_bytes() const override { return memory_.bytes().size(); }

  card::DmaChannel& channel() { return *channel_; }
  card::Card& card() { return *card_; }
  /// Text for logs: "256 MiB on 2 MiB huge pages".
  std::string memory_description() const { return memory_.description(); }

 private:
  struct Handed {
    std::uint64_t superpage = 0;
    bool last = false;
  };

  DmaSpanSource(std::shared_ptr<card::Card> card, card::DmaMemory memory);

  Result<std::optional<CardSpan>> check_presence();
  std::optional<std::uint64_t> dropped_packets();

  std::shared_ptr<card::Card> card_;
  card::DmaMemory memory_;
  std::unique_ptr<card::DmaChannel> channel_;
  std::optional<card::SpanReader> reader_;
  card::FixedQueue<Handed> handed_;  // spans in use, oldest first
  std::uint64_t last_exchange_ns_ = 0;
  std::uint64_t silent_since_ns_ = 0;  // time of the last data or of the last question to the card; 0: not silent
  std::optional<Error> failure_;       // the error of the last superpage that could not be returned
  bool stopped_ = false;
  std::optional<std::uint64_t> dropped_at_start_;  // the card's count at start()
  std::uint64_t lost_packets_ = 0;
};

}  // namespace rodeo::input
