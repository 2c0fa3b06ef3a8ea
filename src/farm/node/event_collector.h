// Collects the fragments of events from readouts: what is asked of whom, when again, and when an event has all that it will ever have. Pure: time is
// an argument, and whoever moves bytes tells what came.
//
// A ROB of an event is wanted, then asked for, and ends as had or as lost:
//
//     it comes                                            had
//     PENDING: not here yet                               asked for again, `pending_retry` later
//     LOST: it never will be                              lost, `by_readout`
//     another event's, no ROB, or not in the answer       lost, `bad`: the answer to the same question would be the same
//     the readout is busy                                 asked for again
//     the connection ends                                 asked for again, once there is one
//     ... to a readout that was started anew              lost, `readout_died`, if its event began before the connection ended: what the readout held
//                                                         went with it; of events that began since, it is asked
//     ... and there is none for `readout_grace`           lost, `readout_away`, also for events that come later, until there is one: the readout may
//                                                         be there for others, and hold it
//     the time of the event is over                       lost, `timed_out`. Until then an answer is waited for: a request is not lost while its
//                                                         connection lives, and who is slow is not asked the same twice
//
// An event is complete when each ROB that it wants is had or lost. Then it may want more (partial requests, then the rest), or is let go.
// With credits, requests wait in the order in which they were wanted until those under way leave room; one always goes.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/counters.h"
#include "rodeo/ids.h"

namespace rodeo::farm {

struct CollectorSettings {
  std::uint32_t slots = 32;            ///< events at a time
  std::uint32_t credit_fragments = 0;  ///< asked for at a time; 0: no limit
  std::uint64_t credit_bytes = 0;      ///< the same, by the sizes that came lately; 0: no limit
  std::chrono::nanoseconds pending_retry = std::chrono::milliseconds{1};
  std::chrono::nanoseconds readout_grace = std::chrono::seconds{2};
};

enum class RobState : std::uint8_t { unwanted, wanted, asked, had, lost };
enum class RobLoss : std::uint8_t { none, by_readout, bad, readout_died, readout_away, timed_out };

enum class CollectorCounter : std::uint8_t {
  requests,
  fragments,
  fragment_bytes,
  pending,
  asked_again,
  lost_by_readout,
  lost_bad,
  lost_readout_died,
  lost_readout_away,
  lost_timed_out,
  waits_for_credit,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(CollectorCounter::count)> kCollectorCounters{{
    {"requests", "requests", "Requests for fragments of one event, each to one readout."},
    {"fragments", "fragments", "Fragments that came."},
    {"fragment_bytes", "bytes", "Of these."},
    {"pending", "fragments", "Times that a readout had a fragment not yet; it is asked again."},
    {"asked_again", "requests", "Requests that were refused as busy or lost with their connection, and are made again."},
    {"lost_by_readout", "fragments", "Fragments that never will be, as their readout says."},
    {"lost_bad", "fragments", "Fragments of another event, no fragments, or missing in the answer."},
    {"lost_readout_died", "fragments", "Fragments of a readout that was started anew since their event was assigned."},
    {"lost_readout_away", "fragments",
     "Fragments of a readout that could not be reached for farm.node.readout_grace; it may have them still."},
    {"lost_timed_out", "fragments", "Fragments that had not come when the time of their event was over."},
    {"waits_for_credit", "waits", "Times that a request had to wait for credit (shaping)."},
}};

/// One thread.
class EventCollector {
 public:
  using Slot = std::uint32_t;
  using RobIndex = std::uint32_t;  ///< from 0, over all readouts
  using AskId = std::uint32_t;

  EventCollector(CollectorSettings settings, std::uint32_t readouts);
  /// A copy has the counts of this moment: tests go on from one state in several ways.
  EventCollector(const EventCollector& other);

  // Readouts, by their number.

  /// It has these ROBs, and is there. Again with others: of events that begin from now on.
  void describe(std::uint32_t readout, std::span<const SourceId> robs);
  bool described(std::uint32_t readout) const { return readouts_[readout].known; }
  /// There is a connection. `anew`: to a process that was started since the last; of events that began before down() it has nothing.
  void up(std::uint32_t readout, bool anew);
  void down(std::uint32_t readout, std::uint64_t now_ns);
  bool any_up() const { return std::ranges::any_of(readouts_, &Readout::up); }
  std::span<const RobIndex> robs_of(std::uint32_t readout) const { return readouts_[readout].robs; }
  std::uint32_t readouts() const { return static_cast<std::uint32_t>(readouts_.size()); }
  std::size_t robs() const { return robs_.size(); }
  /// All ROBs, in the order of readouts and of their descriptions: each node has the same.
  std::span<const RobIndex> in_order() const { return order_; }
  SourceId source_id(RobIndex rob) const { return robs_[rob].source_id; }
  /// Nothing: no readout has it.
  std::optional<RobIndex> find(SourceId source_id) const;

  // Events.

