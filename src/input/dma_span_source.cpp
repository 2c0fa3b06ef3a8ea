#include "input/dma_span_source.h"

#include <array>

#include "base/clock.h"

namespace rodeo::input {
namespace {

// Shortest time between two questions to a card whose queues are registers: each question crosses the bus twice.
constexpr std::uint64_t kExchangeIntervalNs = 200'000;
constexpr std::uint64_t kQuestionIntervalNs = 250'000'000;
constexpr std::size_t kMostSpans = 8192;

}  // namespace

DmaSpanSource::DmaSpanSource(std::shared_ptr<card::Card> card, card::DmaMemory memory)
    : card_(std::move(card)), memory_(std::move(memory)), handed_(kMostSpans) {}

Result<std::unique_ptr<DmaSpanSource>> DmaSpanSource::open(std::shared_ptr<card::Card> card, const Settings& settings) {
  auto memory = RODEO_TRY_WITHIN(card::DmaMemory::create(settings.memory_bytes, settings.node), "memory for the card");
  std::unique_ptr<DmaSpanSource> source(new DmaSpanSource(std::move(card), std::move(memory)));
  source->channel_ =
      RODEO_TRY(card::DmaChannel::open(*source->card_, settings.channel, source->memory_.shared(), settings.dma));
  source->reader_ = RODEO_TRY(card::SpanReader::create(*source->channel_, settings.superpage_bytes));
  return source;
}

Result<void> DmaSpanSource::start() {
  auto started = reader_->start();
  // A FELIX channel counts from its enable. A CRU keeps counting, so its start value is subtracted.
  if (started) dropped_at_start_ = card_->type() == card::CardType::felix ? std::uint64_t{0} : dropped_packets();
  return started;
}

std::optional<std::uint64_t> DmaSpanSource::dropped_packets() {
  const auto health = channel_->health();
  return health ? health->dropped_packets : std::nullopt;
}

Result<void> DmaSpanSource::stop() {
  if (stopped_) return {};
  stopped_ = true;
  // This read waits until a stalled card (emulators can stall) answers; after it the channel's short patience is enough.
  std::array<std::byte, 2> vendor{};
  (void)card_->function().read(card::pci::kConfigurationRegion, 0, vendor);
  auto stopped = reader_->stop();
  const auto dropped = dropped_packets();
  // The counting registers have 32 bits, so the difference is taken modulo 2^32.
  if (dropped && dropped_at_start_) lost_packets_ = static_cast<std::uint32_t>(*dropped - *dropped_at_start_);
  return stopped;
}

Result<std::optional<CardSpan>> DmaSpanSource::next() {
  if (failure_) return std::unexpected(*failure_);
  if (handed_.room() == 0) return std::nullopt;
  if (!stopped_ && card_->type() != card::CardType::felix && channel_->ready_size() == 0) {
    const std::uint64_t now = base::steady_now_ns();
    if (now - last_exchange_ns_ < kExchangeIntervalNs) return std::nullopt;
    last_exchange_ns_ = now;
  }
  auto span = RODEO_TRY(reader_->next());
  if (!span) return stopped_ ? Result<std::optional<CardSpan>>{} : check_presence();
  silent_since_ns_ = 0;
  handed_.push({.superpage = span->superpage, .last = span->last});
  return span;
}

// The ring in plain memory looks the same for a removed card and for an idle one, so a silent card is asked now and then.
Result<std::optional<CardSpan>> DmaSpanSource::check_presence() {
  const std::uint64_t now = base::steady_now_ns();
  if (silent_since_ns_ == 0) silent_since_ns_ = now;
  if (now - silent_since_ns_ < kQuestionIntervalNs) return std::nullopt;
  silent_since_ns_ = now;
  std::array<std::byte, 2> vendor{};
  RODEO_TRY(card_->function().read(card::pci::kConfigurationRegion, 0, vendor));
  if (vendor[0] == std::byte{0xff} && vendor[1] == std::byte{0xff}) {
    return std::unexpected(
        Error{"card.gone", "the card has left the bus", card_->address().text(), "look at its power and its slot"});
  }
  return std::nullopt;
}

void DmaSpanSource::give_back() {
  const Handed span = handed_.pop();
  if (!span.last) return;
  if (auto released = reader_->release_before(span.superpage + 1); !released && !failure_) failure_ = released.error();
}

}  // namespace rodeo::input
