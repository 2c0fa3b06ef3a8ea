// Which event a chunk belongs to. Pure: ids and the time go in, decisions come out; no thread, no clock, no data.
//
// A link is *here* - its next id lies where other links are - or *away*. Reset, restart, jump, storm, start of the run and return after a
// silence are one thing: links go away, and are followed or not. What an away link brings is kept aside and not thrown away: when it is
// followed nothing is lost, when it is not its chunks are out of sequence. With the trigger's list nobody is away: the list alone says which
// segments there are, and a chunk waits until the list has come to it.
//
//   expected:  the number expected of the link, or the oldest that is open if that is closed; of a link that is away: where it goes on there
//   place:     what the id of this chunk means; `following`: the link's next chunk, which has `after`
//   near:      at most `step` events (of the link's stride) on, or as near to the beginning of the next segment
//   reachable: near after `expected`, or at most `reach` events beyond the foremost of the other links that are read with it; and it fits into
//              the window, or more of the window's links have passed what it would close than are still to come to it
//
//   Rows are tested from top to bottom: the first that fits decides. A kind of link is a function, the numbers stand at its ends.
//
//   | # | a link that is here (judge_here)                        | decision                                                        |
//   |---|---------------------------------------------------------|-----------------------------------------------------------------|
//   | 1 | place = expected, of a link not half a round of ids     | take; needs no following. If the window has no room: wait. When |
//   |   | behind                                                  | 2 reach + step chunks wait, it may pass what stood still        |
//   | - | anything else, and following not there yet              | wait for it, until half of the time-out has passed or the run   |
//   |   |                                                         | ends                                                            |
//   | 2 | the link has delivered place, and it is no restart      | duplicate                                                       |
//   | 3 | following has the same id                               | duplicate; the later is believed                                |
//   | 4 | place behind expected (judge_behind)                    | FULL group, an event that has not come, after follows place:    |
//   |   |                                                         | take; closed less than a window ago, or lately left out by the  |
//   |   |                                                         | link: late; else out of sequence                                |
//   | 5 | place reachable, after near place                       | take; what it skipped is missing                                |
//   | 6 | after near expected, place not between them             | out of sequence: a flipped id                                   |
//   | 7 | place reachable, after there, too, but before it        | out of sequence: place is flipped                               |
//   |   | place reachable, not near expected, of a GBT link that  | take, if after is reachable, too, and behind it: it is a witness|
//   |   | has lately left out nothing                             | of the leap; else out of sequence                               |
//   |   | place reachable, of any other                           | take                                                            |
//   | 8 | no following will come, place reachable                 | take                                                            |
//   | 9 | place not reachable, after on from it in the same       | goes away; the chunk is kept aside                              |
//   |   | segment, or it begins the next and none will follow     |                                                                 |
//   |10 | nothing of these                                        | out of sequence                                                 |
//
//   |   | a link of which nothing is known yet (judge_new)        |                                                                 |
//   |22 | following has the same id                               | duplicate                                                       |
//   |23 | following does not go on from place                     | out of sequence                                                 |
//   |24 | the run has begun, and place is reachable               | take                                                            |
//   |25 | the run has begun, and no following will come           | out of sequence                                                 |
//   |26 | anything else                                           | goes away; the chunk is kept aside                              |
//
//   |   | a link that is away (judge_away)                        |                                                                 |
//   |11 | place = expected                                        | kept aside                                                      |
//   |12 | place and after where it left, or where the others are  | here again; what lies aside is out of sequence                  |
//   |13 | following has the same id, or place was kept aside      | duplicate                                                       |
//   |   | before                                                  |                                                                 |
//   |   | after not near place                                    | out of sequence: flipped ids                                    |
//   |11 | place near after expected, and after not between them   | kept aside                                                      |
//   |13 | one of the chunks behind goes on as expected, or none   | out of sequence: flipped ids                                    |
//   |   | will come                                               |                                                                 |
//   |14 | place and the chunks behind it elsewhere again          | what lies aside is out of sequence; away there                  |
//   |15 | followed, or the others have come within reach          | here again; what lies aside is taken (settle_aside)             |
//
//   Followed: two chunks aside or more, and more than half of the live links have gone there; or more of them than go on beyond where
//   they left, and that has lasted 2 reach + step events, or a time-out, or the run is over, and no other reader is still to read so far.
//   Who is followed, or has come near those who are, is here as soon as the window has room.
//   A link that left while most others went on is contradicted: it is neither followed nor counted, until the others come to it.
//
//   A reader is still to read so far if it has live links, none of which has come beyond where the link left, and it has not had nothing to read
//   since then. Whose chunks press waits for such a reader. Of readers that wait for each other in a circle the one that is furthest behind does not.
//
//   |   | with the trigger's list (judge_listed)                  |                                                                 |
//   |16 | place = expected                                        | take (FULL: once the list has come to it)                       |
//   |17 | place listed from expected on and reachable, and its    | take                                                            |
//   |   | BCID agrees                                             |                                                                 |
//   |20 | place not listed, and following not near expected       | wait until the list has gone on for 2 reach entries, or a       |
//   |   |                                                         | time-out in which nobody held it up (so, too, while the list has|
//   |   |                                                         | not begun)                                                      |
//   |18 | the link has delivered place                            | duplicate                                                       |
//   |19 | place not listed                                        | not listed                                                      |
//   | 3 | following has the same id, and the list does not go on  | duplicate                                                       |
//   |   | with it                                                 |                                                                 |
//   | 3 | no following, no BCID, and the id of the last chunk:    | duplicate                                                       |
//   |   | place is more than `step` events behind expected        |                                                                 |
//   |19 | following listed near expected, place farther           | out of sequence                                                 |
//   |21 | place listed, not reachable, following goes on there    | wait until more than half of the live links are there, or a     |
//   |   |                                                         | time-out and no other reader is to tell; then out of sequence   |
//   |17 | following goes on there, or none will come; or no BCID  | take; flagged if the list has the id twice                      |
//   |   | of the link ever agreed, and following goes on by its id|                                                                 |
//   |   | Numbers between two segments of the list are no events: the first of the next is near after the last.                         |
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/spsc_ring.h"
#include "readout/sequence/event_set.h"
#include "readout/sequence/id_format.h"
#include "readout/sequence/pace.h"
#include "readout/sequence/place_evidence.h"
#include "readout/sequence/rate.h"
#include "readout/sequence/segments.h"
#include "readout/sequence/standings.h"
#include "readout/sequence/trigger_book.h"

