#include "card/dma/span_reader.h"

#include <fmt/core.h>

namespace rodeo::card {

Result<SpanReader> SpanReader::create(DmaChannel& channel, std::uint32_t superpage_bytes) {
  const auto wrong = [&](std::string what) {
    return std::unexpected(Error{"card.bad_dma", std::move(what), channel.card().address().text(),
                                 "choose another superpage size or a larger buffer"});
  };
  if (superpage_bytes == 0 || superpage_bytes % channel.granule() != 0 || superpage_bytes > channel.largest())
    return wrong(fmt::format("superpages of {} bytes: this card takes multiples of {} up to {}", superpage_bytes,
                             channel.granule(), channel.largest()));
  // The ring of a FELIX is the whole buffer, so superpages must fill it.
  std::size_t count = channel.memory().size() / superpage_bytes;
  if (channel.card().type() == CardType::felix &&
      channel.memory().size() / channel.granule() * channel.granule() != count * superpage_bytes)
    return wrong(fmt::format("a ring of {} bytes is not whole superpages of {}", channel.memory().size(), superpage_bytes));
  if (count < 2)
    return wrong(
        fmt::format("a buffer of {} bytes has fewer than two superpages of {}", channel.memory().size(), superpage_bytes));
  return SpanReader(channel, superpage_bytes, count);
}

Result<void> SpanReader::start() {
  if (channel_->state() == DmaState::started) return {};
  RODEO_TRY(channel_->start());
  held_.clear();
  free_.clear();
  first_held_ = current_ = handed_ = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Superpage superpage;
    superpage.offset = i * bytes_;
    superpage.bytes = bytes_;
    free_.push(superpage);
  }
  push_free();
  return channel_->fill();
}

void SpanReader::push_free() {
  while (!free_.empty() && channel_->push(free_.front()) == PushStatus::done) (void)free_.pop();
}

Result<std::optional<CardSpan>> SpanReader::next() {
  auto ready = channel_->front();
  if (!ready) {
    push_free();
    RODEO_TRY(channel_->fill());
    ready = channel_->front();
  }
  while (ready && !ready->ready) {  // came back unused at a stop
    (void)channel_->pop();
    ready = channel_->front();
  }
  CardSpan span;
  span.superpage = current_;
  if (ready) {
    span.bytes = channel_->memory().subspan(ready->offset + handed_, ready->received - handed_);
    span.link = ready->link;
    span.last = true;
    held_.push(*ready);
    (void)channel_->pop();
    ++current_;
    handed_ = 0;
    return span;
  }
  const std::uint32_t grown = channel_->growing();
  if (grown <= handed_) return std::nullopt;
  // Only superpages of a ring grow, and a ring has them in order.
  span.bytes = channel_->memory().subspan(current_ % count_ * bytes_ + handed_, grown - handed_);
  handed_ = grown;
  return span;
}

Result<void> SpanReader::release_before(std::uint64_t superpage) {
  while (!held_.empty() && first_held_ < superpage) {
    free_.push(held_.pop());
    ++first_held_;
  }
  if (channel_->state() != DmaState::started) return {};
  push_free();
  // fill() costs a store for a FELIX, and a round trip to other cards; for these, next() calls it anyway when it has no
  // data.
  const std::size_t waiting = channel_->transfer_capacity() - channel_->transfer_room();
  if (channel_->card().type() != CardType::felix && waiting < count_ / 4) return {};
  return channel_->fill();
}

Result<void> SpanReader::stop() { return channel_->stop(); }

}  // namespace rodeo::card
