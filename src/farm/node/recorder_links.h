// A filter node's talk with its recorders: which of them is sent an event, who is asked whether it has the event already, and when it is safe.
//
//     the first recorder of an event follows from its id; one that was another node's is taken over at all others before, so that the
//     other node, which may still be at work on it, puts it nowhere
//     answered                                    safe; where a copy was there before, the event is what that one was recorded as
//     no answer                                   sent again, to the same: it may have it, and tells
//     refused                                     the next one; after all of them, again a while later
//     ... as not ready, where it may be there     sent again, to the same: a recorder that is started again has not read back yet what it has
//     ... because nobody could take it            given up
//     ... as taken over                           let go: another node has it
//     not there, not ready for recorder_patience  the next one; counted where the event may be recorded twice by that
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "farm/node/event_collector.h"
#include "farm/node/node_events.h"
#include "farm/node/settings.h"
#include "formats/assignment.h"
#include "transport/requester.h"

namespace rodeo::farm {

/// The node's thread.
class RecorderLinks {
 public:
  using Requester = transport::Requester;
  using Slot = EventCollector::Slot;
  using Say = std::function<void(std::string)>;

  RecorderLinks(const NodeSettings& settings, NodeEvents& events, Requester& requester, Say say);

  void add(const std::string& name);
  bool none() const { return recorders_.empty(); }

  /// An event whose record is made: it is sent from the next send() on.
  void begin(Slot slot, std::uint64_t now_ns);
  /// It is decided, or nobody's any more, and no request is under way.
  void end(Slot slot);
  /// It is nobody's any more. True: a request is under way, take() tells its end.
  bool cancel(Slot slot);
  void send(std::uint64_t now_ns);

  enum class Came : std::uint8_t { not_for_it, nothing, safe, given_up, dropped };
  struct Told {
    Came what = Came::not_for_it;
    Slot slot = 0;
    std::optional<formats::Verdict> copy = {};  ///< safe, as another's copy, that was recorded with this verdict
  };
  Told take(Requester::Reply& reply, std::uint64_t now_ns);

  std::vector<NodeStatus::Peer> peers() const;

 private:
  struct Recorder {
    std::string name;
    Requester::Service service = 0;
  };
  struct Delivery {  // of the event in the same slot
    bool active = false;
    std::uint32_t recorder = 0;
    std::uint32_t to_ask = 0;    // recorders that may have it from another node; the one in hand included
    std::uint32_t refusals = 0;  // one after the other
    bool unanswered = false;     // the recorder may have it
    std::uint64_t since_ns = 0;  // with this recorder
    std::uint64_t at_ns = 0;     // not before
    std::optional<Requester::Request> request = {};
  };
  struct Pending {
    bool asks = false;  // whether it has the event
    Slot slot = 0;
  };

  void send(Slot slot, std::uint64_t now_ns);
  bool patient(const Delivery& delivery, std::uint64_t now_ns) const;
  void go_without(Slot slot, std::uint64_t now_ns);
  std::uint32_t recorder_of(Slot slot) const;
  void go_to(Slot slot, std::uint32_t recorder, std::uint64_t now_ns);
  Told take_have_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns);
  Told take_record_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns);

  const NodeSettings& settings_;
  NodeEvents& events_;
  Requester& requester_;
  const Say say_;
  std::vector<Recorder> recorders_;
  std::vector<Delivery> deliveries_;
  std::uint32_t active_ = 0;
  std::unordered_map<Requester::Request, Pending> pending_;
  std::vector<std::byte> have_bytes_;
};

}  // namespace rodeo::farm