namespace rodeo::readout {

/// What a worker knows of one link: all that an undisturbed run touches. Written by the worker's thread, which alone advances it where `end` says that
/// nothing is to be asked, and by the sequencer; peers read the atomics, and under the sequencer's turn what is of the segment, which changes only there.
struct alignas(base::kCacheLine) LinkSequence {
  std::atomic<Sequence> next{0};       ///< number expected next
  Sequence end = 0;                    ///< numbers below may be taken without asking; 0: ask
  std::uint64_t history = 0;           ///< bit k: the event next - 1 - k was delivered
  Sequence base = 0;                   ///< number of index 0 of its segment
  std::uint64_t header = 0;            ///< of the records that its owner writes
  std::atomic<std::uint64_t> seen{0};  ///< when its last chunk came, on the event clock
  std::uint32_t expected = 0;          ///< id of `next`
  std::uint32_t resets = 0;            ///< of its segment
  std::uint32_t rounds = 0;            ///< the same, of global ids
  std::uint16_t stride = 1;            ///< events from one chunk of the link to the next
  std::atomic<bool> here{false};       ///< `next` means something
  std::atomic<bool> removed{false};
  bool lost =
      false;  ///< it was silent for so long that `expected` may be the id of another round; the sequencer finds its place anew
  bool doubtful = false;  ///< its place was found anew and is not proven so far
  Sequence heard = 0;     ///< how far its reader's links had come when it last brought something; 0: it never has
  Pace* pace = nullptr;   ///< of its reader

