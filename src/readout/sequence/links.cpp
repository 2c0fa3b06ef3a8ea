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
  if (is_round_robin()) return has_arrived(number);
  const Sequence next = link.position();
  return number < next && next - 1 - number < LinkSequence::kHistory &&
         (link.sequence.history >> (next - 1 - number) & 1U) != 0;
}

std::uint32_t Links::spread(const Link& link) const {
  return is_round_robin() ? std::max<std::uint32_t>(link.sequence.stride, static_cast<std::uint32_t>(links_.size())) : 1;
}

bool Links::is_live(const Link& link) const {
  const Reader& reader = readers_[link.reader];
  return reader.now <= std::max(link.sequence.seen.load(std::memory_order_relaxed), reader.started) + settings_.timeout_ns;
}

bool Links::any_live() const {
  return std::ranges::any_of(links_, [&](const Link& link) { return !link.removed() && is_live(link); });
}

Sequence Links::front() const {
  Sequence front = 0;
  for (const Link& link : links_) {
    if (is_here(link)) front = std::max(front, link.position());
  }
  return front;
}

Sequence Links::front_of_others(const Link& other) const {
  Sequence front = 0;
  for (const Link& link : links_) {
    if (&link != &other && link.reader == other.reader && is_here(link)) front = std::max(front, link.position());
  }
  return front != 0 ? front : this->front();
}

Sequence Links::frontier() const {
  Sequence frontier = std::max(oldest, followed_to);
  for (const Link& link : links_) frontier = std::max(frontier, link.position() - link.sequence.stride + 1);
  return is_round_robin() ? std::max(frontier, events_->head()) : frontier;
}

Sequence Links::arrived_end() const {
  Sequence end = kRunFirst;
  for (const Link& link : links_) end = std::max(end, link.position() - link.sequence.stride + 1);
  return end;
}

std::optional<Sequence> Links::second_front() const {
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

void Links::on_chunk(Link& link, std::uint64_t now) {
  set_clock(link.reader, now);
  // If all links have been silent, their silence counts from here: they may return together.
  if (!started_ || std::ranges::none_of(links_, [&](const Link& other) { return is_live(other); })) {
    for (Reader& reader : readers_) reader.started = reader.now;
  }
  started_ = true;
  link.sequence.seen.store(now, std::memory_order_relaxed);
}

void Links::set_over(std::size_t reader) {
  readers_[reader].over = true;
  all_over_ = std::ranges::all_of(readers_, &Reader::over);
}

void Links::set_phase(Link& link, LinkPhase phase) {
  const auto held_up = [](LinkPhase of) { return of == LinkPhase::normal ? 0U : 1U; };
  held_up_.fetch_add(held_up(phase) - held_up(link.phase), std::memory_order_relaxed);
  link.phase = phase;
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
