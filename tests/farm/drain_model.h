// A farm that is small enough to try everything: the product's books, admission, clears, collectors and retention, and what may happen next, one thing at
// a time. Messages arrive at once; time-outs come at any moment.
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
  std::uint32_t slots = 2;       ///< of the supervisor
  std::uint32_t node_slots = 1;  ///< of each node
  std::uint32_t nodes = 1;
  std::uint32_t readouts = 2;
  std::uint32_t kept = 3;     ///< fragments that a readout keeps
  std::uint32_t waiting = 3;  ///< fragments that wait before a full retention
  std::uint32_t triggers = 6;
  std::uint32_t faults = 1;
  /// Time-outs of one event that are tried; 0: any number. Two nodes take it from one another for ever, and decide it anew each time.
  std::uint32_t time_outs = 0;
  /// As it was before: triggers take all slots, and untold events wait behind them.
  bool untold_wait_for_room = false;
  /// Nothing tells the supervisor of triggers: readouts say which events there are.
  bool no_trigger = false;
};

/// One state. Copies share what they do not change.
class DrainModel {
 public:
  explicit DrainModel(const DrainSizes& sizes);

  enum class Act : std::uint8_t {
    trigger,       ///< is accepted; the supervisor is told if it follows
    build,         ///< a readout's builder hands on its next fragment
    reorder_time,  ///< goes by in a readout
    fetch,         ///< a node asks readouts for what it lacks
    event_time,    ///< half of the time of a node's events goes by
    clear,         ///< a readout is told what is decided
    survey,        ///< a readout is asked what it holds
    give_back,     ///< a full node makes room for an older event
    expire,        ///< the time of the event that was assigned first is over
    resume,        ///< the supervisor follows again
    greet,         ///< a node says HELLO again
    end,           ///< of a readout: no fragment comes any more
    untold_time,   ///< goes by: what some readout does not have is assigned without it
    // Faults
    stand_still,         ///< the supervisor, for so long that triggers go on without it
    restart_supervisor,  ///< killed, and there again
    lose_node,           ///< it is silent, and its events go to others
    restart_node,
    restart_readout,
    count
  };
  static constexpr Act kFirstFault = Act::stand_still;
  static const char* name(Act act);

  /// False: it cannot happen, or changes nothing.
  bool act(Act act, std::uint32_t which);
  /// Of readouts, nodes, or 1.
  std::uint32_t how_many(Act act) const;
  /// The event that is the next to expire has done so less often than `time_outs`.
  bool may_expire() const;
  /// All that happens without faults, in a fixed order; time goes by only where nothing else happens. False: nothing changes any more.
  bool round();
  /// The first of these things that changes something.
  bool step();
  /// Every trigger has come, and nothing is left anywhere.
  bool drained() const;
  /// Two states of the same text have the same future.
  std::string text() const;
  /// What must hold in each state; empty: it does.
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
    std::vector<Decision> unsafe;  // in their order
    std::size_t said = 0;          // of these, in this session
    std::uint32_t session = 1;
    bool silent = false;
    bool anew = false;  // started anew, and its supervisor does not know it yet
  };
  struct Readout {
    readout::FragmentBook book;
    std::deque<std::uint64_t> outside;
    std::vector<std::uint64_t> recent;  // the newest id at each of the last fragments: what the book's line waits for
    std::uint64_t now_ns = 1;
    bool outside_waits = false;
  };
  struct Supervisor {
    dispatch::Dispatcher books;
    dispatch::Admission admission;
    dispatch::ClearBook clears;
    std::vector<std::uint64_t> assigned_ns;  // of each id
    std::uint64_t clock_ns = 1;
    std::uint32_t told = 0;  // a bit for each id
    std::uint32_t left = 0;  // the same, of untold ids that left the books, or never came in
    dispatch::CommonSpan span;
    std::vector<std::string> said;     // of each readout, what `span` was told, for text()
    std::vector<std::uint32_t> found;  // of each id: a bit for each readout that has said it
    bool again_was_last = false;
    std::uint32_t last_node = 0;     // that an event was assigned to
    std::vector<std::uint32_t> had;  // of each id: the node that has it or had it last
    /// What `clears` has, for text().
    struct Clear {
      std::uint64_t id = 0;
      std::uint32_t who = 0;
      std::uint32_t session = 0;
      std::uint64_t batch = UINT64_MAX;  // not closed
      std::uint32_t cleared = 0;         // a bit for each readout
    };
    std::vector<Clear> clear_list;

    void clear(std::uint64_t id, std::uint32_t who, std::uint32_t session) {
      clears.add({.id = id, .who = who, .session = session}, 0);
      clear_list.push_back({.id = id, .who = who, .session = session});
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
  bool untold(std::uint64_t id) const { return !supervisor_->books.knows(id) && !over(id); }
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
  std::uint64_t next_to_expire() const;  // UINT64_MAX: none
  bool end(std::uint32_t readout);
  void finish(Node& node, Slot slot);
  void tell(std::uint32_t node);
  void greet(std::uint32_t node);
  void begin(std::uint32_t node, std::uint64_t id, bool build_only, bool last);
  void drop(Node& node, std::uint64_t id);
  void restart_readout(std::uint32_t readout);

  DrainSizes sizes_;
  std::uint32_t happened_ = 0;  // triggers
  std::uint32_t faults_ = 0;
  bool stands_still_ = false;
  std::vector<std::uint8_t> time_outs_;  // of each event, at most sizes_.time_outs
  std::shared_ptr<Supervisor> supervisor_;
  std::vector<std::shared_ptr<Node>> nodes_;
  std::vector<std::shared_ptr<Readout>> readouts_;
};

}  // namespace rodeo::test