  Sequence position() const { return next.load(std::memory_order_relaxed); }

  /// Before its chunks are looked at: notes that it is not silent, and what its silence was.
  void hear() {
    const Sequence head = pace->head();
    if (head > heard + pace->limit() && heard != 0) [[unlikely]] {
      lost = true;
      end = 0;
    }
    heard = head;
  }
  /// After them: it was at `before`, and brought so many events in a row.
  void told(Sequence before, std::uint64_t events) {
    const Sequence now = position();
    if (now == before || doubtful) return;
    pace->note(heard, now - events);
    pace->come(now, base);
    heard = std::max(heard, now);
  }

  /// So many events were closed since that its id may be of a later round.
  bool lapsed(Sequence oldest, const IdFormat& format) const {
    return position() < oldest && oldest - position() >= format.period() / 2;
  }

  /// n chunks of consecutive events were taken.
  void advance(std::uint32_t n, const IdFormat& format) {
    next.store(position() + n, std::memory_order_relaxed);
    expected = format.advance(expected, n);
    history = n >= 64 ? ~std::uint64_t{0} : history << n | ((std::uint64_t{1} << n) - 1);
  }
};

enum class Verdict : std::uint8_t { take, late, duplicate, out_of_sequence, not_listed };

struct Decision {
  Verdict verdict = Verdict::out_of_sequence;
  bool doubtful = false;     ///< take: flag the event
  bool unproven = false;     ///< the same, because the link was silent for long and nothing proves its place so far
  Sequence sequence = 0;     ///< take: of this event
  Sequence from = 0;         ///< take: the link has skipped the events from here to `sequence`
  std::uint32_t resets = 0;  ///< these three of the event's segment, to name it
  std::uint32_t rounds = 0;
  Sequence base = 0;
};

/// What a window knows of its events.
class EventBcids {
 public:
  /// The BCID on which the chunks of this event agree; nothing where none is known. The thread of the window.
  virtual std::optional<std::uint16_t> bcid(Sequence number) const = 0;

 protected:
  ~EventBcids() = default;
};

/// Of one ROB (GBT mode) or one group of links (FULL mode). Not synchronised: its callers take turns. Bounded memory: `aside` chunks a link.
/// `now` is always the event clock of the link's reader.
class Sequencer {
 public:
  struct Settings {
    IdFormat format;
    bool has_bcid = false;
    std::uint64_t reach = 256;     ///< events that links of one ROB may be apart
    std::uint32_t step = 8;        ///< events that a link may skip and be believed if its next chunk agrees
    std::uint64_t window = 16384;  ///< events that may be open
    std::uint64_t timeout_ns = 10'000'000;
    std::size_t aside = 1024;      ///< chunks of a link that may wait
    bool listed = false;           ///< announce() will be called
    bool several_threads = false;  ///< links are advanced by several threads
    std::size_t list_entries = 0;  ///< with `listed`: entries that are remembered, a power of two, at least twice the window
  };

  explicit Sequencer(const Settings& settings);

  const Settings& settings() const { return settings_; }

