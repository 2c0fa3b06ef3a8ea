// Which event a chunk belongs to. Pure: ids and the time go in, decisions come out; no thread, no clock, no data.
//
// A link is *here* (its next id lies where other links are) or *away*. Reset, restart, jump, storm, start of the run and
// return after a silence are treated alike: links go away, and are followed or not. The chunks of an away link are kept
// aside. If the link is followed nothing is lost; if not, they are out of sequence. With the trigger's list no link is away:
// the list alone gives the segments, and a chunk waits until the list has come to it.
//
// The sequencer decides by the tables of cases.md. It asks four parts: what number is this id (Numbers, with the list
// TriggerNumbers), is the link credible (Credibility), is there room (Room), and what waits for what (Waits).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "readout/sequence/credibility.h"
#include "readout/sequence/links.h"
#include "readout/sequence/numbers.h"
#include "readout/sequence/reader_tracks.h"
#include "readout/sequence/room.h"
#include "readout/sequence/silences.h"
#include "readout/sequence/trigger_numbers.h"
#include "readout/sequence/waits.h"

namespace rodeo::readout {

/// For one ROB (GBT mode) or one group of links (FULL mode). Not synchronised: its callers take turns. Bounded memory:
/// `aside` chunks a link. `now` is always the event clock of the link's reader.
class Sequencer {
 public:
  using Settings = SequencerSettings;
  using Decisions = std::vector<Decision>;

  explicit Sequencer(const Settings& settings);

  const Settings& settings() const { return settings_; }

  // ---- links and readers, before the first offer()

  /// Adds a link; all links before the first offer(). In a FULL group `stride` is the number of its links, and set_events()
  /// gives their events. `reader`: the chunks of one reader's links come in the order in which they were read, on one event
  /// clock; another reader may not have read so far. `window`: that of the caller, which passes its oldest open event in the
  /// calls for this link.
  std::size_t add(LinkSequence& link, std::uint16_t stride = 1, std::size_t reader = 0, std::size_t window = 0);
  void set_events(const EventSet& events) { links_.set_events(events); }
  /// Sets the BCIDs of one window's events: they prove places where other links do not.
  void set_bcids(std::size_t window, const EventBcids& bcids);
  /// A reader writes its places to `own`, and asks the other readers of the process (`others`). Without the list.
  void share(std::size_t reader, const ReaderTracks& tracks, ReaderTrack& own) {
    links_.reader(reader).tracks = &tracks;
    links_.reader(reader).track = &own;
  }
  /// Events between two points that a ReaderTrack keeps.
  std::uint64_t spacing() const { return std::max<std::uint64_t>(16, settings_.format.period() / 256); }
  std::size_t readers() const { return links_.readers(); }
  /// For the thread of this reader.
  Pace& pace(std::size_t reader) { return *links_.reader(reader).pace; }

  // ---- chunks

  /// Takes a chunk of this link, after those that wait. Decisions come in the order of the link's chunks, oldest first, one
  /// for each chunk. `oldest`: the lowest number still open at the caller.
  void offer(std::size_t link, std::uint32_t id, std::uint16_t bcid, std::uint64_t now, Sequence oldest,
             Decisions& decisions);
  /// Judges the waiting chunks again: after a change of version(), or when time has passed.
  void rejudge(std::size_t link, std::uint64_t now, Sequence oldest, Decisions& decisions);
  /// No more chunks will come from this link: the waiting ones are judged without them. Call it for all links, and again
  /// until nothing changes.
  void finish(std::size_t link, std::uint64_t now, Sequence oldest, Decisions& decisions);
  /// Ends the waiting chunks of a link as out of sequence. After finish() of all links.
  void give_up(std::size_t link, Decisions& decisions);
  /// Ends the oldest waiting chunk of a link, as if more than `aside` waited.
  void end_oldest(std::size_t link, Decisions& decisions) { end_oldest(links_[link], decisions); }
  /// A link is removed: it has no vote, and no reader waits for it. Ends its waiting chunks.
  void remove(std::size_t link, Decisions& decisions);
  /// A link is restored, from this number on.
  void restore(std::size_t link, Sequence from);
  std::size_t waiting(std::size_t link) const { return links_[link].chunks.count(); }
  /// Changes when a segment has begun or links are to be followed. Then call settle() for each link.
  std::uint64_t version() const { return links_.version(); }
  bool any_link_held_up() const { return links_.any_link_held_up(); }

  // ---- numbers

  /// True once the lowest number of the run is known.
  bool begun() const { return numbers_.begun(); }
  Sequence run_first() const { return numbers_.run_first(); }
  /// The segment of a number, to name an event that no link has brought.
  const Segment& segment_of(Sequence number) const { return numbers_.segments().segment_of(number); }
  /// Events that are known to exist, but are too many to build empty.
  std::uint64_t skipped() const { return numbers_.skipped(); }
  /// False if all links have been silent for the time-out.
  bool any_live() const { return links_.any_live(); }
  /// The first number that at most one link has come to; nothing where there is only one.
  std::optional<Sequence> second_front() const { return links_.second_front(); }

  // ---- the trigger's own list

