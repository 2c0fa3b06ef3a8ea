// Which event a chunk belongs to. Pure: ids and the time go in, decisions come out; no thread, no clock, no data.
//
// A link is *here* (its next id lies where other links are) or *away*. Reset, restart, jump, storm, start of the run and
// return after a silence are treated alike: links go away, and are followed or not. The chunks of an away link are kept
// aside. If the link is followed nothing is lost; if not, they are out of sequence. With the trigger's list no link is away:
// the list alone gives the segments, and a chunk waits until the list has come to it.
//
//   expected:  the number expected of the link, or the oldest open one if that is closed; of an away link: its next number
//              at the new place
//   place:     the meaning of this chunk's id; `following`: the link's next chunk, whose place is `after`
//   near:      at most `step` events (of the link's stride) on, or as near to the beginning of the next segment
//   reachable: near after `expected`, or at most `reach` events beyond the foremost other link that is read with it; and the
//              window has room, or more of the window's links have passed the event that would close than have still to come
//              to it
//
//   Rows are tested from top to bottom; the first that fits decides. Each kind of link has a function, whose exits have the
//   numbers.
//
//   | # | a link that is here (judge_here)                        | decision                                                        |
//   |---|---------------------------------------------------------|-----------------------------------------------------------------|
//   | 1 | place = expected, of a link less than half a round of   | take; needs no following. If the window has no room: wait. When |
//   |   | ids behind                                              | 2 reach + step chunks wait, it may pass links that stood still  |
//   | - | anything else, and following has not come yet           | wait for it until half of the time-out has passed, or the run   |
//   |   |                                                         | ends                                                            |
//   | 2 | the link has delivered place, and it is not a restart   | duplicate                                                       |
//   | 3 | following has the same id                               | duplicate; the later chunk counts                               |
//   | 4 | place below expected (judge_behind)                     | FULL group: take, if the event has not come and after follows   |
//   |   |                                                         | place. Closed less than a window ago, or lately left out by     |
//   |   |                                                         | the link: late. Else out of sequence                            |
//   | 5 | place reachable, after near place                       | take; the link is missing in the events that it skipped         |
//   | 6 | after near expected, place not between them             | out of sequence: a flipped id                                   |
//   | 7 | place reachable; after, too, but it is below place      | out of sequence: place is flipped                               |
//   |   | place reachable, not near expected, of a GBT link that  | take, if after is reachable, too, and beyond place: it is a     |
//   |   | has lately left out no event                            | witness of the leap; else out of sequence                       |
//   |   | place reachable, of any other                           | take                                                            |
//   | 8 | no following will come, place reachable                 | take                                                            |
//   | 9 | place not reachable; after goes on from it in the same  | goes away; the chunk is kept aside                              |
//   |   | segment, or it begins the next and no following comes   |                                                                 |
//   |10 | none of these                                           | out of sequence                                                 |
//
//   |   | a link of which nothing is known yet (judge_new)        |                                                                 |
//   |27 | place before the first event of other groups            | out of sequence                                                 |
//   |22 | following has the same id                               | duplicate                                                       |
//   |23 | following does not go on from place                     | out of sequence                                                 |
//   |24 | the run has begun, and place is reachable               | take                                                            |
//   |25 | the run has begun, and no following will come           | out of sequence                                                 |
//   |26 | anything else                                           | goes away; the chunk is kept aside                              |
//
//   |   | a link that is away (judge_away)                        |                                                                 |
//   |11 | place = expected                                        | kept aside                                                      |
//   |12 | place and after where it left, or where the others are  | here again; the chunks aside are out of sequence                |
//   |13 | following has the same id, or place was kept aside      | duplicate                                                       |
//   |   | before                                                  |                                                                 |
//   |   | after not near place                                    | out of sequence: flipped ids                                    |
//   |11 | place near after expected, and after not between them   | kept aside                                                      |
//   |13 | a later chunk goes on as expected, or no following will | out of sequence: flipped ids                                    |
//   |   | come                                                    |                                                                 |
//   |14 | place and the chunks after it elsewhere again           | the chunks aside are out of sequence; away to the new place     |
//   |15 | followed, or the others have come within reach          | here again; the chunks aside are taken (settle_aside)           |
//
//   Followed: at least two chunks aside, and more than half of the live links are there. Or more links are there than go on
//   beyond where they left, that has lasted 2 reach + step events, a time-out, or to the end of the run, and no other reader
//   has still to read so far. A followed link, or one that has come near followed links, is here as soon as the window has
//   room.
//   A link that left while most others went on is contradicted: it is neither followed nor counted until the others come to
//   it.
//
//   A reader has still to read so far if it has live links, none of which has come beyond where the link left, and it has
//   not run out of data since then. A link whose chunks press waits for such a reader. Of readers that wait in a circle, the
//   one that is furthest behind does not.
//
//   |   | with the trigger's list (judge_listed)                  |                                                                 |
//   |16 | place = expected                                        | take (FULL: once the list has come to it)                       |
//   |17 | place listed from expected on and reachable, and its    | take                                                            |
//   |   | BCID agrees                                             |                                                                 |
//   |20 | place not listed, and following not near expected       | wait until the list has gone on for 2 reach entries, or for a   |
//   |   |                                                         | time-out in which the list was not held up (also before the     |
//   |   |                                                         | list has begun)                                                 |
//   |18 | the link has delivered place                            | duplicate                                                       |
//   |19 | place not listed                                        | not listed                                                      |
//   | 3 | following has the same id, and the list does not go on  | duplicate                                                       |
//   |   | with it                                                 |                                                                 |
//   | 3 | no following, no BCID, the id of the last chunk, and    | duplicate                                                       |
//   |   | place more than `step` events above expected            |                                                                 |
//   |19 | following listed near expected, place farther           | out of sequence                                                 |
//   |   | place not near expected, no BCID, and following does    |                                                                 |
//   |   | not go on near place:                                   |                                                                 |
//   |18 |   the link has lately delivered the id                  | duplicate                                                       |
//   |19 |   a GBT link that has lately left out no event          | out of sequence; take and flag it if no following comes         |
//   |21 | place listed, not reachable, following goes on there    | wait until more than half of the live links are there. After a  |
//   |   |                                                         | time-out, if no other reader may tell: out of sequence          |
//   |17 | following goes on there, or none will come; or no BCID  | take; flagged if the list has the id twice                      |
//   |   | of the link ever agreed, and the ids of both go on      |                                                                 |
//   |   | Numbers between two segments of the list are not events: the first of the next segment is near after the last.                |
//   |   | The list itself leaps only when it has gone on from the new place: two entries in a row may have the same flipped bit.        |
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

