// The cases of links that are here (H), new (N) or away (A). The tables: cases.md.
#include <algorithm>

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {
namespace {

std::optional<std::uint32_t> id_of(const PendingChunk* chunk) {
  return chunk == nullptr ? std::nullopt : std::optional(chunk->id);
}

}  // namespace

Sequencer::Step Sequencer::judge(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final) {
  if (settings_.listed) return judge_listed(link, chunk, following, final);
  if (link.away()) return judge_away(link, chunk, following, final);
  if (link.here()) return judge_here(link, chunk, following, final);
  return judge_new(link, chunk, following, final);
}

Sequencer::Step Sequencer::judge_here(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final) {
  const LinkSequence& sequence = link.sequence;
  const std::uint32_t stride = links_.spread(link);
  const Sequence oldest = links_.oldest;
  if (chunk.id == sequence.expected && numbers_.is_in_segment(sequence) && !sequence.has_lapsed(oldest, settings_.format))
    return finds_room(link, link.position()) ? accept(link, link.position()) : Step::wait;  // H1
  if (following == nullptr && !final) return Step::wait;                                    // H2
  // The events that the link expected are closed: it was silent, and comes to those that are open.
  const Place expected = link.position() < oldest ? numbers_.place(oldest) : sequence.place();
  const Place place = numbers_.resolve_restart(expected, chunk.id, id_of(following), stride);
  const std::optional<Sequence> number = numbers_.number(place);
  if (place < expected && number && links_.delivered(link, *number)) return end(link, Verdict::duplicate);  // H3
  if (following != nullptr && following->id == chunk.id) return end(link, Verdict::duplicate);              // H4
  const Place after = following == nullptr ? place : numbers_.resolve(place, following->id, stride);
  const bool goes_on_after = following != nullptr && numbers_.follows(place, after, stride);
  if (place < expected) return judge_behind(link, number, following, goes_on_after);
  bool goes_on_without = false;
  if (following != nullptr) {
    const Place on = numbers_.resolve(expected, following->id, stride);
    const bool between = place < on && (place.resets == on.resets || numbers_.is_near(expected, place, stride));
    goes_on_without = numbers_.is_near(expected, on, stride) && !between;
  }
  const std::optional<Sequence> reached = room_.reachable(link, place);
  if (reached && goes_on_after) return accept(link, *reached);         // H8
  if (goes_on_without) return end(link, Verdict::out_of_sequence);     // H9
  if (reached && following == nullptr) return accept(link, *reached);  // H10
  if (reached) {
    // The link skips most events, or the next id is flipped.
    const bool after_reachable = room_.reachable(link, after).has_value();
    if (after < place && after >= expected && after_reachable) return end(link, Verdict::out_of_sequence);  // H11
    const bool leaps = !links_.is_round_robin() && sequence.is_dense() && !numbers_.is_near(expected, place, stride);
    if (leaps && !(after > place && after_reachable)) return end(link, Verdict::out_of_sequence);  // H12
    return accept(link, *reached);                                                                 // H13
  }
  const bool last_of_run =
      following == nullptr && place.resets != expected.resets && numbers_.is_near(expected, place, stride);
  if (last_of_run || numbers_.rises(place, after) || (following != nullptr && numbers_.confirms(place, after, stride)))
    return go_away(link, place);                                           // H14
  if (number && !final && others_may_show_place(link)) return Step::wait;  // H15
  return end(link, Verdict::out_of_sequence);                              // H16
}

// The place is below what is expected.
Sequencer::Step Sequencer::judge_behind(Link& link, const std::optional<Sequence>& number, const PendingChunk* following,
                                        bool goes_on_after) {
  const bool open = number && *number >= links_.oldest;
  if (links_.is_round_robin() && (goes_on_after || following == nullptr) && open && !links_.has_arrived(*number))
    return accept(link, *number);  // H5
  const bool left_out = !links_.is_round_robin() && number && *number + LinkSequence::kHistory >= link.position();
  const bool closed = number && !open && (goes_on_after || *number + settings_.window >= links_.oldest);
  return end(link, left_out || closed ? Verdict::late : Verdict::out_of_sequence);  // H6, H7
}

// For a link of which nothing is known yet, or which was restored.
Sequencer::Step Sequencer::judge_new(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final) {
  if (following == nullptr && !final) return Step::wait;                                        // N1
  if (following != nullptr && following->id == chunk.id) return end(link, Verdict::duplicate);  // N2
  const auto found = begun() ? credibility_.find_place(link, chunk.id) : credibility_.first_place(link, chunk.id);
  if (!found) return end(link, Verdict::out_of_sequence);  // N3
  const Place place = *found;
  if (following != nullptr) {
    const std::uint32_t stride = links_.spread(link);
    const Place after = numbers_.resolve(place, following->id, stride);
    if (!numbers_.confirms(place, after, stride) && !numbers_.rises(place, after))
      return end(link, Verdict::out_of_sequence);  // N4
  }
  if (begun()) {
    if (const auto number = room_.reachable(link, place)) return accept(link, *number);  // N5
    if (following == nullptr) return end(link, Verdict::out_of_sequence);                // N6
  }
  return go_away(link, place);  // N7
}

Sequencer::Step Sequencer::judge_away(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final) {
  const std::uint32_t stride = links_.spread(link);
  const std::int64_t reach = static_cast<std::int64_t>(settings_.reach);
  if (chunk.id == numbers_.id(link.going)) return keep_aside(link, link.going);  // A1
  if (following == nullptr && !final) return Step::wait;                         // A2
  const Place place = numbers_.resolve_restart(link.going, chunk.id, id_of(following), stride);
  const Place expected{link.going.resets, link.going.index - link.sequence.stride + 1};  // turns may change
  const bool goes_on = numbers_.is_near(expected, place, stride) ||
                       (place.resets == expected.resets && place >= expected && place.index - expected.index <= reach);
  if (begun() && (following != nullptr || !goes_on)) {
    if (const auto number = find_return(link, chunk, following, goes_on ? std::optional(place) : std::nullopt)) {
      refute(link);
      return accept(link, *number);  // A3
    }
  }
  if (following != nullptr && following->id == chunk.id) return end(link, Verdict::duplicate);  // A4
  if (place < expected && place >= link.first_aside()) return end(link, Verdict::duplicate);    // A5
  if (following != nullptr) {
    const Place after = numbers_.resolve(place, following->id, stride);
    const Place without = numbers_.resolve(expected, following->id, stride);
    const bool follower_flipped =
        numbers_.is_near(expected, place, stride) && !(numbers_.is_near(expected, without, stride) && without <= place);
    const bool sparse = goes_on && after > place && after.resets == place.resets && after.index - place.index <= reach;
    const bool confirmed = goes_on ? numbers_.follows(place, after, stride) : numbers_.confirms(place, after, stride);
    if (!follower_flipped && !sparse && !confirmed) return end(link, Verdict::out_of_sequence);  // A6
  }
  if (goes_on) return keep_aside(link, place);  // A7
  if (following == nullptr || later_chunk_follows(link, expected, stride))
    return end(link, Verdict::out_of_sequence);  // A8, A9
  // A few chunks elsewhere do not end its stay at the new place: it may come back there.
  const bool patient = !links_.reader_of(link).over && links_.clock(link) - chunk.since < settings_.timeout_ns / 2;
  if (patient && (!begun() || link.chunks.count() - link.chunks.placed() <= settings_.step)) return Step::wait;  // A10
  refute(link);
  const auto elsewhere = link.left ? numbers_.resolve_restart(*link.left, chunk.id, id_of(following), stride)
                         : begun() ? numbers_.nearest_place(numbers_.place(links_.oldest), chunk.id)
                                   : credibility_.first_place(link, chunk.id);
  return elsewhere ? go_away(link, *elsewhere) : end(link, Verdict::out_of_sequence);  // A11
}

// The number of the chunk where the link left, or where the others are, if it and the next chunk are there and not at
// `unless`.
std::optional<Sequence> Sequencer::find_return(const Link& link, const PendingChunk& chunk, const PendingChunk* following,
                                               const std::optional<Place>& unless) const {
  const std::uint32_t stride = links_.spread(link);
  Place base = numbers_.place(links_.oldest);
  if (link.left) base = std::max(base, *link.left);
  const Place back = numbers_.resolve(base, chunk.id, stride);
  const auto number = numbers_.number(back);
  if (!number || back == unless || back < base) return std::nullopt;
  const Sequence others_at = std::max(links_.front_of_others(link), numbers_.number(base).value_or(0));
  if (*number > others_at + settings_.reach || !room_.has_room(link, *number)) return std::nullopt;
  const bool goes_on = following == nullptr || numbers_.follows(back, numbers_.resolve(back, following->id, stride), stride);
  return goes_on ? number : std::nullopt;
}

// True if one of its undecided chunks goes on from here.
bool Sequencer::later_chunk_follows(const Link& link, const Place& expected, std::uint32_t stride) const {
  for (std::size_t i = link.chunks.placed() + 1; i < link.chunks.count(); ++i) {
    const Place place = numbers_.resolve(expected, link.chunks[i].id, stride);
    if (numbers_.is_near(expected, place, 2 * stride)) return true;
  }
  return false;
}

}  // namespace rodeo::readout
