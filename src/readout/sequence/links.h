// The links of one ROB or group and their readers: where each link stands, and which of its chunks wait. All parts of a
// Sequencer use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "readout/sequence/event_set.h"
#include "readout/sequence/link_sequence.h"
#include "readout/sequence/numbers.h"
#include "readout/sequence/pending_chunks.h"
#include "readout/sequence/place_evidence.h"
#include "readout/sequence/rate.h"
#include "readout/sequence/reader_tracks.h"

namespace rodeo::readout {

/// What a window knows of its events.
class EventBcids {
 public:
  /// The BCID on which the chunks of this event agree; nothing if none is known. For the window's thread.
  virtual std::optional<std::uint16_t> bcid(Sequence number) const = 0;

 protected:
  ~EventBcids() = default;
};

/// What happened to a link whose place was in doubt, for the log.
struct PlaceChange {
  bool lost = false;                        ///< it was silent for long, and its chunks are flagged until its place is proven
  std::int64_t moved = 0;                   ///< its place has changed by this many events
  bool by_bcid = false;                     ///< `moved`: by the BCIDs of its chunks, not by other links
  bool out_of_step = false;                 ///< BCIDs have begun to agree with no place, or with several
  std::optional<std::uint16_t> constant{};  ///< `out_of_step`: all BCIDs are too large by this
  bool is_out_of_step = false;              ///< BCIDs agree with no place, or with several, now
};

enum class LinkPhase : std::uint8_t {
  normal,   ///< here, or nothing is known of it yet
  blocked,  ///< the same, but its next chunk waits: for room in the window, for the list, or for other readers
  away,
  followed  ///< away where other links have gone, too: it comes back when there is room
};

struct Link {
  LinkSequence& sequence;
  std::size_t reader;
  std::size_t window;
  PendingChunks chunks;
  LinkPhase phase = LinkPhase::normal;
  std::optional<Place> left = {};  ///< away: where it left, if it was here before
  Place going = {};                ///< away: place of its next chunk
  std::uint64_t chunks_there = 0;  ///< away: chunks kept aside since it left
  Sequence floor = 0;              ///< GBT: events below have been built with it, or without it for good
  Sequence last_step = 0;          ///< FULL: events from one to the other of its last two chunks
  Sequence far = 0;                ///< with the list: place of its next chunk, perhaps too far for one link alone
  bool agreed = false;             ///< with the list: a BCID of the link has agreed
  bool unsure = false;             ///< with the list: its events may be those of another epoch

  // Waits and Room
  std::uint64_t departure = 0;           ///< Waits::departures_ when it went away or was blocked
  std::uint64_t offered = 0;             ///< chunks since then
  Sequence departure_position = kNoEnd;  ///< where it was at the last departure of any link
  std::uint64_t moved_departure = 0;     ///< the departure by which it had come there
  Sequence stalled = kNoEnd;             ///< it stood still there while a blocked link brought many chunks

  // Credibility of a link that is away
  std::uint64_t away_since = 0;   ///< on its reader's clock
  std::uint64_t left_clock = 0;   ///< the same on the clock of the input
  Sequence others_at = 0;         ///< where the foremost link was when it left
  bool reported_leaving = false;  ///< the other readers of the process know that it left
  bool alone = false;             ///< other links went on from where it left, and it has brought no event of theirs since

  // Credibility of a link that was silent
  bool was_silent = false;      ///< all links of its reader were silent: the next chunk shows whether it lost its place
  Sequence lowest = 0;          ///< doubtful: where it was before
  bool keeps = false;           ///< doubtful: it goes on with the next id, but the others have gone on by 3/4 period
  bool suspected = false;       ///< its BCIDs are weighed
  bool out_of_step = false;     ///< BCIDs agree with no place
  bool reported_doubt = false;  ///< `place_change` has had the doubt
  PlaceChange place_change{};
  const EventBcids* bcids = nullptr;  ///< of its window, if they are known
  PlaceEvidence evidence{};

  Sequence position() const { return sequence.position(); }
  bool here() const { return sequence.here.load(std::memory_order_relaxed); }
  bool removed() const { return sequence.removed.load(std::memory_order_relaxed); }
  bool away() const { return phase >= LinkPhase::away; }
  /// Away: the place of the first chunk aside.
  Place first_aside() const;
};

/// A worker's stream, or one card of it.
struct Reader {
  std::uint64_t now = 0;      ///< its event clock
  std::uint64_t started = 0;  ///< the same when the first chunk came, or the first after all links were silent
  std::size_t window = 0;     ///< of the thread that reads it, perhaps with others
  std::size_t waiting = 0;    ///< chunks of its links that wait
  bool over = false;          ///< it reads no more
  std::unique_ptr<Pace> pace;

  // Waits
  std::uint64_t drained_departure = 0;    ///< Waits::departures_ when it last had nothing more to read
  std::size_t waits_for_link = kNothing;  ///< the link whose chunks it waits for, or one of the following
  static constexpr std::size_t kNothing = ~std::size_t{0};
  static constexpr std::size_t kRoom = kNothing - 1;
  static constexpr std::size_t kConsumers = kRoom - 1;