  /// Appends an entry. False: there is no room until the oldest open event is closed.
  bool announce(const ListedTrigger& trigger, std::uint64_t now, Sequence oldest) {
    return list_.announce(trigger, now, oldest);
  }
  bool has_room(Sequence oldest) const { return list_.has_room(oldest); }
  /// `held`: the list has entries for which another worker has no room. While it is held, time-outs prove nothing.
  void set_list_held(bool held) { list_.set_held(held); }
  /// The list has ended: its last entry is judged, and chunks no longer wait for entries.
  void end_list() { list_.end(); }
  /// Time has passed: an entry that waits for the next is judged without it.
  void judge_overdue_entry(std::uint64_t now) { list_.judge_overdue_entry(now); }
  const TriggerEntries& trigger_entries() const { return list_.entries(); }

  // ---- links whose place is in doubt

  /// Silences::read() and pass().
  bool begin_page(std::size_t reader, std::uint64_t clock, std::optional<std::uint64_t> quiet_until) {
    return silences_.begin_page(reader, clock, quiet_until);
  }
  void end_page(std::size_t reader, std::uint64_t clock, bool drained) { silences_.end_page(reader, clock, drained); }
  /// The BCIDs of this link have disagreed with those of the others for some time: they are weighed from now on.
  void suspect(std::size_t link) {
    if (!std::exchange(links_[link].suspected, true)) links_.judge_again();
  }
  /// What happened to the place of this link; cleared by the call.
  PlaceChange take_place_change(std::size_t link) {
    links_[link].place_change.is_out_of_step = links_[link].out_of_step;
    return std::exchange(links_[link].place_change, {});
  }

  // ---- readers that wait

  static constexpr std::size_t kNothing = Reader::kNothing;
  static constexpr std::size_t kRoom = Reader::kRoom;
  static constexpr std::size_t kConsumers = Reader::kConsumers;
  /// A reader has nothing more to read for now: other readers no longer wait for what its links may show.
  void set_drained(std::size_t reader) { waits_.set_drained(reader); }
  void set_drained(std::size_t reader, std::uint64_t now) {
    links_.set_clock(reader, now);
    waits_.set_drained(reader);
  }
  /// The reader does not read on until other readers have shown where this link's chunks belong; kRoom: until readers with
  /// older open events have closed them; kConsumers: until its consumers give memory back. Of readers that wait for each
  /// other, the one that is furthest behind goes on with what the others have shown so far. `oldest`: the lowest number that
  /// it has open.
  void set_waiting(std::size_t reader, std::size_t link, Sequence oldest) {
    links_.reader(reader).waits_for_link = link;
    waits_.note_oldest(reader, oldest);
  }
  void clear_waiting(std::size_t reader) { links_.reader(reader).waits_for_link = kNothing; }
  /// No more chunks will come from any link of this reader.
  void set_reader_ended(std::size_t reader) { links_.set_over(reader); }
  /// Waits::any_reader_proceeds(), spans_far() and may_be_resolved().
  bool any_reader_proceeds() const { return waits_.any_reader_proceeds(); }
  bool spans_far(std::size_t link) const { return waits_.spans_far(links_[link]); }
  bool may_be_resolved(std::size_t link, std::size_t first, std::size_t end) const {
    return waits_.may_be_resolved(links_[link], first, end);
  }

 private:
  enum class Step : std::uint8_t { wait, done };
  struct ListMatch;

  void make_space(Link& link, std::uint64_t now, Sequence oldest, Decisions& decisions);
  void end_oldest(Link& link, Decisions& decisions);
  void judge_waiting(Link& link, std::uint64_t now, Sequence oldest, bool final, Decisions& decisions);
  void emit_decisions(Link& link, Decisions& decisions);
  void update_fast_path(Link& link) const;

  // The cases. `following`: the link's next chunk. `final`: none will come.
  Step judge(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final);
  Step judge_here(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final);
  Step judge_behind(Link& link, const std::optional<Sequence>& number, const PendingChunk* following, bool goes_on_after);
  Step judge_new(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final);
  Step judge_away(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final);
  std::optional<Sequence> find_return(const Link& link, const PendingChunk& chunk, const PendingChunk* following,
                                      const std::optional<Place>& unless) const;
  bool later_chunk_follows(const Link& link, const Place& expected, std::uint32_t stride) const;
  Step judge_listed(Link& link, const PendingChunk& chunk, const PendingChunk* following, bool final);
  Step judge_expected(Link& link, const ListMatch& match);
  Step judge_absent(Link& link, const ListMatch& match);
  Step judge_present(Link& link, const ListMatch& match);
  bool finds_room_for_listed(Link& link, const ListMatch& match);
  bool is_majority_in_list(Link& link, Sequence number);
  Step wait_for_others(Link& link, const ListMatch& match);

  // How a chunk ends, or waits.
  Step end(Link& link, Verdict verdict);
  Step accept(Link& link, Sequence number, bool doubtful = false);
  void decide_accepted(Link& link, std::size_t i, Sequence number, bool doubtful);
  void learn_stride(Link& link, Sequence step);
  Step keep_aside(Link& link, const Place& place);
  Step wait(Link& link);
  bool finds_room(Link& link, Sequence number);
  bool others_may_show_place(Link& link);

  // Links that go away, and come back.
  Step go_away(Link& link, const Place& place);
  void leave(Link& link);
  void refute(Link& link);
  void follow(Link& link);
  bool may_follow(Link& link);
  void open(const Place& lowest);
  void accept_aside(Link& link);
  void lose_place(Link& link);

  const Settings settings_;
  Numbers numbers_;
  TriggerNumbers list_;
  Silences silences_;
  Credibility credibility_;
  Waits waits_;
  Room room_;
  Links links_;  // last: all threads read its version
};

}  // namespace rodeo::readout