/// What a worker knows of one link: all that an undisturbed run touches. The worker's thread advances it alone below `end`;
/// else the sequencer writes it. Peers read the atomics at any time, and the fields of the segment during their turn at the
/// sequencer: these change only there.
struct alignas(base::kCacheLine) LinkSequence {
  std::atomic<Sequence> next{0};       ///< number expected next
  Sequence end = 0;                    ///< numbers below may be taken without asking; 0: ask
  std::uint64_t history = 0;           ///< bit k: the event next - 1 - k was delivered
  Sequence base = 0;                   ///< number of index 0 of its segment
  std::uint64_t header = 0;            ///< of the chunk records that its owner writes
  std::atomic<std::uint64_t> seen{0};  ///< when its last chunk came, on the event clock
  std::uint32_t expected = 0;          ///< id of `next`
  std::uint32_t resets = 0;            ///< of its segment
  std::uint32_t rounds = 0;            ///< of its segment, for global ids
  std::uint16_t stride = 1;            ///< events from one chunk of the link to the next
  std::atomic<bool> here{false};       ///< `next` is valid
  std::atomic<bool> removed{false};
  bool lost = false;       ///< `expected` may be the id of another round after a silence; the sequencer finds its place anew
  bool doubtful = false;   ///< its place was found anew and is not proven so far
  Sequence heard = 0;      ///< how far its reader's links had come when it last brought something; 0: it never has
  std::uint64_t span = 0;  ///< events of the run that is looked at
  Sequence in_question = 0;  ///< it was silent for long when it was here; 0: never
  Pace* pace = nullptr;      ///< of its reader

  Sequence position() const { return next.load(std::memory_order_relaxed); }

