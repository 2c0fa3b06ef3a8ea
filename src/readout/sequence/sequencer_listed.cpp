// The cases with the trigger's own list (L). The table: cases.md.
#include <algorithm>

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

/// A chunk, and where the list has it.
struct Sequencer::ListMatch {
  ListMatch(const Sequencer& owner, const Link& of, const PendingChunk& judged, const PendingChunk* next, bool final);

  void find();
  void find_by_id();
  Sequence lowest() const;
  std::optional<Sequence> find_following(Sequence from, Sequence to) const;
  bool goes_on_later() const;
  bool was_delivered() const;
  bool has_another() const;

  const Sequencer& sequencer;
  const Link& link;
  const PendingChunk& chunk;
  const PendingChunk* following;
  bool overdue;         // it has waited long enough
  bool passed;          // the list has gone on far enough to decide on the chunk
  bool fresh;           // nothing is known of the link
  std::uint64_t steps;  // `step` events of the link

  Sequence expected = 0;
  Sequence soon_after = 0;             // `step` events after `expected`
  Sequence limit = 0;                  // numbers above are not reachable
  std::optional<Sequence> place = {};  // where the list has the chunk
  bool exact = false;                  // `place` has its BCID, too
  bool far = false;                    // `place` is not reachable
  bool by_bcid = true;                 // the BCID of the following chunk is compared, too
};

Sequencer::ListMatch::ListMatch(const Sequencer& owner, const Link& of, const PendingChunk& judged, const PendingChunk* next,
                                bool final)
    : sequencer(owner),
      link(of),
      chunk(judged),
      following(next),
      fresh(!of.here()),
      steps(std::uint64_t{sequencer.settings_.step} * of.sequence.stride) {
  const bool waited = sequencer.links_.clock(link) - chunk.since > sequencer.settings_.timeout_ns ||
                      (final && !sequencer.links_.reader_of(link).over);
  const auto listed_since = [&] {
    return sequencer.list_.entries().end() - std::max(chunk.listed, sequencer.numbers_.run_first());
  };
  overdue = waited || (sequencer.links_.all_over() && !sequencer.links_.is_round_robin());
  passed = sequencer.list_.ended() || link.chunks.full() || (waited && !sequencer.list_.held()) ||
           (sequencer.numbers_.begun() && listed_since() > 2 * sequencer.settings_.reach);
}

Sequencer::Step Sequencer::judge_listed(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final) {
  LinkSequence& sequence = link.sequence;
  ListMatch match(*this, link, chunk, following, final);
  if (!begun()) return match.passed ? end(link, Verdict::not_listed) : wait(link);  // L1
  if (!match.fresh && !numbers_.is_in_segment(sequence)) numbers_.enter_next_segment(sequence);
  if (!match.fresh && chunk.id == sequence.expected && numbers_.is_in_segment(sequence) &&
      !sequence.has_lapsed(links_.oldest, settings_.format))
    return judge_expected(link, match);
  match.find();
  if (match.exact && !match.far && finds_room_for_listed(link, match)) {
    link.unsure = false;
    link.agreed = true;
    return accept(link, *match.place);  // L3
  }
  if (following == nullptr && !match.passed && !final) return Step::wait;  // L4
  if (!match.place && following != nullptr && settings_.has_bcid && !link.agreed) match.find_by_id();
  return match.place ? judge_present(link, match) : judge_absent(link, match);
}

// L2
Sequencer::Step Sequencer::judge_expected(Link& link, const ListMatch& match) {
  const Sequence expected = link.position();
  if (links_.is_round_robin() && expected >= trigger_entries().end() && !match.passed) return wait(link);
  link.far = expected;
  if (!finds_room(link, expected)) return wait_for_others(link, match);
  if (list_.has_number(expected)) {
    // It crosses a reset where the list has it. A link that comes by free numbers does not.
    const bool crosses = expected == segment_of(expected).first;
    if (crosses && trigger_entries().at(expected - 1).state != TriggerEntries::kNoEvent) link.unsure = false;
    if (list_.has_entry(expected) && trigger_entries().at(expected).bcid == match.chunk.bcid) link.agreed = true;
  }
  return accept(link, expected, link.unsure);
}