  /// Adds a link; all before the first offer(). In a FULL group `stride` is the number of its links, and set_events() what they have brought.
  /// `reader`: links of one reader come in the order in which they were read, and share its event clock; those of others may not have been
  /// read so far. `window`: of its caller, whose oldest open event the calls for this link give.
  std::size_t add(LinkSequence& link, std::uint16_t stride = 1, std::size_t reader = 0, std::size_t window = 0);
  void set_events(const EventSet& events) { events_ = &events; }
  /// What proves places where other links do not: the BCIDs of the events of one window. Before the first offer().
  void set_bcids(std::size_t window, const EventBcids& bcids) { bcids_[window] = &bcids; }
  /// Of one reader; its thread alone.
  Pace& pace(std::size_t reader) { return *readers_[reader].pace; }
  /// Where a reader is is told to the others of the process, and asked of them. Without the list; before the first offer().
  void share(std::size_t reader, const Standings& others, Standing& own) {
    readers_[reader].others = &others;
    readers_[reader].standing = &own;
  }
  /// Events between two points of a reader's way that the others remember.
  std::uint64_t spacing() const { return std::max<std::uint64_t>(16, settings_.format.period() / 256); }
  /// Before a page of a reader is looked at: it was read at this clock of the input. `quiet_until`: of a file, where there was nothing for the reader up to
  /// there. True if the reader's links were silent, and others tell where they are once they have come to this clock.
  bool read(std::size_t reader, std::uint64_t clock, std::optional<std::uint64_t> quiet_until);
  /// After each page of a reader, and while it has nothing to read (`drained`): all that was sent up to this clock of the input is read.
  void pass(std::size_t reader, std::uint64_t clock, bool drained);

  /// True once the lowest number of the run is known.
  bool begun() const { return begun_.load(std::memory_order_acquire); }
  Sequence run_first() const { return run_first_; }

  /// Changes whenever a segment has begun or links are to be followed: then settle() wants to be called for each link.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  /// A chunk of this link, after those that wait. Decisions come in the order of the link's chunks, oldest first; each ends one. `oldest`: the
  /// lowest number still open at the caller.
  void offer(std::size_t link, std::uint32_t id, std::uint16_t bcid, std::uint64_t now, Sequence oldest,
             std::vector<Decision>& decisions);

  /// Looks again at what waits: after another version(), or when time has passed.
  void settle(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions);

  /// Ends what waits of a link: out of sequence. After finish() of all links.
  void give_up(std::size_t link, std::vector<Decision>& decisions);

  /// Ends the oldest chunk that waits of a link, as where more than `aside` do.
  void end_oldest(std::size_t link, std::vector<Decision>& decisions) { end_oldest(states_[link], decisions); }

  /// No more chunks will come from this link: what waits is judged without them. For all links, and again until nothing changes.
  void finish(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions);

  /// The same of a reader that never began.
  void reads_no_more(std::size_t reader);

  std::size_t waiting(std::size_t link) const { return states_[link].count; }

  /// A reader has nothing more to read for now: what its links have not brought by now, it will not tell for the time being.
  void looked(std::size_t reader) { readers_[reader].looked = departures_; }
  void looked(std::size_t reader, std::uint64_t now) {
    readers_[reader].now = std::max(readers_[reader].now, now);
    looked(reader);
  }
  /// It does not read on until the others have told where this link's chunks belong; kRoom: until those that have older events open have closed them;
  /// kConsumers: until its consumers give memory back. Of readers that wait for each other who is furthest behind goes on: for that one the
  /// others have told what they can. `oldest`: the lowest number that it has open.
  void wait(std::size_t reader, std::size_t link, Sequence oldest) {
    readers_[reader].waits_with = link;
    note_oldest(reader, oldest);
  }
  void read_on(std::size_t reader) { readers_[reader].waits_with = kNothing; }
  static constexpr std::size_t kNothing = ~std::size_t{0};
  static constexpr std::size_t kRoom = kNothing - 1;
  static constexpr std::size_t kConsumers = kRoom - 1;
  /// Some reader does not wait for others: it reads, or its consumers hold it up, or what it waited for has come. Then no wait is too long;
  /// else nothing will change but by who has read everything, and it gives up what it waits for.
  bool someone_goes_on() const;
  std::size_t readers() const { return readers_.size(); }

  /// What waits of this link reaches over many events.
  bool reaches_far(std::size_t link) const;