  /// Call it before a run of its chunks is looked at, which may span this many events. Notes that the link is not silent,
  /// and whether its silence cost it its place. A run that brings the link to where the others are keeps the place, if it
  /// begins with the expected id.
  void hear(std::uint64_t events) {
    const Sequence head = pace->head();
    if (head > heard + pace->limit() && heard != 0) [[unlikely]] {
      if (head <= position() + events + pace->quarter()) {
        in_question = position();
      } else {
        lost = true;
        end = 0;
      }
    }
    heard = head;
    span = events;
  }
  /// Call it after the run: the link was at `before`.
  void told(Sequence before) {
    const Sequence now = position();
    if (now == before || doubtful) return;
    pace->note(heard, now);
    pace->come(now, base);
    heard = std::max(heard, now);
  }
  /// True if its place is lost unless the next chunk has the expected id.
  bool questioned() const { return in_question != 0 && in_question == position(); }

  /// True if so many of its events are closed that its id may be of a later round.
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
  bool unproven = false;     ///< take: flag the event, since the link was silent for long and its place is not proven so far
  Sequence sequence = 0;     ///< take: number of the event
  Sequence from = 0;         ///< take: the link has skipped the events from here to `sequence`
  std::uint32_t resets = 0;  ///< this and the next two: of the event's segment, to name the event
  std::uint32_t rounds = 0;
  Sequence base = 0;
};

/// What a window knows of its events.
class EventBcids {
 public:
  /// The BCID on which the chunks of this event agree; nothing if none is known. For the window's thread.
  virtual std::optional<std::uint16_t> bcid(Sequence number) const = 0;

 protected:
  ~EventBcids() = default;
};

