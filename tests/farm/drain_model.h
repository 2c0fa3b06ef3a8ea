// A farm small enough to try everything: the real dispatcher, admission, clears, collectors and retention, and every
// possible next act, one at a time. Messages arrive at once; time-outs may occur at any moment.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/admission.h"
#include "dispatch/clear_book.h"
#include "dispatch/common_span.h"
#include "dispatch/dispatcher.h"
#include "farm/node/event_collector.h"
#include "readout/retention/fragment_book.h"

namespace rodeo::test {

struct DrainSizes {
  std::uint32_t slots = 2;       ///< limit of events in the supervisor
  std::uint32_t node_slots = 1;  ///< limit of events in each node
  std::uint32_t nodes = 1;
  std::uint32_t readouts = 2;
  std::uint32_t kept = 3;     ///< limit of fragments that a readout keeps
  std::uint32_t waiting = 3;  ///< limit of fragments that wait while the retention is full
  std::uint32_t triggers = 6;
  std::uint32_t faults = 1;
  /// Limit of time-outs of one event; 0: no limit. Without a limit, two nodes can take an event from each other for ever.
  std::uint32_t time_outs = 0;
  /// The former behaviour, in which triggers use all slots and untold events wait for a free one.
  bool untold_wait_for_room = false;
  /// The supervisor gets no triggers: readouts report which events exist.
  bool no_trigger = false;
};

/// One state. Copies share unchanged parts.
class DrainModel {
 public:
  explicit DrainModel(const DrainSizes& sizes);

  enum class Act : std::uint8_t {
    trigger,       ///< a trigger is accepted; the supervisor gets it if it follows
    build,         ///< a readout's builder passes its next fragment on
    reorder_time,  ///< the reorder time of a readout passes
    fetch,         ///< a node requests missing fragments from readouts
    event_time,    ///< half of the time-out of a node's events passes
    clear,         ///< a readout gets the clears of decided events
    survey,        ///< a readout is asked for the ids that it holds
    give_back,     ///< a full node makes room for an older event
    expire,        ///< the event that was assigned first times out
    resume,        ///< the supervisor follows triggers again
    greet,         ///< a node sends HELLO again
    end,           ///< a readout ends: it gets no more fragments
    untold_time,   ///< the time passes after which events that a readout lacks are assigned without it
    // Faults
    stand_still,         ///< the supervisor stops for so long that triggers continue without it
    restart_supervisor,  ///< the supervisor is killed and started again
    lose_node,           ///< a node is silent, and its events go to others
    restart_node,
    restart_readout,
    count
  };
  static constexpr Act kFirstFault = Act::stand_still;
  static const char* name(Act act);

  /// False: the act is impossible, or changes nothing.
  bool act(Act act, std::uint32_t which);
  /// The number of readouts or nodes that can do this act, or 1.
  std::uint32_t how_many(Act act) const;
  /// True if the next event to expire has timed out fewer than `time_outs` times.
  bool may_expire() const;
  /// All acts without faults, in a fixed order; time passes only if nothing else changes. False: nothing changes any more.
  bool round();
  /// The first of these acts that changes something.
  bool step();
  /// True if all triggers have come and no event is left anywhere.
  bool drained() const;
  /// Two states with the same text have the same future.
  std::string text() const;
  /// Checks the invariants of a state; empty if they hold.
  std::string wrong() const;

 private:
  using Slot = farm::EventCollector::Slot;
  struct Event {
    std::uint64_t id = 0;
    bool build_only = false;
    bool last = false;
    bool here = false;
  };
  struct Decision {
    dispatch::Dispatcher::Decision said;
    std::uint32_t session = 0;
  };
  struct Node {
    farm::EventCollector collector;
    std::vector<Event> slots;
    std::vector<Decision> unsafe;  // decisions that are not safe yet, in order
    std::size_t said = 0;          // number of unsafe decisions that this session has sent
    std::uint32_t session = 1;
    bool silent = false;
    bool anew = false;  // the node was restarted, and its supervisor does not know it yet
  };
  struct Readout {
    readout::FragmentBook book;
    std::deque<std::uint64_t> outside;
    std::vector<std::uint64_t> recent;  // the newest id at each of the last fragments, which decide the book's line
    std::uint64_t now_ns = 1;
    bool outside_waits = false;
  };
  struct Supervisor {
    dispatch::Dispatcher dispatcher;
    dispatch::Admission admission;
    dispatch::ClearBook clears;
    std::vector<std::uint64_t> assigned_ns;  // by id
    std::uint64_t clock_ns = 1;
    std::uint32_t told = 0;  // a bit for each id whose trigger the supervisor has got
    std::uint32_t left = 0;  // a bit for each other id that was removed or never entered
    dispatch::CommonSpan span;
    std::vector<std::string> said;     // for each readout: its reports to `span`, for text()
    std::vector<std::uint32_t> found;  // for each id: a bit for each readout that has reported it
    bool again_was_last = false;
    std::uint32_t last_node = 0;     // the last node that got an event
    std::vector<std::uint32_t> had;  // for each id: the node that has it or had it last
    /// Contents of `clears` for text().
    struct Clear {
      std::uint64_t id = 0;
      std::uint32_t node = 0;
      std::uint32_t session = 0;
      std::uint64_t batch = UINT64_MAX;  // UINT64_MAX: the batch is open
      std::uint32_t cleared = 0;         // has a bit for each readout
    };
    std::vector<Clear> clear_list;

    void clear(std::uint64_t id, std::uint32_t node, std::uint32_t session) {
      clears.add({.id = id, .node = node, .session = session}, 0);
      clear_list.push_back({.id = id, .node = node, .session = session});
    }
  };

  static std::shared_ptr<Node> new_node(const DrainSizes& sizes, std::uint32_t session);
  static std::shared_ptr<Readout> new_readout(const DrainSizes& sizes);
  static std::shared_ptr<Supervisor> new_supervisor(const DrainSizes& sizes);
  template <typename T>
  static T& own(std::shared_ptr<T>& part) {
    if (part.use_count() > 1) part = std::make_shared<T>(*part);
    return *part;
  }
  bool over(std::uint64_t id) const;
  bool untold(std::uint64_t id) const { return !supervisor_->dispatcher.knows(id) && !over(id); }
  void supervise();
  bool trigger();
  bool build(std::uint32_t readout);
  bool reorder_time(std::uint32_t readout);
  bool work(std::uint32_t node, bool time_is_over);
  bool clear(std::uint32_t readout);
  bool survey(std::uint32_t readout);
  bool survey_all_there_is(std::uint32_t readout);
  bool untold_time();
  bool give_back(std::uint32_t node);
  bool expire();
  std::uint64_t next_to_expire() const;  // UINT64_MAX: no event expires
  bool end(std::uint32_t readout);
  void finish(Node& node, Slot slot);
  void tell(std::uint32_t node);
  void greet(std::uint32_t node);
  void begin(std::uint32_t node, std::uint64_t id, bool build_only, bool last);
  void drop(Node& node, std::uint64_t id);
  void restart_readout(std::uint32_t readout);

  DrainSizes sizes_;
  std::uint32_t happened_ = 0;  // number of triggers so far
  std::uint32_t faults_ = 0;
  bool stands_still_ = false;
  std::vector<std::uint8_t> time_outs_;  // by event; at most sizes_.time_outs
  std::shared_ptr<Supervisor> supervisor_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<std::shared_ptr<Readout>> readouts_;
};

}  // namespace rodeo::test