  /// What happened to a link whose place was in doubt, for the log; cleared by the call.
  struct Told {
    bool lost = false;         ///< it was silent for long, and its chunks are flagged until its place is proven
    std::int64_t moved = 0;    ///< its place is another, so many events from where it was taken to be
    bool by_bcid = false;      ///< the same: by the BCIDs of its chunks, not by other links
    bool out_of_step = false;  ///< BCIDs have begun to agree with no place, or with several
    std::optional<std::uint16_t> constant{};  ///< the same: all are too large by this
    bool is_out_of_step = false;              ///< they still do
  };
  Told take_told(std::size_t link) {
    states_[link].told.is_out_of_step = states_[link].out_of_step;
    return std::exchange(states_[link].told, {});
  }

  /// The BCIDs of this link have disagreed with those of the others for some time: they are weighed from now on.
  void suspect(std::size_t link) {
    states_[link].suspected = true;
    version_.fetch_add(1, std::memory_order_release);
  }

  /// This link is away, and links of other readers among [first, end) may still tell whether it is right: they have not been read so far.
  bool may_be_told(std::size_t link, std::size_t first, std::size_t end) const;
  bool someone_is_held_up() const { return held_up_.load(std::memory_order_relaxed) != 0; }

  /// A link is removed: it has no vote, nobody waits for it. Ends what waits.
  void remove(std::size_t link, std::vector<Decision>& decisions);
  /// It is restored, from this number on.
  void restore(std::size_t link, Sequence from);

  /// The trigger's list goes on. False: there is no room until the oldest open event is closed.
  bool announce(const ListedTrigger& trigger, std::uint64_t now, Sequence oldest);
  bool has_room(Sequence oldest) const;
  /// There is more of it, which somebody else has no room for, or no more for now: a time-out says nothing while it is held.
  void hold_list(bool held) { list_held_ = held; }
  /// The list has ended: its last entry is judged, and nothing is waited for any more.
  void end_of_list();
  /// Time has passed: an entry that waits for the next is judged without it.
  void settle_list(std::uint64_t now);
  const TriggerBook& book() const { return book_; }

  /// The segment that a number belongs to, to name an event that nobody brought.
  const Segment& segment_of(Sequence number) const { return segments_.of(number); }
  const Segments& segments() const { return segments_; }

  /// Events known to have been, but too many to be built empty.
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }

  /// False if all links have been silent for the time-out.
  bool anything_lives() const;

  /// The first number that at most one link has come to; nothing where there is only one.
  std::optional<Sequence> reached_by_two() const;