  /// A slot; nothing: all are taken. It wants nothing yet.
  std::optional<Slot> begin(std::uint64_t deadline_ns);
  /// Wants these besides, where it does not already.
  void want(Slot slot, std::span<const RobIndex> robs);
  void want_all(Slot slot);
  /// A ROB that was described after the event began is none of its.
  RobState state(Slot slot, RobIndex rob) const { return of(slot, rob).state; }
  RobLoss loss(Slot slot, RobIndex rob) const { return of(slot, rob).loss; }
  /// It waits for fragments.
  bool open(Slot slot) const { return events_[slot].open > 0; }
  /// Of those that it wants: how many are lost.
  std::uint32_t lost(Slot slot) const { return events_[slot].lost; }
  /// Whether one of them is lost in this way.
  bool lost_by(Slot slot, RobLoss loss) const {
    return std::ranges::any_of(events_[slot].robs, [loss](const EventRob& rob) { return rob.loss == loss; });
  }
  /// Lets it go; what is under way for it comes for nobody.
  void end(Slot slot);
  std::uint32_t free_slots() const { return static_cast<std::uint32_t>(free_.size()); }

  // Requests.

  struct Ask {
    AskId id = 0;
    Slot slot = 0;
    std::uint32_t readout = 0;
    bool all = false;                ///< all ROBs that the readout has
    std::uint64_t deadline_ns = 0;   ///< of its event: nobody waits for the answer after it
    std::span<const RobIndex> robs;  ///< valid until the next call
  };
  /// The next request that may go now; the caller sends it, or says not_sent().
  std::optional<Ask> next();
  void not_sent(AskId ask, std::uint64_t now_ns);

  struct Result {
    RobIndex rob = 0;
    enum class What : std::uint8_t { had, pending, lost, bad } what = What::had;
  };
  /// An answer came, and is for this event still. False: it comes for nobody. What was asked for and is not among the results is `bad`.
  bool answered(AskId ask, std::span<const Result> results, std::uint64_t bytes, std::uint64_t now_ns);
  /// The request ended without an answer, and is to be made again; or, with `for_good`, never.
  void failed(AskId ask, bool for_good, std::uint64_t now_ns);
  /// Whether the event that has the slot now waits for the answer.
  bool awaited(AskId ask, Slot slot) const {
    const OpenAsk& one = asks_[ask];
    return one.open && one.slot == slot && events_[slot].active && one.number == events_[slot].number;
  }
  std::span<const RobIndex> robs_of_ask(AskId ask) const { return asks_[ask].robs; }

  /// Looks at the time; appends slots whose event has become complete, once each time.
  void poll(std::uint64_t now_ns, std::vector<Slot>& complete);

  std::uint64_t fragments_under_way() const { return fragments_under_way_; }
  std::uint64_t bytes_under_way() const { return bytes_under_way_; }
  const base::CounterBlock<CollectorCounter>& counters() const { return counters_; }

 private:
  struct Rob {
    SourceId source_id;
    std::uint32_t readout = 0;
  };
  struct Readout {
    bool known = false;
    bool up = false;
    bool given_up = false;
    std::uint64_t down_since_ns = 0;
    std::uint64_t begun_before = 0;  // events, when it went down
    std::vector<RobIndex> robs;
    double fragment_bytes = 0;  // lately, on average
  };
  struct EventRob {
    RobState state = RobState::unwanted;
    RobLoss loss = RobLoss::none;
  };
  struct Work {  // of one event at one readout
    std::uint32_t wanted = 0;
    bool queued = false;  // in ready_ or later_
    bool asked = false;
  };
  struct Event {
    bool active = false;
    bool armed = false;  // it wants something, and completion was not told yet
    std::uint32_t number = 0;
    std::uint64_t begun = 0;  // so many events had begun with it
    std::uint64_t deadline_ns = 0;
    std::uint32_t open = 0;  // wanted or asked
    std::uint32_t lost = 0;
    std::vector<EventRob> robs;
    std::vector<Work> work;
  };
  struct Item {
    Slot slot = 0;
    std::uint32_t number = 0;
    std::uint32_t readout = 0;
    std::uint64_t due_ns = 0;
  };
  struct OpenAsk {
    bool open = false;
    Slot slot = 0;
    std::uint32_t number = 0;
    std::uint32_t readout = 0;
    std::uint32_t fragments = 0;
    std::uint64_t bytes = 0;
    std::vector<RobIndex> robs;
  };

  EventRob of(Slot slot, RobIndex rob) const {
    const auto& robs = events_[slot].robs;
    return rob < robs.size() ? robs[rob] : EventRob{};
  }
  void queue(Slot slot, std::uint32_t readout);
  void queue_later(Slot slot, std::uint32_t readout, std::uint64_t now_ns);
  void lose(Slot slot, RobIndex rob, RobLoss loss);
  void lose_all_of(std::uint32_t readout, RobLoss loss, std::uint64_t begun_up_to);
  bool close(AskId ask);  // true: its event waits for it still
  bool credit_for(std::uint32_t fragments, std::uint64_t bytes) const;

  const CollectorSettings settings_;
  std::vector<Readout> readouts_;
  std::vector<Rob> robs_;
  std::vector<RobIndex> order_;
  std::vector<Event> events_;
  std::vector<Slot> free_;
  std::uint64_t begun_ = 0;
  std::deque<Item> ready_;
  std::deque<Item> later_;  // all wait equally long: in order
  std::vector<OpenAsk> asks_;
  std::vector<AskId> free_asks_;
  std::vector<Slot> complete_;
  std::uint64_t fragments_under_way_ = 0;
  std::uint64_t bytes_under_way_ = 0;
  bool waited_for_credit_ = false;
  base::CounterBlock<CollectorCounter> counters_;
};

}  // namespace rodeo::farm
