#include "readout/retention/retention.h"

#include <algorithm>

namespace rodeo::readout {

Retention::Retention(std::span<const SourceId> robs, const FragmentBook::Settings& settings)
    : robs_(robs.begin(), robs.end()) {
  books_.reserve(robs_.size());
  for (std::size_t i = 0; i < robs_.size(); ++i) books_.emplace_back(settings);
}

std::optional<std::size_t> Retention::rob(SourceId id) const {
  const auto found = std::ranges::find(robs_, id);
  if (found == robs_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - robs_.begin());
}

void Retention::align(std::uint64_t run_at, bool newest) {
  for (FragmentBook& book : books_) book.align(run_at, newest);
}

void Retention::set_alone() {
  for (FragmentBook& book : books_) book.set_alone();
}

bool Retention::unplaced() const { return std::ranges::any_of(books_, &FragmentBook::unplaced); }

void Retention::clear(const formats::ClearRequest& request, std::uint64_t now_ns) {
  request.for_each_id([&](std::uint64_t id) {
    for (FragmentBook& book : books_) book.clear(id, now_ns);
  });
}

void Retention::advance(std::uint64_t now_ns) {
  for (FragmentBook& book : books_) book.advance(now_ns);
}

void Retention::end() {
  for (FragmentBook& book : books_) book.end();
}

void Retention::release_all() {
  for (FragmentBook& book : books_) book.release_all();
}

formats::HoldingsReply Retention::holdings(std::uint64_t from, std::size_t most) const {
  using formats::GlobalIdRange;
  formats::HoldingsReply reply;
  std::vector<GlobalIdRange> pieces;
  for (const FragmentBook& book : books_) {
    if (book.has_newest()) reply.newest = reply.newest ? std::max(*reply.newest, book.newest()) : book.newest();
    book.for_each_id([&](std::uint64_t id) {
      if (id < from) return;
      if (!pieces.empty() && pieces.back().first + pieces.back().count == id) {
        ++pieces.back().count;
      } else {
        pieces.push_back({id, 1});
      }
    });
  }
  std::ranges::sort(pieces, {}, &GlobalIdRange::first);
  std::uint64_t ids = 0;
  for (const GlobalIdRange& piece : pieces) {
    const std::uint64_t end = reply.ranges.empty() ? 0 : reply.ranges.back().first + reply.ranges.back().count;
    const bool joins = !reply.ranges.empty() && piece.first <= end;
    const std::uint64_t from_here = joins ? end : piece.first;
    const std::uint64_t wanted = std::max(from_here, piece.first + piece.count) - from_here;
    const auto count = static_cast<std::uint32_t>(std::min(wanted, formats::kMostHoldingsIds - ids));
    if (joins) {
      reply.ranges.back().count += count;
    } else if (count > 0 && reply.ranges.size() < most) {
      reply.ranges.push_back({piece.first, count});
    } else {
      reply.more = true;
      break;
    }
    ids += count;
    if (count < wanted) {
      reply.more = true;
      break;
    }
  }
  return reply;
}

std::optional<std::uint64_t> Retention::first() const {
  std::optional<std::uint64_t> first;
  for (const FragmentBook& book : books_) {
    if (!book.has_newest()) continue;
    if (!book.first()) return std::nullopt;
    first = std::max(first.value_or(0), *book.first());
  }
  return first;
}

std::uint64_t Retention::size() const {
  std::uint64_t sum = 0;
  for (const FragmentBook& book : books_) sum += book.size();
  return sum;
}

std::uint64_t Retention::bytes() const {
  std::uint64_t sum = 0;
  for (const FragmentBook& book : books_) sum += book.bytes();
  return sum;
}

double Retention::fill() const {
  double most = 0;
  for (const FragmentBook& book : books_)
    most = std::max(most, static_cast<double>(book.size()) / static_cast<double>(book.most()));
  return most;
}

FragmentBook::Counts Retention::counts() const {
  FragmentBook::Counts sum;
  for (const FragmentBook& book : books_) sum += book.counts();
  return sum;
}

}  // namespace rodeo::readout