 private:
  struct Reader {
    std::uint64_t now = 0;      ///< its event clock
    std::uint64_t started = 0;  ///< the same when the first chunk of all came
    std::uint64_t looked = 0;   ///< departures of links until it last had nothing more to read
    std::size_t window = 0;     ///< of the thread that reads it, perhaps with others
    std::unique_ptr<Pace> pace;
    const Standings* others = nullptr;
    Standing* standing = nullptr;
    Rate rate{};
    std::uint64_t clock = 0;            ///< of the input
    std::uint64_t drained = 0;          ///< the same when it last had nothing to read
    Sequence told = 0;                  ///< so far its links had come at its last pass()
    bool silent = false;                ///< its links have brought nothing for so long that their places are in question
    std::uint64_t apart = 0;            ///< events that it and the others are apart by
    std::uint64_t compared_at = 0;      ///< clock of the input
    std::size_t waiting = 0;            ///< chunks of its links
    std::size_t waits_with = kNothing;  ///< it does not read until another has gone on
    bool over = false;                  ///< finish() was called: it reads no more
  };
  enum class Fate : std::uint8_t { undecided, aside, decided };
  enum class Stand : std::uint8_t {
    goes_on,  ///< here, or nothing is known of it yet
    blocked,  ///< the same, and its next chunk waits: for room in the window, for the list, or for what others tell
    away,
    followed  ///< away where others have gone, too: it is here when there is room
  };
  struct Waiting {
    Place place;          ///< aside
    std::uint64_t since;  ///< event clock
    Sequence listed;      ///< where the list was when it came
    Decision decision;    ///< decided
    std::uint32_t id;
    std::uint16_t bcid;
    Fate fate;
  };
  /// A link's chunks that wait: first those aside or decided, then up to two that are not decided on.
  struct State {
    LinkSequence* link = nullptr;
    std::size_t reader = 0;
    std::size_t window = 0;
    std::unique_ptr<Waiting[]> ring;
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t placed = 0;  ///< of these, aside or decided
    Stand stand = Stand::goes_on;
    std::optional<Place> left;        ///< away: where it left, if it was here before
    Place going;                      ///< away: what it brings next, there
    std::uint64_t away_since = 0;     ///< on its reader's clock
    std::uint64_t chunks_there = 0;   ///< away: kept aside since
    std::uint64_t left_clock = 0;     ///< the same, on the input's
    bool told_leaving = false;        ///< to the others of the process
    Sequence others_at = 0;           ///< where the foremost link was when it left
    bool alone = false;               ///< others have gone on from there, and it has brought nothing of theirs since
    std::uint64_t departure = 0;      ///< when it went away or was blocked: counts those of all links
    std::uint64_t offered_since = 0;  ///< chunks
    Sequence then = kNoEnd;           ///< where it was at the last departure of all links
    std::uint64_t moved = 0;          ///< the departure until which it had come there
    Sequence stalled = kNoEnd;        ///< it stood still there while one that was blocked came far
    bool agreed = false;              ///< with the list: a BCID of the link was the list's
    bool unsure = false;              ///< with the list: its events may be those of another epoch
    Sequence far = 0;                 ///< with the list: where its next chunk would be, which is too far for one alone
    Sequence last_step = 0;           ///< FULL: of its last two chunks
    bool suspected = false;           ///< its BCIDs are weighed
    bool out_of_step = false;         ///< BCIDs agree with no place
    Sequence lowest = 0;              ///< doubtful: where it was before
    Sequence floor = 0;               ///< GBT: events below have been built with it, or without it for good
    bool doubt_told = false;
    bool was_silent = false;  ///< all links of its reader were: the next chunk says whether it has lost its place
    bool keeps = false;       ///< doubtful: it goes on with the next id where the others have gone on by a period
    PlaceEvidence evidence{};
    Told told{};

    bool away() const { return stand >= Stand::away; }
  };
  using Decisions = std::vector<Decision>;
  enum class Step : std::uint8_t { wait, done };

  Waiting& at(State& state, std::size_t i) const { return state.ring[(state.first + i) % settings_.aside]; }
  const Waiting& at(const State& state, std::size_t i) const { return state.ring[(state.first + i) % settings_.aside]; }

  void make_place(State& state, std::uint64_t now, Sequence oldest, Decisions& decisions);
  void end_oldest(State& state, Decisions& decisions);
  void look(State& state, std::uint64_t now, Sequence oldest, bool final, Decisions& decisions);
  void emit(State& state, Decisions& decisions);
  Step judge(State& state, const Waiting& chunk, const Waiting* following, bool final);
  Step judge_here(State& state, const Waiting& chunk, const Waiting* following, bool final);
  Step judge_behind(State& state, const std::optional<Sequence>& number, const Waiting* following, bool goes_on_after);
  Step judge_away(State& state, const Waiting& chunk, const Waiting* following, bool final);