void Sequencer::ListMatch::find() {
  const Sequence end = sequencer.list_.entries().end();
  const Sequence remembered = end - std::min(end, sequencer.list_.entries().size());
  expected = sequencer.list_.number_after(std::max(link.position(), remembered), 0);  // its segment may be over
  soon_after = sequencer.list_.number_after(expected, steps);
  limit = std::max({sequencer.links_.front_of_others(link), lowest(), expected, sequencer.links_.followed_to}) +
          sequencer.settings_.reach + steps;
  place = sequencer.list_.find(lowest(), end, chunk.id, &chunk.bcid);
  exact = place && sequencer.settings_.has_bcid && sequencer.list_.has_entry(*place);
  // The chunks that wait after it are compared with the waiting chunks of the other links.
  const std::uint64_t stride = link.sequence.stride;
  std::uint64_t waiting = 0;
  for (const Link& other : sequencer.links_) {
    if (&other != &link) waiting = std::max(waiting, other.chunks.count() * stride);
  }
  const std::uint64_t after = (link.chunks.count() - link.chunks.placed() - 1) * stride;
  far = place && (*place > limit || (*place > soon_after && *place + after > limit + waiting));
}

// The lowest number that the chunk may have: a closed event cannot get it.
Sequence Sequencer::ListMatch::lowest() const {
  return sequencer.links_.is_round_robin() ? sequencer.links_.oldest
                                           : std::max({expected, kRunFirst, sequencer.links_.oldest});
}

// For a link whose BCIDs have never agreed, but whose ids go on.
void Sequencer::ListMatch::find_by_id() {
  if (find_following(expected, soon_after + 1)) return;
  const auto found = sequencer.list_.find(lowest(), std::min(limit, sequencer.list_.entries().end()), chunk.id, nullptr);
  by_bcid = false;
  if (found && find_following(*found + 1, sequencer.list_.number_after(*found, steps) + 1))
    place = found;
  else
    by_bcid = true;
}

std::optional<Sequence> Sequencer::ListMatch::find_following(Sequence from, Sequence to) const {
  if (following == nullptr) return std::nullopt;
  return sequencer.list_.find(from, std::min(to, sequencer.list_.entries().end()), following->id,
                              by_bcid ? &following->bcid : nullptr);
}

// True if one of the next chunks that wait is where the link is expected.
bool Sequencer::ListMatch::goes_on_later() const {
  const PendingChunks& chunks = link.chunks;
  const std::size_t last = std::min<std::size_t>(chunks.count(), chunks.placed() + 1 + sequencer.settings_.step);
  for (std::size_t i = chunks.placed() + 1; i < last; ++i) {
    const std::uint16_t* const bcid = by_bcid ? &chunks[i].bcid : nullptr;
    if (sequencer.list_.find(expected, std::min(soon_after + 1, sequencer.list_.entries().end()), chunks[i].id, bcid))
      return true;
  }
  return false;
}

// True if one of the link's last chunks had the id of this one.
bool Sequencer::ListMatch::was_delivered() const {
  const Segments& segments = sequencer.numbers_.segments();
  const Sequence next = link.position();
  const Sequence lately = next - std::min<std::uint64_t>(LinkSequence::kHistory, sequencer.settings_.format.period() / 4);
  for (Sequence number = next; number-- > std::max(segments.oldest().first, lately);) {
    if (sequencer.links_.delivered(link, number) && sequencer.numbers_.id(sequencer.numbers_.place(number)) == chunk.id)
      return true;
  }
  return false;
}

// True if the list also has the chunk elsewhere, where the link may have been; or if it may have lost it before its first
// entry.
bool Sequencer::ListMatch::has_another() const {
  const Place first = sequencer.numbers_.place(kRunFirst);
  if (fresh && link.position() == kRunFirst && !sequencer.settings_.format.has_ecr() &&
      sequencer.numbers_.nearest_place(first, chunk.id) < first)
    return true;
  return sequencer.list_.find(*place + 1, sequencer.list_.entries().end(), chunk.id, &chunk.bcid) ||
         sequencer.list_.find(expected, lowest(), chunk.id, &chunk.bcid);
}

// The list does not have the chunk.
Sequencer::Step Sequencer::judge_absent(Link& link, const ListMatch& match) {
  if (!match.passed && !match.goes_on_later()) return wait(link);                      // L5
  return end(link, match.was_delivered() ? Verdict::duplicate : Verdict::not_listed);  // L6, L7
}