/// For one ROB (GBT mode) or one group of links (FULL mode). Not synchronised: its callers take turns. Bounded memory:
/// `aside` chunks a link. `now` is always the event clock of the link's reader.
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

  /// Adds a link; all links before the first offer(). In a FULL group `stride` is the number of its links, and set_events()
  /// gives their events. `reader`: the chunks of one reader's links come in the order in which they were read, on one event
  /// clock; another reader may not have read so far. `window`: that of the caller, which passes its oldest open event in the
  /// calls for this link.
  std::size_t add(LinkSequence& link, std::uint16_t stride = 1, std::size_t reader = 0, std::size_t window = 0);
  void set_events(const EventSet& events) { events_ = &events; }
  /// Sets the BCIDs of one window's events: they prove places where other links do not. Before the first offer().
  void set_bcids(std::size_t window, const EventBcids& bcids) { bcids_[window] = &bcids; }
  /// For the thread of this reader.
  Pace& pace(std::size_t reader) { return *readers_[reader].pace; }
  /// A reader writes its places to `own`, and asks the other readers of the process (`others`). Without the list; before the
  /// first offer().
  void share(std::size_t reader, const Standings& others, Standing& own) {
    readers_[reader].others = &others;
    readers_[reader].standing = &own;
  }
  /// Events between two points that a reader's Standing keeps.
  std::uint64_t spacing() const { return std::max<std::uint64_t>(16, settings_.format.period() / 256); }
  /// Call it before a page is looked at, which was read at this clock of the input. `quiet_until`: of a file that had
  /// nothing for the reader up to there. True if the reader's links were silent, and other readers can show their place once
  /// they have read up to this clock.
  bool read(std::size_t reader, std::uint64_t clock, std::optional<std::uint64_t> quiet_until);
  /// Call it after each page of a reader, and while it has nothing to read (`drained`): it has read all that was sent up to
  /// this clock of the input.
  void pass(std::size_t reader, std::uint64_t clock, bool drained);

  /// True once the lowest number of the run is known.
  bool begun() const { return begun_.load(std::memory_order_acquire); }
  Sequence run_first() const { return run_first_; }

  /// Changes when a segment has begun or links are to be followed. Then call settle() for each link.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  /// Takes a chunk of this link, after those that wait. Decisions come in the order of the link's chunks, oldest first, one
  /// for each chunk. `oldest`: the lowest number still open at the caller.
  void offer(std::size_t link, std::uint32_t id, std::uint16_t bcid, std::uint64_t now, Sequence oldest,
             std::vector<Decision>& decisions);

  /// Judges the waiting chunks again: after a change of version(), or when time has passed.
  void settle(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions);

  /// Ends the waiting chunks of a link as out of sequence. After finish() of all links.
  void give_up(std::size_t link, std::vector<Decision>& decisions);

  /// Ends the oldest waiting chunk of a link, as if more than `aside` waited.
  void end_oldest(std::size_t link, std::vector<Decision>& decisions) { end_oldest(states_[link], decisions); }

  /// No more chunks will come from this link: the waiting ones are judged without them. Call it for all links, and again
  /// until nothing changes.
  void finish(std::size_t link, std::uint64_t now, Sequence oldest, std::vector<Decision>& decisions);

  /// No more chunks will come from any link of this reader.
  void reads_no_more(std::size_t reader);

  std::size_t waiting(std::size_t link) const { return states_[link].count; }

  /// A reader has nothing more to read for now: the others no longer wait for what its links may show.
  void looked(std::size_t reader) { readers_[reader].looked = departures_; }
  void looked(std::size_t reader, std::uint64_t now) {
    readers_[reader].now = std::max(readers_[reader].now, now);
    looked(reader);
  }
  /// The reader does not read on until the others have shown where this link's chunks belong; kRoom: until readers with
  /// older open events have closed them; kConsumers: until its consumers give memory back. Of readers that wait for each
  /// other, the one that is furthest behind goes on with what the others have told so far. `oldest`: the lowest number that
  /// it has open.
  void wait(std::size_t reader, std::size_t link, Sequence oldest) {
    readers_[reader].waits_with = link;
    note_oldest(reader, oldest);
  }
  void read_on(std::size_t reader) { readers_[reader].waits_with = kNothing; }
  static constexpr std::size_t kNothing = ~std::size_t{0};
  static constexpr std::size_t kRoom = kNothing - 1;
  static constexpr std::size_t kConsumers = kRoom - 1;
  /// True if some reader does not wait for others: it reads, or its consumers hold it up, or its wait is over. Then no wait
  /// is too long. Else nothing changes until a reader that has read everything gives up its wait.
  bool someone_goes_on() const;
  std::size_t readers() const { return readers_.size(); }

  /// True if the waiting chunks of this link reach over many events.
  bool reaches_far(std::size_t link) const;

  /// What happened to a link whose place was in doubt, for the log; cleared by the call.
  struct Told {
    bool lost = false;         ///< it was silent for long, and its chunks are flagged until its place is proven
    std::int64_t moved = 0;    ///< its place has changed by this many events
    bool by_bcid = false;      ///< `moved`: by the BCIDs of its chunks, not by other links
    bool out_of_step = false;  ///< BCIDs have begun to agree with no place, or with several
    std::optional<std::uint16_t> constant{};  ///< `out_of_step`: all BCIDs are too large by this
    bool is_out_of_step = false;              ///< BCIDs agree with no place, or with several, now
  };
  Told take_told(std::size_t link) {
    states_[link].told.is_out_of_step = states_[link].out_of_step;
    return std::exchange(states_[link].told, {});
  }

  /// The BCIDs of this link have disagreed with those of the others for some time: they are weighed from now on.
  void suspect(std::size_t link) {
    if (std::exchange(states_[link].suspected, true)) return;
    version_.fetch_add(1, std::memory_order_release);
  }

  /// True if this link waits, and one of the readers [first, end) may still show where it belongs: it has not read so far.
  bool may_be_told(std::size_t link, std::size_t first, std::size_t end) const;
  bool someone_is_held_up() const { return held_up_.load(std::memory_order_relaxed) != 0; }

  /// A link is removed: it has no vote, and no reader waits for it. Ends its waiting chunks.
  void remove(std::size_t link, std::vector<Decision>& decisions);
  /// A link is restored, from this number on.
  void restore(std::size_t link, Sequence from);

  /// Appends an entry of the trigger's list. False: there is no room until the oldest open event is closed.
  bool announce(const ListedTrigger& trigger, std::uint64_t now, Sequence oldest);
  bool has_room(Sequence oldest) const;
  /// `held`: the list has entries for which another worker has no room. While it is held, time-outs prove nothing.
  void hold_list(bool held) { list_held_ = held; }
  /// The list has ended: its last entry is judged, and chunks no longer wait for entries.
  void end_of_list();
  /// Time has passed: an entry that waits for the next is judged without it.
  void settle_list(std::uint64_t now);
  const TriggerBook& book() const { return book_; }

  /// The segment of a number, to name an event that no link has brought.
  const Segment& segment_of(Sequence number) const { return segments_.of(number); }
  const Segments& segments() const { return segments_; }

  /// Events that are known to exist, but are too many to build empty.
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }

  /// False if all links have been silent for the time-out.
  bool anything_lives() const;

  /// The first number that at most one link has come to; nothing where there is only one.
  std::optional<Sequence> reached_by_two() const;

 private:
  struct Reader {
    std::uint64_t now = 0;      ///< its event clock
    std::uint64_t started = 0;  ///< the same when the first chunk came, or the first after all links were silent
    std::uint64_t looked = 0;   ///< `departures_` when it last had nothing more to read
    std::size_t window = 0;     ///< of the thread that reads it, perhaps with others
    std::unique_ptr<Pace> pace;
    const Standings* others = nullptr;
    Standing* standing = nullptr;
    Rate rate{};
    std::uint64_t clock = 0;            ///< clock of the input
    std::uint64_t drained = 0;          ///< the same when it last had nothing to read
    Sequence told = 0;                  ///< how far its links had come at its last pass()
    bool silent = false;                ///< its links have brought nothing for so long that their places are in question
    bool asked = false;                 ///< the others were asked where they are, in this silence
    std::uint64_t apart = 0;            ///< events by which it and the others are apart
    std::size_t leaving = 0;            ///< links whose leaving the other readers know
    std::uint64_t compared_at = 0;      ///< clock of the input at the last compare()
    std::size_t waiting = 0;            ///< chunks of its links that wait
    std::size_t waits_with = kNothing;  ///< it does not read until another has gone on
    bool over = false;                  ///< finish() was called: it reads no more
  };
  enum class Fate : std::uint8_t { undecided, aside, decided };
  enum class Stand : std::uint8_t {
    goes_on,  ///< here, or nothing is known of it yet
    blocked,  ///< the same, but its next chunk waits: for room in the window, for the list, or for other readers
    away,
    followed  ///< away where others have gone, too: here when there is room
  };
  struct Waiting {
    Place place;          ///< of a chunk aside
    std::uint64_t since;  ///< event clock
    Sequence listed;      ///< end of the list when the chunk came
    Decision decision;    ///< decided
    std::uint32_t id;
    std::uint16_t bcid;
    Fate fate;
  };
  /// A link and its waiting chunks: first those aside or decided, then up to two undecided ones.
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
    Place going;                      ///< away: place of its next chunk
    std::uint64_t away_since = 0;     ///< on its reader's clock
    std::uint64_t chunks_there = 0;   ///< away: chunks kept aside since then
    std::uint64_t left_clock = 0;     ///< `away_since` on the clock of the input
    bool told_leaving = false;        ///< the other readers of the process know that it left
    Sequence others_at = 0;           ///< where the foremost link was when it left
    bool alone = false;               ///< others went on from where it left, and it has brought no event of theirs since
    std::uint64_t departure = 0;      ///< `departures_` when it went away or was blocked
    std::uint64_t offered_since = 0;  ///< chunks since then
    Sequence then = kNoEnd;           ///< where it was at the last departure of any link
    std::uint64_t moved = 0;          ///< the departure by which it had come there
    Sequence stalled = kNoEnd;        ///< it stood still there while a blocked link brought many chunks
    bool agreed = false;              ///< with the list: a BCID of the link has agreed
    bool unsure = false;              ///< with the list: its events may be those of another epoch
    Sequence far = 0;                 ///< with the list: place of its next chunk, perhaps too far for one link alone
    Sequence last_step = 0;           ///< FULL: events from one to the other of its last two chunks
    bool suspected = false;           ///< its BCIDs are weighed
    bool out_of_step = false;         ///< BCIDs agree with no place
    Sequence lowest = 0;              ///< doubtful: where it was before
    Sequence floor = 0;               ///< GBT: events below have been built with it, or without it for good
    bool doubt_told = false;
    bool was_silent = false;  ///< all links of its reader were silent: the next chunk shows whether it lost its place
    bool keeps = false;       ///< doubtful: it goes on with the next id, but the others have gone on by 3/4 period
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

  /// Where live peers are (links of the same reader, or others), and whether they prove a place.
  struct PeersAt {
    Sequence number = 0;    // 0: in a segment that is not known here
    bool together = false;  // links of the same reader
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
  std::optional<Place> late_place(State& state, std::uint32_t id) const;
  bool has_witness(const State& of) const;
  void lose_place(State& state);
  bool beyond_segment(const State& state) const;
  std::optional<PeersAt> stand_of_peers(const State& of, bool asks_others = false) const;
  std::uint64_t telling_period(Sequence number) const;
  bool round_of_resets(Sequence number) const;
  std::optional<Sequence> nearest_number(Sequence stand, std::uint32_t id) const;
  Place place_by(const State& state, const PeersAt& peers, std::uint32_t id) const;
  Sequence prove(State& state, Sequence number, std::uint32_t id, std::uint16_t bcid);
  void compare_with_list(State& state, Sequence number, std::uint16_t bcid);
  static void note_finding(State& state, const PlaceEvidence::Finding& finding);
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
  bool goes_on_later(const State& state, const InList& of) const;
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
  bool may_follow(State& state);
  bool others_follow(State& state, const Place& left);
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
  Place first_round(const Place& lowest);
  void begin(const Place& lowest);
  void enter(LinkSequence& link, const Segment& segment) const;
  void settle_aside(State& state);
  void refresh(State& state) const;

  static Place extended(const Place& from, std::uint32_t id, std::uint32_t behind = kResetRound / 2);
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
  static constexpr std::uint32_t kResetRound = 256;  // resets until an 8-bit reset counter comes round
  static constexpr std::uint64_t kDense = 0xf;       // in a link's history: it has lately left out no event
  static constexpr std::size_t kSegments = 64;
  static constexpr std::size_t kListedSegments = 4096;
  static constexpr std::size_t kLeap = 3;  // entries of the list in a row, each of which the next one follows
  static Place place_of(const LinkSequence& link) {
    return {link.resets, static_cast<std::int64_t>(link.position() - link.base)};
  }
  // False if the segment of the link is over: its next number is of a later one, at another place.
  bool is_in_segment(const LinkSequence& link) const {
    return segments_.of(link.position()).place(link.position()) == place_of(link);
  }
  // Numbers that stay free between two segments of the list: peers may have gone on since this thread saw them.
  std::uint64_t gap() const { return settings_.several_threads ? settings_.reach : 0; }
  Place place_of(const Reader& reader) const { return segments_.of(reader.told - 1).place(reader.told); }
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
  void begin_list(const ListedTrigger& trigger, const ListedTrigger* following, bool final);
  void leap(const Place& next, const Place& k, const ListedTrigger& trigger);
  void open_listed(const Place& lowest, const Place& brought);
  void append(const Place& place, const ListedTrigger& trigger);

  const Settings settings_;
  std::vector<State> states_;
  std::vector<Reader> readers_;
  std::vector<Sequence> oldest_open_;  // by window: the lowest number that its thread had open when it last waited or asked
  mutable std::vector<std::size_t> reached_readers_;  // for gives_way()
  std::vector<Sequence> reached_;                     // for open(), of each followed link
  Segments segments_;
  TriggerBook book_;
  const EventSet* events_ = nullptr;                  // FULL mode
  std::vector<const EventBcids*> bcids_;              // by window; null: none
  mutable std::vector<Sequence> stands_;              // for stand_of_peers()
  mutable std::vector<Standing::Now> places_;         // for others_follow()
  mutable std::vector<PlaceEvidence::Other> others_;  // for prove()
  Sequence run_first_ = 0;
  std::uint64_t begun_at_ = 0;   // event clock
  Sequence untold_restart_ = 0;  // ids began anew near zero here: a reset, or a jump
  Sequence believed_ = 0;        // how far the followed links have come
  std::optional<ListedTrigger> list_pending_;
  std::vector<std::pair<Place, ListedTrigger>> leap_;  // entries from where the list may have leapt to
  std::uint64_t list_pending_since_ = 0;
  bool list_ended_ = false;
  bool list_held_ = false;  // another worker has no room for more entries
  bool over_ = false;       // all readers have ended
  bool started_ = false;
  std::uint64_t departures_ = 0;
  Sequence oldest_ = 0;
  std::atomic<bool> begun_{false};
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint32_t> held_up_{0};  // links that are away or blocked
  std::atomic<std::uint64_t> skipped_{0};
};

}  // namespace rodeo::readout
