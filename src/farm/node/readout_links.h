// A filter node's connections to its readouts: which readouts are connected, how they describe themselves, and the fragments
// that the EventCollector fetches from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "farm/node/event_collector.h"
#include "farm/node/node_events.h"
#include "farm/node/settings.h"
#include "formats/numbering.h"
#include "transport/requester.h"

namespace rodeo::farm {

/// One thread, the node's.
class ReadoutLinks {
 public:
  using Requester = transport::Requester;
  using Slot = EventCollector::Slot;
  using Say = std::function<void(std::string)>;

  ReadoutLinks(const NodeSettings& settings, NodeEvents& events, Requester& requester, EventCollector& collector, Say say);

  /// Adds a readout. Call it in the order of the collector's numbers.
  void add(const std::string& name, std::uint64_t now_ns);
  bool all_described() const;
  /// An error if the ids of two readouts do not count the same thing.
  const std::optional<Error>& other_numbering() const { return other_numbering_; }

  /// Checks from time to time which readouts came or went, and asks new ones for their description.
  void check_connections(std::uint64_t now_ns);
  /// Asks for the fragments that the collector wants now.
  void request_fragments(std::uint64_t now_ns);
  /// Handles a reply. False: another part made the request.
  bool on_reply(Requester::Reply& reply, std::uint64_t now_ns);

  std::vector<NodeStatus::Peer> peers() const;

 private:
  struct Readout {
    std::string name;
    Requester::Service service = 0;
    std::uint64_t instance = 0;
    bool connected = false;
    bool describing = false;
    bool described = false;
    std::uint64_t describe_at_ns = 0;
  };
  struct Pending {
    bool describes = false;
    std::uint32_t number = 0;  // Number of the readout, or of the request to it.
    Slot slot = 0;             // Slot of a fetch.
  };

  void on_description(std::uint32_t number, Requester::Reply& reply, std::uint64_t now_ns);
  void on_fragments(EventCollector::RequestId request, Slot slot, Requester::Reply& reply, std::uint64_t now_ns);

  const NodeSettings& settings_;
  NodeEvents& events_;
  Requester& requester_;
  EventCollector& collector_;
  const Say say_;
  std::vector<Readout> readouts_;
  std::unordered_map<Requester::Request, Pending> pending_;
  std::uint64_t checked_ns_ = 0;
  std::optional<formats::Numbering> numbering_;  // Numbering of the first described readout.
  std::string numbering_of_;
  std::optional<Error> other_numbering_;
  std::vector<EventCollector::RobIndex> requested_robs_;
  std::vector<EventCollector::Result> results_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> scratch_;
};

}  // namespace rodeo::farm
