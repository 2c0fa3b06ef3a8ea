// The cases with the trigger's own list (L). The table: cases.md.
#include <algorithm>

#include "readout/sequence/sequencer.h"

namespace rodeo::readout {

/// A chunk, and where the list has it.
struct Sequencer::InList {
  InList(const Sequencer& sequencer, const Link& of, const PendingChunk& judged, const PendingChunk* next, bool final);

  void look_up();
  void look_up_by_id();
  Sequence lowest() const;
  std::optional<Sequence> find_following(Sequence from, Sequence to) const;
  bool goes_on_later() const;
  bool was_delivered() const;
  bool has_another() const;

  const Sequencer& all;
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

Sequencer::InList::InList(const Sequencer& sequencer, const Link& of, const PendingChunk& judged, const PendingChunk* next,
                          bool final)
    : all(sequencer),
      link(of),
      chunk(judged),
      following(next),
      fresh(!of.here()),
      steps(std::uint64_t{all.settings_.step} * of.sequence.stride) {
  const bool waited =
      all.links_.clock(link) - chunk.since > all.settings_.timeout_ns || (final && !all.links_.reader_of(link).over);
  const auto listed_since = [&] { return all.list_.book().end() - std::max(chunk.listed, all.numbers_.run_first()); };
  overdue = waited || (all.links_.all_over() && !all.links_.take_turns());
  passed = all.list_.ended() || link.chunks.full() || (waited && !all.list_.held()) ||
           (all.numbers_.begun() && listed_since() > 2 * all.settings_.reach);
}

Sequencer::Step Sequencer::judge_listed(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final) {
  LinkSequence& sequence = link.sequence;
  InList in_list(*this, link, chunk, following, final);
  if (!begun()) return in_list.passed ? end(link, Verdict::not_listed) : wait(link);  // L1
  if (!in_list.fresh && !numbers_.is_in_segment(sequence)) numbers_.cross(sequence);
  if (!in_list.fresh && chunk.id == sequence.expected && numbers_.is_in_segment(sequence) &&
      !sequence.lapsed(links_.oldest, settings_.format))
    return judge_expected(link, in_list);
  in_list.look_up();
  if (in_list.exact && !in_list.far && finds_place_in_list(link, in_list)) {
    link.unsure = false;
    link.agreed = true;
    return take(link, *in_list.place);  // L3
  }
  if (following == nullptr && !in_list.passed && !final) return Step::wait;  // L4
  if (!in_list.place && following != nullptr && settings_.has_bcid && !link.agreed) in_list.look_up_by_id();
  return in_list.place ? judge_present(link, in_list) : judge_absent(link, in_list);
}

// L2
Sequencer::Step Sequencer::judge_expected(Link& link, const InList& in_list) {
  const Sequence expected = link.position();
  if (links_.take_turns() && expected >= book().end() && !in_list.passed) return wait(link);
  link.far = expected;
  if (!finds_room(link, expected)) return wait_for_others(link, in_list);
  if (list_.remembers(expected)) {
    // It crosses a reset where the list has it. A link that comes by free numbers does not.
    const bool crosses = expected == segment_of(expected).first;
    if (crosses && book().at(expected - 1).state != TriggerBook::kNot) link.unsure = false;
    if (list_.has_entry(expected) && book().at(expected).bcid == in_list.chunk.bcid) link.agreed = true;
  }
  return take(link, expected, link.unsure);
}

void Sequencer::InList::look_up() {
  const Sequence end = all.list_.book().end();
  const Sequence remembered = end - std::min(end, all.list_.book().size());
  expected = all.list_.after(std::max(link.position(), remembered), 0);  // its segment may be over
  soon_after = all.list_.after(expected, steps);
  limit =
      std::max({all.links_.front_beside(link), lowest(), expected, all.links_.followed_to}) + all.settings_.reach + steps;
  place = all.list_.find(lowest(), end, chunk.id, &chunk.bcid);
  exact = place && all.settings_.has_bcid && all.list_.has_entry(*place);
  // The chunks that wait after it are compared with the waiting chunks of the other links.
  const std::uint64_t stride = link.sequence.stride;
  std::uint64_t waiting = 0;
  for (const Link& other : all.links_) {
    if (&other != &link) waiting = std::max(waiting, other.chunks.count() * stride);
  }
  const std::uint64_t after = (link.chunks.count() - link.chunks.placed() - 1) * stride;
  far = place && (*place > limit || (*place > soon_after && *place + after > limit + waiting));
}

// The lowest number that the chunk may have: a closed event cannot get it.
Sequence Sequencer::InList::lowest() const {
  return all.links_.take_turns() ? all.links_.oldest : std::max({expected, kRunFirst, all.links_.oldest});
}

// For a link whose BCIDs have never agreed, but whose ids go on.
void Sequencer::InList::look_up_by_id() {
  if (find_following(expected, soon_after + 1)) return;
  const auto found = all.list_.find(lowest(), std::min(limit, all.list_.book().end()), chunk.id, nullptr);
  by_bcid = false;
  if (found && find_following(*found + 1, all.list_.after(*found, steps) + 1))
    place = found;
  else
    by_bcid = true;
}

std::optional<Sequence> Sequencer::InList::find_following(Sequence from, Sequence to) const {
  if (following == nullptr) return std::nullopt;
  return all.list_.find(from, std::min(to, all.list_.book().end()), following->id, by_bcid ? &following->bcid : nullptr);
}

// True if one of the next chunks that wait is where the link is expected.
bool Sequencer::InList::goes_on_later() const {
  const PendingChunks& chunks = link.chunks;
  const std::size_t last = std::min<std::size_t>(chunks.count(), chunks.placed() + 1 + all.settings_.step);
  for (std::size_t i = chunks.placed() + 1; i < last; ++i) {
    const std::uint16_t* const bcid = by_bcid ? &chunks[i].bcid : nullptr;
    if (all.list_.find(expected, std::min(soon_after + 1, all.list_.book().end()), chunks[i].id, bcid)) return true;
  }
  return false;
}

// True if one of the link's last chunks had the id of this one.
bool Sequencer::InList::was_delivered() const {
  const Segments& segments = all.numbers_.segments();
  const Sequence next = link.position();
  const Sequence lately = next - std::min<std::uint64_t>(LinkSequence::kHistory, all.settings_.format.period() / 4);
  for (Sequence number = next; number-- > std::max(segments.oldest().first, lately);) {
    if (all.links_.delivered(link, number) && all.numbers_.id(all.numbers_.place(number)) == chunk.id) return true;
  }
  return false;
}

// True if the list also has the chunk elsewhere, where the link may have been; or if it may have lost it before its first
// entry.
bool Sequencer::InList::has_another() const {
  const Place first = all.numbers_.place(kRunFirst);
  if (fresh && link.position() == kRunFirst && !all.settings_.format.has_ecr() &&
      all.numbers_.nearest(first, chunk.id) < first)
    return true;
  return all.list_.find(*place + 1, all.list_.book().end(), chunk.id, &chunk.bcid) ||
         all.list_.find(expected, lowest(), chunk.id, &chunk.bcid);
}

// The list does not have the chunk.
Sequencer::Step Sequencer::judge_absent(Link& link, const InList& in_list) {
  if (!in_list.passed && !in_list.goes_on_later()) return wait(link);                    // L5
  return end(link, in_list.was_delivered() ? Verdict::duplicate : Verdict::not_listed);  // L6, L7
}

Sequencer::Step Sequencer::judge_present(Link& link, const InList& in_list) {
  const Sequence place = *in_list.place;
  const PendingChunk* const following = in_list.following;
  const auto lost = [&] { return in_list.was_delivered() ? Verdict::duplicate : Verdict::out_of_sequence; };
  if (following != nullptr && following->id == in_list.chunk.id) {
    const Sequence next = list_.after(place, link.sequence.stride);
    if (next >= book().end() && !in_list.passed) return wait(link);                          // L8
    if (!in_list.find_following(place + 1, next + 1)) return end(link, Verdict::duplicate);  // L9
  }
  const bool repeats_last = settings_.format.advance(in_list.chunk.id, link.sequence.stride) == link.sequence.expected;
  if (repeats_last && following == nullptr && !in_list.exact && !in_list.fresh && place > in_list.soon_after)
    return end(link, Verdict::duplicate);  // L10
  const Sequence soon_after_place = list_.after(place, in_list.steps);
  const bool goes_on = following == nullptr || in_list.find_following(place + 1, soon_after_place + 1);
  const auto without = in_list.by_bcid ? in_list.find_following(in_list.expected, in_list.soon_after + 1) : std::nullopt;
  if (without && (in_list.far || place > in_list.soon_after || (!goes_on && (*without < place || place < in_list.expected))))
    return end(link, lost());  // L11
  // Where ids repeat, the list may soon come to another event of this id.
  const Sequence near = in_list.fresh ? kRunFirst + settings_.reach + in_list.steps : in_list.soon_after;
  const bool leaps = place < in_list.expected || place > near;
  if (leaps && !in_list.exact && !in_list.passed && list_.repeats_soon(in_list.chunk.id)) return wait(link);  // L12
  const bool doubtful = leaps && !in_list.exact && !in_list.fresh;
  const bool repeats = doubtful && in_list.was_delivered();
  const bool senseless = doubtful && !links_.take_turns() && link.sequence.is_dense();
  const bool alone = following == nullptr && (repeats || senseless);
  if (alone && !in_list.overdue && !links_.reader_of(link).over && !link.chunks.full()) return Step::wait;  // L13
  if (repeats && alone) return end(link, Verdict::duplicate);                                               // L14
  if (!goes_on && (repeats || senseless || !in_list.find_following(place + 1, book().end()))) {
    if (!in_list.passed && soon_after_place + 1 >= book().end()) return wait(link);  // L15
    return end(link, repeats ? Verdict::duplicate : Verdict::out_of_sequence);       // L16
  }
  const bool fits = !in_list.far || (in_list.exact && room_.has(link, place)) || followed_in_list(link, place);
  if (!fits || !finds_place_in_list(link, in_list)) return wait_for_others(link, in_list);
  // If another epoch has the id, too, the link may have been silent for longer, or for less and be late: it is flagged until
  // it crosses a reset where the list has one.
  link.unsure = link.unsure || (alone && !settings_.format.has_ecr()) || (leaps && in_list.has_another());
  return take(link, place, link.unsure);  // L18
}

// True if the window has room for the chunk's place; else the chunk waits.
bool Sequencer::finds_place_in_list(Link& link, const InList& in_list) {
  link.far = *in_list.place;
  return finds_room(link, link.far);
}

// L17
Sequencer::Step Sequencer::wait_for_others(Link& link, const InList& in_list) {
  const bool may_wait = !link.chunks.full() && (others_may_tell(link) || !in_list.overdue);
  return may_wait ? Step::wait : end(link, Verdict::out_of_sequence);
}

// True if more than half of the live links have gone so far. Then the others are judged again.
bool Sequencer::followed_in_list(Link& link, Sequence number) {
  const std::uint64_t room = settings_.reach + std::uint64_t{settings_.step} * link.sequence.stride;
  link.far = number;
  std::uint32_t there = 0;
  std::uint32_t alive = 0;
  for (const Link& other : links_) {
    if (other.removed() || !links_.live(other)) continue;
    ++alive;
    if (other.far + room >= number && other.far <= number + room) ++there;
  }
  if (2 * there <= alive) return false;
  links_.followed_to = std::max(links_.followed_to, number);
  links_.judge_again();
  return true;
}

}  // namespace rodeo::readout