  /// Where live peers are that were read with a link, or by others, and whether that proves a place.
  struct PeersAt {
    Sequence number = 0;    // 0: in a segment that is not known here
    bool together = false;  // they were read with it
    bool proves = false;
    bool of_others = false;  // of other groups, ROBs and cards
    Place place{};
    Standing::Range range{};  // of_others
  };
  void find_lost(State& state, std::uint32_t id);
  void find_silent(std::size_t reader, std::uint64_t clock, bool exact);
  std::optional<std::uint64_t> passed_by_others(const Reader& reader, std::uint64_t clock) const;
  void end_silence(State& state, std::uint32_t id);
  void tell(Reader& reader, std::uint64_t clock);
  void compare(Reader& reader, std::uint64_t clock);
  bool wide(std::uint64_t period) const { return period / 4 >= settings_.window; }
  std::optional<PeersAt> stand_of_others(const State& of) const;
  Place near_place(const PeersAt& peers, std::uint32_t id) const;
  Place late_place(State& state, std::uint32_t id) const;
  bool has_witness(const State& of) const;
  void lose_place(State& state);
  bool beyond_segment(const State& state) const;
  std::optional<PeersAt> stand_of_peers(const State& of) const;
  std::uint64_t telling_period(Sequence number) const;
  std::optional<Sequence> nearest_number(Sequence stand, std::uint32_t id) const;
  Place place_by(const State& state, const PeersAt& peers, std::uint32_t id) const;
  Sequence prove(State& state, Sequence number, std::uint32_t id, std::uint16_t bcid);
  Sequence prove_place(State& state, Sequence number, std::uint32_t id, std::uint16_t bcid);
  template <typename F>
  void for_each_number(std::uint32_t id, Sequence lowest, Sequence highest, const F& f) const;
  Step judge_new(State& state, const Waiting& chunk, const Waiting* following, bool final);

  struct InList;
  Step judge_listed(State& state, const Waiting& chunk, const Waiting* following, bool final);
  Step take_expected(State& state, const InList& of);
  void look_up(const State& state, InList& of) const;
  void look_up_by_id(InList& of) const;
  Sequence lowest_listed(const InList& of) const;
  std::optional<Sequence> find_following(const InList& of, Sequence from, Sequence to) const;
  Step judge_absent(State& state, const InList& of);
  Step judge_present(State& state, const InList& of);
  bool repeats_soon(std::uint32_t id) const;
  bool finds_place(State& state, Sequence number);
  Step wait_for_others(State& state, const InList& of);

  bool comes_back(const State& state, const Place& expected, std::uint32_t stride) const;
  bool rises(const Place& from, const Place& to) const;
  Place first_place(std::uint32_t id) const;
  Sequence listed_after(Sequence number, std::uint64_t events) const;
  bool followed_in_list(State& state, Sequence number);

  Step end(State& state, Verdict verdict);
  Step take(State& state, Sequence number, bool doubtful = false);
  void decide_taken(State& state, std::size_t i, Sequence number, bool doubtful);
  bool restarts_untold(const LinkSequence& link, Sequence number, std::uint32_t id) const;
  Step go_away(State& state, const Place& place);
  void leave(State& state);
  Step keep_aside(State& state, const Place& place);
  void refute(State& state);
  void follow(State& state);
  bool may_follow(State& state) const;
  bool others_follow(State& state, const Place& left) const;
  Place first_aside(const State& state) const;
  bool together(const State& a, const State& b) const;
  bool contradicted(const State& state) const;
  bool untold(const State& state, const Place& left, std::size_t first, std::size_t end) const;
  void set(State& state, Stand stand);
  void unblock(State& state);
  bool told(const State& state, std::size_t reader) const;
  bool untold_by(const State& state, const Place& left, std::size_t reader) const;
  std::optional<Place> asks(const State& state) const;
  bool waits_for(std::size_t reader, std::size_t other) const;
  bool holds_events(std::size_t reader) const;
  bool gives_way(std::size_t reader, std::size_t other) const;
  bool behind(std::size_t reader, std::size_t other) const;
  Sequence front_of(std::size_t window) const;
  Sequence oldest_of(std::size_t reader) const { return oldest_open_[readers_[reader].window]; }
  void note_oldest(std::size_t reader, Sequence oldest) {
    Sequence& known = oldest_open_[readers_[reader].window];
    known = std::max(known, oldest);
  }
  bool finds_room(State& state, Sequence number);
  bool makes_room(State& state, Sequence number);
  bool others_may_tell(State& state);
  Step wait_for_list(State& state);
  void note_departure(State& state);
  bool open(const State& state, const Place& lowest);
  void begin(const Place& lowest);
  void enter(LinkSequence& link, const Segment& segment) const;
  void settle_aside(State& state);
  void refresh(State& state) const;

