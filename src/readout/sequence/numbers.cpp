#include "readout/sequence/numbers.h"

namespace rodeo::readout {
namespace {

constexpr std::size_t kSegments = 64;
constexpr std::size_t kListedSegments = 4096;

Sequence distance(Sequence a, Sequence b) { return a > b ? a - b : b - a; }

}  // namespace

Numbers::Numbers(const SequencerSettings& settings)
    : settings_(settings), segments_(settings.listed ? kListedSegments : kSegments, settings.format.ids()) {}

Place Numbers::extended(const Place& from, std::uint32_t id, std::uint32_t behind) {
  const std::uint64_t resets_ahead = ((id >> 24) - from.resets + behind) % kResetRound;
  const std::int64_t low = id & 0xffffffU;
  if (resets_ahead != behind) return {from.resets + resets_ahead - behind, low};
  constexpr std::int64_t kPeriod = 1 << 24;  // without a reset the L1 id goes on from 0 after its last
  constexpr std::int64_t kBehind = 1 << 20;
  const std::int64_t ahead = (low - from.index) & (kPeriod - 1);
  return {from.resets, from.index + (ahead < kPeriod - kBehind ? ahead : ahead - kPeriod)};
}

Place Numbers::resolve(const Place& from, std::uint32_t id, std::uint32_t stride) const {
  return resolve(from, id, LinkSequence::kHistory * stride, std::uint64_t{settings_.step} * stride);
}

Place Numbers::nearest_place(const Place& from, std::uint32_t id) const {
  return resolve(from, id, settings_.window, std::nullopt);
}

// `behind`: events by which the link may be behind. `restart`: ids up to this one are a restart of the counter, if they are
// out of reach.
Place Numbers::resolve(const Place& from, std::uint32_t id, std::uint64_t behind,
                       std::optional<std::uint64_t> restart) const {
  const IdFormat& format = settings_.format;
  if (format.has_ecr()) return extended(from, id);
  const std::uint64_t period = format.period();
  const std::uint64_t ahead = (id - static_cast<std::uint64_t>(from.index)) & format.low_mask();
  if (ahead >= period - std::min(behind, period / 4))
    return {from.resets, from.index + static_cast<std::int64_t>(ahead - period)};
  const bool restarts = ahead > period / 2 || (restart && id <= *restart && ahead > settings_.reach);
  if (format.shows_restarts() && restarts) return {from.resets + 1, id};
  return {from.resets, from.index + static_cast<std::int64_t>(ahead)};
}

Place Numbers::resolve_restart(const Place& from, std::uint32_t id, std::optional<std::uint32_t> next_id,
                               std::uint32_t stride) const {
  const Place place = resolve(from, id, stride);
  const std::int64_t steps = std::int64_t{settings_.step} * stride;
  if (!next_id || place >= from || from.index - place.index <= steps || settings_.format.has_ecr() ||
      !settings_.format.shows_restarts() || id > steps)
    return place;
  const std::uint32_t ahead = (*next_id - id) & settings_.format.low_mask();
  return ahead >= 1 && ahead <= steps ? Place{from.resets + 1, id} : place;
}

Place Numbers::first_place(std::uint32_t id) const {
  return {kResetsOrigin + (settings_.format.has_ecr() ? id >> 24 : 0), id & settings_.format.low_mask()};
}

bool Numbers::is_near(const Place& from, const Place& to, std::uint32_t stride) const {
  const std::int64_t steps = std::int64_t{settings_.step} * stride;
  if (to.resets == from.resets) return to.index >= from.index && to.index - from.index <= steps;
  return to.resets == from.resets + 1 && to.index <= steps;
}

bool Numbers::follows(const Place& from, const Place& to, std::uint32_t stride) const {
  return is_near({from.resets, from.index + 1}, to, stride);
}

bool Numbers::confirms(const Place& from, const Place& to, std::uint32_t stride) const {
  return follows(from, to, stride) && (to.resets == from.resets || settings_.format.has_ecr());
}

bool Numbers::rises(const Place& from, const Place& to) const {
  return to > from && to.resets == from.resets && to.index - from.index < static_cast<std::int64_t>(settings_.window);
}

bool Numbers::is_ambiguous(const LinkSequence& link) const {
  return !settings_.format.has_ecr() && !settings_.listed && segments_.segment_of(link.position()).end != kNoEnd;
}

bool Numbers::restarts_unclearly(Sequence position, Sequence number, std::uint32_t id) const {
  return !settings_.format.shows_restarts() && id <= settings_.step && number > position + settings_.step;
}

void Numbers::enter_segment(LinkSequence& link, const Segment& segment) const {
  link.base = segment.base;
  link.resets = static_cast<std::uint32_t>(segment.resets);
  link.rounds = static_cast<std::uint32_t>(segment.rounds);
  link.expected = settings_.format.id_at(segment.resets, link.position() - segment.base);
}

void Numbers::enter_next_segment(LinkSequence& link) const {
  const Segment& segment = segments_.segment_of(link.position());
  if (link.position() >= segment.first) enter_segment(link, segment);  // else the segment is forgotten
}

std::uint64_t Numbers::unambiguous_period(Sequence number) const {
  const bool has_ecr = settings_.format.has_ecr();
  const std::uint64_t epochs = has_ecr ? kResetRound : 1;
  std::uint64_t period = settings_.format.period();
  const std::size_t last = segments_.find(number);
  for (std::size_t i = last - std::min<std::size_t>(last, 2); i <= last; ++i) {
    if (segments_[i].end == kNoEnd || (has_ecr && segments_[i + 1].resets != segments_[i].resets + 1)) continue;
    period = std::min(period, epochs * (segments_[i].end - segments_[i].first));
  }
  return period;
}

bool Numbers::resets_wrap_first(Sequence number) const {
  return settings_.format.has_ecr() && unambiguous_period(number) < settings_.format.period();
}

std::optional<Sequence> Numbers::nearest_number(Sequence at, std::uint32_t id) const {
  const std::uint64_t quarter = settings_.format.period() / 4;
  std::optional<Sequence> nearest;
  for_each_number(id, at - 3 * quarter + 1, at + quarter + 1, [&](Sequence number) {
    if (!nearest || distance(number, at) < distance(*nearest, at)) nearest = number;
    return false;
  });
  return nearest;
}

void Numbers::begin(const Place& lowest) {
  segments_.open(lowest, kRunFirst, kRunFirst);
  begun_.store(true, std::memory_order_release);
}

void Numbers::open(const Place& lowest, Sequence frontier, Sequence arrived_end, std::uint16_t stride) {
  const auto number = segments_.number(lowest);
  if (number && *number <= frontier + settings_.window) {
    // With few bits, the counters may have restarted instead.
    if (restarts_unclearly(frontier, *number, id(lowest))) unclear_restart_ = *number;
    return;
  }
  // Too far, or another segment. A reset begins at 0; the beginning of a jump, or of a restart elsewhere, is unknown.
  const auto reach = static_cast<std::int64_t>(settings_.reach);
  const bool from_zero = !number && (settings_.format.has_ecr() || lowest.index <= reach);
  const std::int64_t room =
      from_zero && lowest.index < static_cast<std::int64_t>(settings_.window) ? lowest.index : std::min(reach, lowest.index);
  const Place begins{lowest.resets, lowest.index - room};
  if (number) {
    add_skipped(*number - static_cast<Sequence>(room) - arrived_end);
  } else if (from_zero) {
    add_skipped(static_cast<std::uint64_t>(begins.index));
  }
  // Turns (turns.h) end at such a wide gap.
  segments_.open(begins, lowest, frontier + settings_.reach + 2 * std::uint64_t{settings_.step} * stride, arrived_end);
}

}  // namespace rodeo::readout
