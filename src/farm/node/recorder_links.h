// A filter node's connections to its recorders: where an event goes, which recorders may have it already, and when it is
// safe.
//
//     The id of an event decides its first recorder. If the event was another node's, it is first taken over at all other
//     recorders. Then the other node, which may still work on the event, cannot record it.
//     answered                                    safe; if there was a copy before, the verdict of that copy counts
//     no answer                                   sent again to the same one: it may have the event, and says so
//     refused                                     sent to the next one; after all of them, again after a pause
//     ... as not ready, and it may have it        sent again to the same one: it may not have read back its files yet
//     ... because no recorder could take it       given up
//     ... as taken over                           let go: another node has it
//     away, or not ready, for recorder_patience   sent to the next one; counted if the event may be recorded twice
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

/// One thread, the node's.
class RecorderLinks {
 public:
  using Requester = transport::Requester;
  using Slot = EventCollector::Slot;
  using Say = std::function<void(std::string)>;

  RecorderLinks(const NodeSettings& settings, NodeEvents& events, Requester& requester, Say say);

  void add(const std::string& name);
  bool empty() const { return recorders_.empty(); }

  /// Begins to deliver an event whose record is made: the next send() sends it.
  void begin(Slot slot, std::uint64_t now_ns);
  /// Ends the delivery: the event is decided or dropped, and no request is under way.
  void end(Slot slot);
  /// Drops the event. True: a request is under way, and the reply to it still has to arrive.
  bool cancel(Slot slot);
  void send(std::uint64_t now_ns);

  enum class Progress : std::uint8_t { other_request, under_way, safe, given_up, dropped };
  struct DeliveryResult {
    Progress progress = Progress::other_request;
    Slot slot = 0;
    std::optional<formats::Verdict> copy = {};  ///< The event is safe as another copy, which was recorded with this verdict.
  };
  DeliveryResult on_reply(Requester::Reply& reply, std::uint64_t now_ns);

  std::vector<NodeStatus::Peer> peers() const;

 private:
  struct Recorder {
    std::string name;
    Requester::Service service = 0;
  };
  struct Delivery {  // The delivery of the event in the same slot.
    bool active = false;
    std::uint32_t recorder = 0;
    std::uint32_t recorders_to_ask = 0;  // Recorders that may have the event from another node, and the current recorder.
    std::uint32_t refusals = 0;          // Number of refusals in a row.
    bool unanswered = false;             // The recorder may have the event.
    std::uint64_t since_ns = 0;          // Begin of this recorder's turn.
    std::uint64_t at_ns = 0;             // Earliest time of the next request.
    std::optional<Requester::Request> request = {};
  };
  struct Pending {
    bool asks = false;  // The request only asks whether the recorder has the event.
    Slot slot = 0;
  };

  void send(Slot slot, std::uint64_t now_ns);
  bool may_wait(const Delivery& delivery, std::uint64_t now_ns) const;
  void skip_recorder(Slot slot, std::uint64_t now_ns);
  std::uint32_t recorder_of(Slot slot) const;
  void set_recorder(Slot slot, std::uint32_t recorder, std::uint64_t now_ns);
  DeliveryResult on_have_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns);
  DeliveryResult on_record_answer(Slot slot, Requester::Reply& reply, std::uint64_t now_ns);

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
