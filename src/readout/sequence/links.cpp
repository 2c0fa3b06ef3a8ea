#include "readout/sequence/links.h"

#include <algorithm>

namespace rodeo::readout {

Place Link::first_aside() const {
  for (std::size_t i = 0; i < chunks.placed(); ++i) {
    if (chunks[i].is_aside()) return chunks[i].place;
  }
  return going;
}

void Links::add(LinkSequence& sequence, std::size_t reader, std::size_t window) {
  while (reader >= readers_.size()) readers_.emplace_back().pace = std::make_unique<Pace>(settings_.format.period());
  readers_[reader].window = window;
  sequence.pace = readers_[reader].pace.get();
  links_.push_back({.sequence = sequence, .reader = reader, .window = window, .chunks = PendingChunks(settings_.aside)});
}

bool Links::delivered(const Link& link, Sequence number) const {
  if (take_turns()) return came(number);
  const Sequence next = link.position();
  return number < next && next - 1 - number < LinkSequence::kHistory &&
         (link.sequence.history >> (next - 1 - number) & 1U) != 0;
}

std::uint32_t Links::spread(const Link& link) const {
  return take_turns() ? std::max<std::uint32_t>(link.sequence.stride, static_cast<std::uint32_t>(links_.size())) : 1;
}

bool Links::live(const Link& link) const {
  const Reader& reader = readers_[link.reader];
  return reader.now <= std::max(link.sequence.seen.load(std::memory_order_relaxed), reader.started) + settings_.timeout_ns;
}

bool Links::anything_lives() const {
  return std::ranges::any_of(links_, [&](const Link& link) { return !link.removed() && live(link); });
}

Sequence Links::front() const {
  Sequence front = 0;
  for (const Link& link : links_) {
    if (is_here(link)) front = std::max(front, link.position());
  }
  return front;
}

Sequence Links::front_beside(const Link& of) const {
  Sequence front = 0;
  for (const Link& link : links_) {
    if (&link != &of && link.reader == of.reader && is_here(link)) front = std::max(front, link.position());
  }
  return front != 0 ? front : this->front();
}

Sequence Links::foremost() const {
  Sequence foremost = std::max(oldest, followed_to);
  for (const Link& link : links_) foremost = std::max(foremost, link.position() - link.sequence.stride + 1);
  return take_turns() ? std::max(foremost, events_->head()) : foremost;
}

Sequence Links::last_came() const {
  Sequence came = kRunFirst;
  for (const Link& link : links_) came = std::max(came, link.position() - link.sequence.stride + 1);
  return came;
}

std::optional<Sequence> Links::reached_by_two() const {
  Sequence first = 0;
  Sequence second = 0;
  std::size_t links = 0;
  for (const Link& link : links_) {
    if (link.removed()) continue;
    ++links;
    second = std::max(second, std::min(first, link.position()));
    first = std::max(first, link.position());
  }
  return links < 2 ? std::nullopt : std::optional(second);
}

void Links::note_chunk(Link& link, std::uint64_t now) {
  note_clock(link.reader, now);
  // If all links have been silent, their silence counts from here: they may return together.
  if (!started_ || std::ranges::none_of(links_, [&](const Link& of) { return live(of); })) {
    for (Reader& reader : readers_) reader.started = reader.now;
  }
  started_ = true;
  link.sequence.seen.store(now, std::memory_order_relaxed);
}

void Links::note_over(std::size_t reader) {
  readers_[reader].over = true;
  all_over_ = std::ranges::all_of(readers_, &Reader::over);
}

void Links::set(Link& link, Stand stand) {
  const auto held_up = [](Stand of) { return of == Stand::goes_on ? 0U : 1U; };
  held_up_.fetch_add(held_up(stand) - held_up(link.stand), std::memory_order_relaxed);
  link.stand = stand;
}

void Links::begin_run() {
  oldest = kRunFirst;
  // A link that was restored before the run began takes part from the beginning.
  for (Link& link : links_) link.sequence.next.store(kRunFirst, std::memory_order_relaxed);
  for (const Reader& reader : readers_) begun_at = std::max(begun_at, reader.now);
}

void Links::shift_aside(std::int64_t events) {
  for (Link& link : links_) {
    if (!link.away()) continue;
    link.going.index += events;
    for (std::size_t i = 0; i < link.chunks.placed(); ++i) {
      if (link.chunks[i].is_aside()) link.chunks[i].place.index += events;
    }
  }
}

}  // namespace rodeo::readout