  static Place extended(const Place& from, std::uint32_t id);
  Place resolve(const Place& from, std::uint32_t id, std::uint32_t stride) const;
  Place nearest(const Place& from, std::uint32_t id) const;
  std::uint32_t spread(const LinkSequence& link) const;
  bool near(const Place& from, const Place& to, std::uint32_t stride) const;
  bool follows(const Place& from, const Place& to, std::uint32_t stride) const;
  bool confirms(const Place& from, const Place& to, std::uint32_t stride) const;
  Place resolve_restart(const Place& from, const Waiting& chunk, const Waiting* following, std::uint32_t stride) const;
  void cross(LinkSequence& link) const;
  bool delivered(const State& state, Sequence number) const;
  bool was_delivered(const State& state, std::uint32_t id) const;
  std::optional<Sequence> reachable(const State& state, const Place& place) const;
  bool in_window(const State& state, Sequence number) const;
  bool is_last(const State& state) const;
  // Numbers start well above zero, so that "before the first event" is still a number.
  static constexpr Sequence kOrigin = Sequence{1} << 32;
  static constexpr std::uint64_t kHistory = 64;
  static constexpr std::uint64_t kDense = 0xf;  // in a link's history: it has left out nothing of late
  static constexpr std::size_t kSegments = 64;
  static constexpr std::size_t kListedSegments = 4096;
  static Place place_of(const LinkSequence& link) {
    return {link.resets, static_cast<std::int64_t>(link.position() - link.base)};
  }
  // Numbers that stay free between two segments of the list: peers may be beyond where this thread saw them.
  std::uint64_t gap() const { return settings_.several_threads ? settings_.reach : 0; }
  Sequence front() const;
  Sequence front_beside(const State& of) const;
  bool is_here(const State& state) const;
  Sequence foremost() const;
  Sequence came() const;
  bool live(const State& state) const;
  bool may_close(const State& of, Sequence oldest) const;
  std::uint64_t clock(const State& state) const { return readers_[state.reader].now; }
  std::optional<Sequence> find_listed(Sequence from, Sequence to, std::uint32_t id, const std::uint16_t* bcid) const;
  void list(const ListedTrigger& trigger, const ListedTrigger* following, bool final);

  const Settings settings_;
  std::vector<State> states_;
  std::vector<Reader> readers_;
  std::vector<Sequence> oldest_open_;  // by window: the lowest number that its thread had open when it last waited or asked
  mutable std::vector<std::size_t> reached_readers_;  // by gives_way()
  std::vector<Sequence> reached_;                     // by open(), of each link that is followed
  Segments segments_;
  TriggerBook book_;
  const EventSet* events_ = nullptr;                  // FULL mode
  std::vector<const EventBcids*> bcids_;              // by window; null: none
  mutable std::vector<Sequence> stands_;              // by stand_of_peers()
  mutable std::vector<Standing::Now> places_;         // by others_follow()
  mutable std::vector<PlaceEvidence::Other> others_;  // by prove()
  Sequence run_first_ = 0;
  std::uint64_t begun_at_ = 0;   // event clock
  Sequence untold_restart_ = 0;  // ids began anew near zero here: a reset, or a jump
  Sequence believed_ = 0;        // so far the links that were followed have come
  std::optional<ListedTrigger> list_pending_;
  std::uint64_t list_pending_since_ = 0;
  bool list_ended_ = false;
  bool list_held_ = false;  // somebody is behind: it has no room to go on
  bool over_ = false;       // of all readers
  bool started_ = false;
  std::uint64_t departures_ = 0;
  Sequence oldest_ = 0;
  std::atomic<bool> begun_{false};
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint32_t> held_up_{0};  // links that are away or blocked
  std::atomic<std::uint64_t> skipped_{0};
};

}  // namespace rodeo::readout