Sequencer::Step Sequencer::judge_present(Link& link, const ListMatch& match) {
  const Sequence place = *match.place;
  const PendingChunk* const following = match.following;
  const auto lost = [&] { return match.was_delivered() ? Verdict::duplicate : Verdict::out_of_sequence; };
  if (following != nullptr && following->id == match.chunk.id) {
    const Sequence next = list_.number_after(place, link.sequence.stride);
    if (next >= trigger_entries().end() && !match.passed) return wait(link);               // L8
    if (!match.find_following(place + 1, next + 1)) return end(link, Verdict::duplicate);  // L9
  }
  const bool repeats_last = settings_.format.advance(match.chunk.id, link.sequence.stride) == link.sequence.expected;
  if (repeats_last && following == nullptr && !match.exact && !match.fresh && place > match.soon_after)
    return end(link, Verdict::duplicate);  // L10
  const Sequence soon_after_place = list_.number_after(place, match.steps);
  const bool goes_on = following == nullptr || match.find_following(place + 1, soon_after_place + 1);
  const auto without = match.by_bcid ? match.find_following(match.expected, match.soon_after + 1) : std::nullopt;
  if (without && (match.far || place > match.soon_after || (!goes_on && (*without < place || place < match.expected))))
    return end(link, lost());  // L11
  // Where ids repeat, the list may soon come to another event of this id.
  const Sequence near = match.fresh ? kRunFirst + settings_.reach + match.steps : match.soon_after;
  const bool leaps = place < match.expected || place > near;
  if (leaps && !match.exact && !match.passed && list_.repeats_soon(match.chunk.id)) return wait(link);  // L12
  const bool doubtful = leaps && !match.exact && !match.fresh;
  const bool repeats = doubtful && match.was_delivered();
  const bool no_witness = doubtful && !links_.is_round_robin() && link.sequence.is_dense();
  const bool alone = following == nullptr && (repeats || no_witness);
  if (alone && !match.overdue && !links_.reader_of(link).over && !link.chunks.full()) return Step::wait;  // L13
  if (repeats && alone) return end(link, Verdict::duplicate);                                             // L14
  if (!goes_on && (repeats || no_witness || !match.find_following(place + 1, trigger_entries().end()))) {
    if (!match.passed && soon_after_place + 1 >= trigger_entries().end()) return wait(link);  // L15
    return end(link, repeats ? Verdict::duplicate : Verdict::out_of_sequence);                // L16
  }
  const bool fits = !match.far || (match.exact && room_.has_room(link, place)) || is_majority_in_list(link, place);
  if (!fits || !finds_room_for_listed(link, match)) return wait_for_others(link, match);
  // If another epoch has the id, too, the link may have been silent for longer, or for less and be late: it is flagged until
  // it crosses a reset where the list has one.
  link.unsure = link.unsure || (alone && !settings_.format.has_ecr()) || (leaps && match.has_another());
  return accept(link, place, link.unsure);  // L18
}

// True if the window has room for the chunk's place; else the chunk waits.
bool Sequencer::finds_room_for_listed(Link& link, const ListMatch& match) {
  link.far = *match.place;
  return finds_room(link, link.far);
}

// L17
Sequencer::Step Sequencer::wait_for_others(Link& link, const ListMatch& match) {
  const bool may_wait = !link.chunks.full() && (others_may_show_place(link) || !match.overdue);
  return may_wait ? Step::wait : end(link, Verdict::out_of_sequence);
}

// True if more than half of the live links have gone so far. Then the others are judged again.
bool Sequencer::is_majority_in_list(Link& link, Sequence number) {
  const std::uint64_t room = settings_.reach + std::uint64_t{settings_.step} * link.sequence.stride;
  link.far = number;
  std::uint32_t in_favor = 0;
  std::uint32_t alive = 0;
  for (const Link& other : links_) {
    if (other.removed() || !links_.is_live(other)) continue;
    ++alive;
    if (other.far + room >= number && other.far <= number + room) ++in_favor;
  }
  if (2 * in_favor <= alive) return false;
  links_.followed_to = std::max(links_.followed_to, number);
  links_.judge_again();
  return true;
}

}  // namespace rodeo::readout
