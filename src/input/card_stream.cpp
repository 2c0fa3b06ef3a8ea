#include "input/card_stream.h"

#include <algorithm>

#include "base/clock.h"
#include "base/named_counters.h"

namespace rodeo::input {
namespace {

constexpr std::size_t kPages = 256;
constexpr int kStepsWithoutChunks = 32;  // limit of one poll(), so that the worker can do other work
// The lead that a card may gain on the others; shorter than the silence that stops a clock.
constexpr std::uint64_t kClockLeadNs = 2'000'000;

}  // namespace

CardStream::CardStream(std::vector<Walk> walks, std::uint32_t max_chunk_bytes) : max_chunk_bytes_(max_chunk_bytes) {
  formats::DecodeBuffer::Capacity room;
  for (Walk& walk : walks) {
    for (const auto& wanted : {walk.decoder->room(), walk.decoder->finish_room()}) {
      room.runs = std::max(room.runs, wanted.runs);
      room.entries = std::max(room.entries, wanted.entries);
      room.carry_bytes = std::max(room.carry_bytes, wanted.carry_bytes);
    }
    walk.spans->add_walker();
    for (const LinkIndex link : walk.links) {
      if (link >= card_of_.size()) card_of_.resize(link + std::size_t{1});
      card_of_[link] = static_cast<std::uint32_t>(positions_.size());
    }
    place_.cpus.insert(place_.cpus.end(), walk.place.cpus.begin(), walk.place.cpus.end());
    positions_.push_back({.walk = std::move(walk)});
  }
  for (std::size_t i = 0; i < kPages; ++i) free_.put(pages_.emplace_back(room, *this));
}

void CardStream::release(Page& page) noexcept {
  auto& own = static_cast<CardPage&>(page);
  if (own.slot != nullptr) CardSpans::release(*own.slot);
  free_.give_back(own);
}

// Decodes the next piece at a position. False if there are no data.
bool CardStream::step(Position& position, CardPage& page) {
  CardSpans& spans = *position.walk.spans;
  CardSpans::Slot* slot = spans.at(position.number);
  if (slot == nullptr) {
    // Read ended() first: after it no span can arrive, so a span that is then absent will never arrive.
    const bool ended = spans.ended();
    spans.pump(base::steady_now_ns());
    slot = spans.at(position.number);
    if (slot == nullptr) {
      if (!ended || position.finished) return false;
      position.finished = true;
      position.walk.decoder->finish(page.decoded);
      page.slot = nullptr;
      return true;
    }
  }
  const std::size_t taken = position.walk.decoder->decode(slot->span, position.at, page.decoded);
  position.at += taken;
  page.slot = slot;
  CardSpans::keep(*slot);
  if (position.at >= slot->span.bytes.size() || taken == 0) {
    CardSpans::release(*slot);
    ++position.number;
    position.at = 0;
  }
  return true;
}

PollStatus CardStream::poll(Page*& out) {
  if (!placed_) {
    placed_ = true;
    (void)card::stay_at_card(place_);
  }
  CardPage* page = free_.acquire();
  if (page == nullptr) {
    // This stream cannot read now, but other readers' memory must return and a stop must continue.
    for (const Position& position : positions_) position.walk.spans->pump(base::steady_now_ns());
    return PollStatus::full;
  }
  std::size_t idle = 0;
  for (int i = 0; i < kStepsWithoutChunks && idle < positions_.size(); ++i) {
    Position& position = positions_[turn_];
    page->decoded.clear();
    if (position.held || !step(position, *page)) {
      ++idle;
      turn_ = turn_ + 1 == positions_.size() ? 0 : turn_ + 1;
      continue;
    }
    idle = 0;
    if (!page->decoded.runs().empty()) {
      // One page a turn: a card that always has data must not block the others.
      turn_ = turn_ + 1 == positions_.size() ? 0 : turn_ + 1;
      return deliver(*page, position, out);
    }
    if (page->slot != nullptr) CardSpans::release(*page->slot);
  }
  free_.put(*page);
  if (idle < positions_.size()) return PollStatus::empty;
  return check_cards() ? PollStatus::end : PollStatus::empty;
}

// True if no more data will come. Checks that all cards that are not held have shown all data up to their clocks.
bool CardStream::check_cards() {
  bool finished = true;
  for (const Position& position : positions_) {
    if (position.held) position.walk.spans->pump(base::steady_now_ns());  // notices failures while the card is held
    finished = finished && position.finished && !position.held;
  }
  advance_clock();
  return finished;
}

// The lead that a card gained while it was held, or while another stood still, must not count in its own next silence.
void CardStream::advance_clock() {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t least = kNone;
  for (const Position& position : positions_) {
    if (!position.held && !position.finished)
      least = std::min(least, position.walk.spans->clock_ns() - position.clock_lead_ns);
  }
  if (least != kNone) clock_ns_ = std::max(clock_ns_, least);
  for (Position& position : positions_) {
    const std::uint64_t latest = clock_ns_ + (position.held ? 0 : kClockLeadNs);
    const std::uint64_t clock = position.walk.spans->clock_ns();
    if (clock - position.clock_lead_ns > latest) position.clock_lead_ns = clock - latest;
  }
}

PollStatus CardStream::deliver(CardPage& page, const Position& position, Page*& out) {
  for (ChunkRun& run : page.decoded.own_runs()) run.link = position.walk.links[run.link];
  page.runs = page.decoded.runs();
  delivered_.add(page.runs);
  page.references.store(1, std::memory_order_relaxed);
  out = &page;
  return PollStatus::page;
}

void CardStream::want(LinkIndex link, bool wanted) {
  Walk& walk = positions_[card_of_[link]].walk;
  walk.decoder->want(static_cast<LinkIndex>(std::ranges::find(walk.links, link) - walk.links.begin()), wanted);
}

double CardStream::memory_fill() const {
  double fill = 0;
  for (const Position& position : positions_) fill = std::max(fill, position.walk.spans->memory_fill());
  return fill;
}

std::vector<NamedCounter> CardStream::decoder_counters() const {
  std::vector<NamedCounter> all;
  for (const Position& position : positions_) {
    for (const NamedCounter& counter : position.walk.decoder->counters()) base::add_counter(all, counter);
  }
  return all;
}

}  // namespace rodeo::input
