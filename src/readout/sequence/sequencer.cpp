// What comes, how chunks end, and links that go away and come back. The cases: sequencer_cases.cpp, sequencer_listed.cpp.
#include "readout/sequence/sequencer.h"

#include <algorithm>

namespace rodeo::readout {

Sequencer::Sequencer(const Settings& settings)
    : settings_(settings),
      numbers_(settings_),
      list_(settings_, links_, numbers_),
      silences_(settings_, links_, numbers_),
      credibility_(settings_, links_, numbers_, list_, silences_),
      waits_(settings_, links_, numbers_, credibility_),
      room_(settings_, links_, numbers_, waits_),
      links_(settings_) {}

std::size_t Sequencer::add(LinkSequence& link, std::uint16_t stride, std::size_t reader, std::size_t window) {
  link.stride = stride;
  links_.add(link, reader, window);
  credibility_.reserve(links_.size());
  waits_.add_window(window);
  return links_.size() - 1;
}

void Sequencer::set_bcids(std::size_t window, const EventBcids& bcids) {
  for (Link& link : links_) {
    if (link.window == window) link.bcids = &bcids;
  }
}

// ---- what comes

void Sequencer::offer(std::size_t of, std::uint32_t id, std::uint16_t bcid, std::uint64_t now, Sequence oldest,
                      Decisions& decisions) {
  Link& link = links_[of];
  links_.on_chunk(link, now);
  if (credibility_.loses_place(link, id)) lose_place(link);
  if (link.chunks.full()) make_space(link, now, oldest, decisions);
  PendingChunk& chunk = links_.add_chunk(link);
  ++link.offered;
  chunk.since = now;
  chunk.listed = list_.entries().end();
  chunk.id = id;
  chunk.bcid = bcid;
  judge_waiting(link, now, oldest, false, decisions);
}

// No more chunks may wait: the oldest is judged again, and ends if it still has to wait.
void Sequencer::make_space(Link& link, std::uint64_t now, Sequence oldest, Decisions& decisions) {
  if (link.chunks.placed() == 0) judge_waiting(link, now, oldest, false, decisions);
  if (link.chunks.full()) end_oldest(link, decisions);
}

void Sequencer::end_oldest(Link& link, Decisions& decisions) {
  if (link.chunks.placed() == 0) {
    end(link, settings_.listed ? Verdict::not_listed : Verdict::out_of_sequence);
  } else if (link.chunks[0].is_aside()) {
    link.chunks[0].decide({});
  }
  emit_decisions(link, decisions);
}

void Sequencer::rejudge(std::size_t of, std::uint64_t now, Sequence oldest, Decisions& decisions) {
  Link& link = links_[of];
  const bool patient = link.chunks.all_placed() || now - link.chunks[link.chunks.placed()].since < settings_.timeout_ns / 2;
  judge_waiting(link, now, oldest, !patient, decisions);
}

void Sequencer::finish(std::size_t of, std::uint64_t now, Sequence oldest, Decisions& decisions) {
  Link& link = links_[of];
  set_reader_ended(link.reader);
  judge_waiting(link, now, oldest, true, decisions);
}

void Sequencer::give_up(std::size_t of, Decisions& decisions) {
  Link& link = links_[of];
  while (!link.chunks.all_placed()) end(link, Verdict::out_of_sequence);
  refute(link);
  emit_decisions(link, decisions);
  update_fast_path(link);
}

void Sequencer::remove(std::size_t of, Decisions& decisions) {
  give_up(of, decisions);
  LinkSequence& sequence = links_[of].sequence;
  sequence.removed.store(true, std::memory_order_relaxed);
  sequence.end = 0;
}

void Sequencer::restore(std::size_t of, Sequence from) {
  links_[of].alone = false;
  LinkSequence& sequence = links_[of].sequence;
  sequence.removed.store(false, std::memory_order_relaxed);
  sequence.here.store(false, std::memory_order_relaxed);
  sequence.next.store(from, std::memory_order_relaxed);
  sequence.history = 0;
  sequence.end = 0;
}

// Judges the waiting chunks, oldest first, and hands out the decisions.
void Sequencer::judge_waiting(Link& link, std::uint64_t now, Sequence oldest, bool final, Decisions& decisions) {
  links_.set_clock(link.reader, now);
  waits_.note_oldest(link.reader, oldest);
  links_.oldest = std::max(oldest, run_first());
  if (link.away()) {
    follow(link);
    accept_aside(link);
  }
  const PendingChunks& chunks = link.chunks;
  while (!chunks.all_placed()) {
    const bool last = chunks.placed() + 1 == chunks.count();
    const PendingChunk* const following = last ? nullptr : &chunks[chunks.placed() + 1];
    if (judge(link, chunks[chunks.placed()], following, final && last) == Step::wait) break;
  }
  emit_decisions(link, decisions);
  update_fast_path(link);
}

void Sequencer::emit_decisions(Link& link, Decisions& decisions) {
  while (link.chunks.placed() != 0 && link.chunks[0].fate == PendingChunk::Fate::decided) {
    decisions.push_back(link.chunks[0].decision);
    links_.remove_oldest_chunk(link);
  }
}

// Sets the number up to which the fast path may go on.
void Sequencer::update_fast_path(Link& link) const {
  LinkSequence& sequence = link.sequence;
  const bool free = link.chunks.empty() && link.here() && !link.removed() && !sequence.lost && !sequence.doubtful &&
                    !link.suspected && !link.unsure && link.position() >= link.floor &&
                    !(settings_.listed && links_.is_round_robin()) && numbers_.is_in_segment(sequence) &&
                    !numbers_.is_ambiguous(sequence);
  sequence.end = free ? segment_of(link.position()).end : 0;
}

// ---- how a chunk ends, or waits

// Ends the first undecided chunk.
Sequencer::Step Sequencer::end(Link& link, Verdict verdict) {
  link.far = 0;
  waits_.unblock(link);
  link.chunks.place_next().decide({.verdict = verdict});
  return Step::done;
}

// The chunk belongs to this event, which may be closed already. In both cases the link has now passed the event.
Sequencer::Step Sequencer::accept(Link& link, Sequence number, bool doubtful) {
  link.far = 0;
  link.chunks.place_next();
  decide_accepted(link, link.chunks.placed() - 1, number, doubtful);
  return Step::done;
}

void Sequencer::decide_accepted(Link& link, std::size_t i, Sequence number, bool doubtful) {
  LinkSequence& sequence = link.sequence;
  link.alone = false;
  waits_.unblock(link);
  PendingChunk& chunk = link.chunks[i];
  const Sequence accepted_for = number;
  number = credibility_.prove(link, number, chunk.id, chunk.bcid);
  const Segment& segment = segment_of(number);
  const Sequence before = std::max(link.position(), link.floor);
  const bool goes_back = !links_.is_round_robin() && number < before;
  chunk.decide({});
  if (goes_back) {
    // A link goes forward only, so no event gets two of its chunks. If it was too far ahead, it is late until it comes there
    // again.
    if (number == accepted_for && link.position() >= link.floor) return;
    link.floor = before;
  }
  const bool restarts = numbers_.is_unclear_restart(number) ||
                        (!settings_.listed && link.here() && numbers_.restarts_unclearly(link.position(), number, chunk.id));
  chunk.decision = {.verdict = Verdict::accept,
                    .doubtful = doubtful || restarts,
                    .unproven = sequence.doubtful,
                    .sequence = number,
                    .from = before,
                    .resets = static_cast<std::uint32_t>(segment.resets),
                    .rounds = static_cast<std::uint32_t>(segment.rounds),
                    .base = segment.base};
  if (number < links_.oldest || goes_back) {
    chunk.decision.verdict = Verdict::late;
  } else if (links_.is_round_robin() && links_.has_arrived(number)) {
    chunk.decision.verdict = Verdict::duplicate;
  }
  learn_stride(link, number - (before - sequence.stride));
  const std::uint64_t skipped = number - before;  // a huge number if the event lies before
  sequence.history = (skipped >= LinkSequence::kHistory ? 0 : sequence.history << skipped) << 1 | 1;
  sequence.next.store(number + sequence.stride, std::memory_order_relaxed);
  numbers_.enter_segment(sequence, segment);
  sequence.here.store(true, std::memory_order_relaxed);
}

// The events of a group may be dealt anew to its links: two equal steps of a link set its stride. A link alone has every
// event: two equal steps of random triggers mean nothing.
void Sequencer::learn_stride(Link& link, Sequence step) {
  if (!links_.is_round_robin() || links_.size() == 1 || step - 1 >= 4 * links_.size()) return;
  if (step == link.last_step) link.sequence.stride = static_cast<std::uint16_t>(step);
  link.last_step = step;
}

Sequencer::Step Sequencer::keep_aside(Link& link, const Place& place) {
  PendingChunk& chunk = link.chunks.place_next();
  chunk.fate = PendingChunk::Fate::aside;
  chunk.place = place;
  link.going = {place.resets, place.index + link.sequence.stride};
  ++link.chunks_there;
  follow(link);
  accept_aside(link);
  return Step::done;
}

// The link waits for the list, or for readers that have not read so far: these may hold up the list, too.
Sequencer::Step Sequencer::wait(Link& link) {
  waits_.block(link);
  return Step::wait;
}

// True if the window has room for this number; else the link waits.
bool Sequencer::finds_room(Link& link, Sequence number) {
  if (room_.has_room(link, number)) return true;
  waits_.block(link);
  return room_.make_room(link, number);
}

// From now on the link waits for readers that have not read so far. True if there are any.
bool Sequencer::others_may_show_place(Link& link) {
  waits_.block(link);
  return waits_.others_may_show(link, link.sequence.place());
}

// ---- links that go away, and come back

Sequencer::Step Sequencer::go_away(Link& link, const Place& place) {
  if (place.index < 0 && settings_.format.has_ecr()) return end(link, Verdict::out_of_sequence);  // resets begin at 0
  leave(link);
  return keep_aside(link, place);
}

void Sequencer::leave(Link& link) {
  link.left.reset();
  if (link.sequence.here.exchange(false, std::memory_order_relaxed)) link.left = link.sequence.place();
  link.chunks_there = 0;
  links_.set_phase(link, LinkPhase::away);
  credibility_.on_leave(link);
  waits_.on_departure(link);
}

// The chunks aside are out of sequence; the link is again where it left.
void Sequencer::refute(Link& link) {
  link.chunks.drop_aside();
  if (!link.away()) return;
  links_.set_phase(link, LinkPhase::normal);
  credibility_.on_return(link);
  link.sequence.here.store(link.left.has_value(), std::memory_order_relaxed);
}

// Opens the place to which enough links have gone with this one. Each link asks only for itself, so many links at once cost
// no more each.
void Sequencer::follow(Link& link) {
  link.alone = credibility_.is_alone(link);
  if (link.alone || link.removed() || !may_follow(link)) return;
  open(credibility_.group_begin(link));
  if (credibility_.follow(link)) links_.judge_again();
}

bool Sequencer::may_follow(Link& link) {
  if (credibility_.is_within_reach(link)) return false;
  const Votes votes = credibility_.votes(link);
  if (!votes.has_enough_chunks) return false;
  if (!votes.is_majority() && (!votes.is_plurality() || waits_.others_may_show(link, votes.left))) return false;
  // One or two live links are not a majority against other groups, ROBs and cards.
  return votes.live > 2 || credibility_.others_follow(link, votes.left);
}

void Sequencer::open(const Place& lowest) {
  if (begun()) return numbers_.open(lowest, links_.frontier(), links_.arrived_end(), links_[0].sequence.stride);
  // Some links may have begun before the counter came round: the run begins with their ids.
  const std::int64_t before = lowest.index < 0 ? static_cast<std::int64_t>(settings_.format.period()) : 0;
  links_.shift_aside(before);
  const std::int64_t index = lowest.index + before;
  links_.begin_run();
  numbers_.begin({lowest.resets, index - std::min(static_cast<std::int64_t>(settings_.reach), index)});
}

// A12. Takes the chunks aside that are reachable by now.
void Sequencer::accept_aside(Link& link) {
  if (!link.away() || !begun()) return;
  const PendingChunks& chunks = link.chunks;
  const std::size_t placed = chunks.placed();
  const bool patient = placed == 0 || links_.clock(link) - chunks[0].since < settings_.timeout_ns / 2;
  if (link.chunks_there < 2 && patient && !links_.all_over()) return;
  // Finds the last chunk with a known segment and with room: a link that is far ahead does not come in step by step.
  const auto has_place = [&](const PendingChunk& chunk) {
    const auto number = chunk.is_aside() ? numbers_.number(chunk.place) : std::nullopt;
    return number && room_.make_room(link, *number);
  };
  std::size_t known = placed;
  while (known != 0 && !has_place(chunks[known - 1])) --known;
  const auto newest = placed == 0 ? std::nullopt : numbers_.number(chunks[placed - 1].place);
  if (newest && *newest <= std::max(links_.followed_to, links_.front()) + settings_.reach)
    links_.set_phase(link, LinkPhase::followed);
  if (known == 0 || !(link.phase == LinkPhase::followed || room_.reachable(link, chunks[known - 1].place))) return;
  // By its chunks the segment is longer than by those of the others.
  if (known < placed && chunks[known].place.resets == chunks[known - 1].place.resets &&
      !numbers_.number(chunks[known].place))
    return;
  for (std::size_t i = 0; i < placed; ++i) {
    if (!chunks[i].is_aside()) continue;
    const auto number = numbers_.number(chunks[i].place);
    if (!number && !link.here()) {  // of a place that was not followed
      link.chunks[i].decide({});
      continue;
    }
    if (!number || !room_.has_room(link, *number)) {
      const bool followed = link.phase == LinkPhase::followed && number;
      if (link.here()) leave(link);
      links_.set_phase(link, followed ? LinkPhase::followed : LinkPhase::away);
      return;
    }
    decide_accepted(link, i, *number, false);
  }
  if (!link.here()) return;
  links_.set_phase(link, LinkPhase::normal);
  credibility_.on_return(link);
}

// What lies aside is taken where the others are, or dropped; then nothing is known of the link.
void Sequencer::lose_place(Link& link) {
  if (link.away()) {
    follow(link);
    accept_aside(link);
    if (link.away()) refute(link);
  }
  credibility_.lose_place(link);
}

}  // namespace rodeo::readout