  // Silences
  const ReaderTracks* tracks = nullptr;  ///< all readers of the process; null: they do not show each other their places
  ReaderTrack* track = nullptr;          ///< its own
  Rate rate{};
  std::uint64_t clock = 0;        ///< of the input
  std::uint64_t drained = 0;      ///< the same when it last had nothing to read
  Sequence head = 0;              ///< how far its links had come at its last pass()
  bool silent = false;            ///< its links have brought nothing for so long that their places are in question
  bool asked_others = false;      ///< it has asked where the others are, in this silence
  std::uint64_t distance = 0;     ///< events by which it and the others are apart
  std::uint64_t compared_at = 0;  ///< clock of the input at the last comparison
  std::size_t leaving = 0;        ///< links with `reported_leaving`

  bool has_others() const { return track != nullptr && tracks->has_others(); }
};

/// Not synchronised, but for version() and any_link_held_up().
class Links {
 public:
  explicit Links(const SequencerSettings& settings) : settings_(settings) {}

  void add(LinkSequence& sequence, std::size_t reader, std::size_t window);
  void set_events(const EventSet& events) { events_ = &events; }

  auto begin() { return links_.begin(); }
  auto end() { return links_.end(); }
  auto begin() const { return links_.begin(); }
  auto end() const { return links_.end(); }
  std::size_t size() const { return links_.size(); }
  Link& operator[](std::size_t i) { return links_[i]; }
  const Link& operator[](std::size_t i) const { return links_[i]; }

  std::size_t readers() const { return readers_.size(); }
  Reader& reader(std::size_t i) { return readers_[i]; }
  const Reader& reader(std::size_t i) const { return readers_[i]; }
  Reader& reader_of(const Link& link) { return readers_[link.reader]; }
  const Reader& reader_of(const Link& link) const { return readers_[link.reader]; }
  /// The event clock of the link's reader.
  std::uint64_t clock(const Link& link) const { return readers_[link.reader].now; }
  bool all_over() const { return all_over_; }

  // ---- which links are here, and how far

  /// FULL mode: each event comes by one link only, and links take turns.
  bool is_round_robin() const { return events_ != nullptr; }
  /// FULL mode: the event has come.
  bool has_arrived(Sequence number) const { return events_->has_arrived(number); }
  /// The link has delivered this event; FULL mode: any link has.
  bool delivered(const Link& link, Sequence number) const;
  /// Events from one chunk of a link to the next, where links take turns or are dealt events as they come.
  std::uint32_t spread(const Link& link) const;
  /// The link has brought something within a time-out.
  bool is_live(const Link& link) const;
  bool is_here(const Link& link) const { return link.here() && !link.removed() && is_live(link); }
  bool any_live() const;
  /// The foremost of the links that are here. front_of_others(): of the other links of the same reader, if there are any.
  Sequence front() const;
  Sequence front_of_others(const Link& of) const;
  /// The lowest number that no link has come to.
  Sequence frontier() const;
  /// One above the last number that came: from there on, numbers of the newest segment are not events.
  Sequence arrived_end() const;
  /// The first number that at most one link has come to; nothing where there is only one.
  std::optional<Sequence> second_front() const;

  // ---- changes

  /// A chunk of the link has come.
  void on_chunk(Link& link, std::uint64_t now);
  void set_clock(std::size_t reader, std::uint64_t now) { readers_[reader].now = std::max(readers_[reader].now, now); }
  /// Adds a chunk to those that wait, or removes the oldest, which is decided.
  PendingChunk& add_chunk(Link& link) {
    ++readers_[link.reader].waiting;
    return link.chunks.add();
  }
  void remove_oldest_chunk(Link& link) {
    --readers_[link.reader].waiting;
    link.chunks.remove_oldest();
  }
  void set_over(std::size_t reader);
  void set_phase(Link& link, LinkPhase phase);
  /// The run begins with the number kRunFirst.
  void begin_run();
  /// The places of links that are away are this many events later: the counter came round before they began.
  void shift_aside(std::int64_t events);

  /// Changes when waiting chunks are to be judged again. Any thread.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  void judge_again() { version_.fetch_add(1, std::memory_order_release); }
  /// Some link is away or blocked. Any thread.
  bool any_link_held_up() const { return held_up_.load(std::memory_order_relaxed) != 0; }

  Sequence oldest = 0;         ///< the lowest number that is open at the window that asks
  Sequence followed_to = 0;    ///< how far the followed links have come
  std::uint64_t begun_at = 0;  ///< event clock when the run began

 private:
  const SequencerSettings& settings_;
  std::vector<Link> links_;
  std::vector<Reader> readers_;
  const EventSet* events_ = nullptr;  // FULL mode
  bool started_ = false;
  bool all_over_ = false;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint32_t> held_up_{0};
};

}  // namespace rodeo::readout
