// What a filter node reports: its counters and its status.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"

namespace rodeo::farm {

enum class NodeCounter : std::uint8_t {
  assigned,
  accepted,
  rejected,
  debug,
  lost,
  partial,
  build_only,
  given_up,
  let_go,
  given_back,
  had_already,
  selection_failed,
  bad_selection,
  record_refused,
  record_again,
  recorded_elsewhere,
  recorded_bytes,
  bad_orders,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(NodeCounter::count)> kNodeCounters{{
    {"assigned", "events", "Events that the supervisor has assigned."},
    {"accepted", "events", "Decided events: accepted, and safe with a recorder."},
    {"rejected", "events", "Decided events: rejected by the selection."},
    {"debug", "events", "Decided events: recorded to a debug stream because no selection has decided."},
    {"lost", "events", "Decided events: no readout has a fragment of them, so nothing is recorded."},
    {"partial", "events", "Events that lack fragments."},
    {"build_only", "events", "Events assigned a second time, only to be built and recorded."},
    {"given_up", "events", "Events neither built nor recorded in time; the supervisor assigns them again."},
    {"let_go", "events", "Events dropped because another node has them now, or because they were assigned here again."},
    {"given_back", "events",
     "Events given back to the supervisor while they waited for fragments, to make room for older events; they are assigned "
     "again."},
    {"had_already", "events", "Recorded events that the recorder had already."},
    {"selection_failed", "events", "Events whose selection threw, crashed or did not answer: to a debug stream."},
    {"bad_selection", "events", "Events whose selection gave an answer that is not valid: to a debug stream."},
    {"record_refused", "requests", "Events that a recorder refused; they are sent to another one, or again."},
    {"record_again", "requests", "Events that were sent to a recorder again because it did not answer."},
    {"recorded_elsewhere", "events",
     "Events sent to another recorder because the one that may have them stayed away; they may be recorded twice."},
    {"recorded_bytes", "bytes", "Bytes of recorded events."},
    {"bad_orders", "replies", "Answers of the supervisor that cannot be read, or whose numbers are out of sequence."},
}};

struct NodeStatus {
  bool connected = false;  ///< Connected to the supervisor.
  bool over = false;       ///< The run has no more events.
  std::uint32_t run_number = 0;
  std::string system;
  std::string supervisor_trouble;
  std::vector<NamedCounter> counters;  ///< Counters of node, collector, data, selection and network.
  std::uint32_t slots_used = 0;
  std::uint32_t fetching = 0;
  std::uint32_t selecting = 0;
  std::uint32_t hanging = 0;  ///< Selections that have been at one event for longer than event_timeout.
  std::uint32_t recording = 0;
  std::uint64_t unsafe_decisions = 0;
  std::uint64_t fragments_under_way = 0;
  std::uint64_t bytes_under_way = 0;
  struct Peer {
    std::string name;
    bool connected = false;
    std::string trouble;
    std::uint64_t lost_fragments = 0;  ///< Fragments of this readout that events lack.
  };
  std::vector<Peer> readouts;
  std::vector<Peer> recorders;
  double cpu_seconds = 0;
  double selection_cpu_seconds = 0;
  std::uint64_t selecting_longest_ns = 0;
  /// Time from the first request for fragments to the last fragment that was wanted with it.
  std::uint64_t collecting_p50_ns = 0;
  std::uint64_t collecting_p99_ns = 0;
  std::uint64_t building_p50_ns = 0;  ///< Time from assignment to all fragments; it includes waits for credit.
  std::uint64_t building_p99_ns = 0;
  std::uint64_t deciding_p50_ns = 0;  ///< Time from assignment to decision.
  std::uint64_t deciding_p99_ns = 0;
  std::string failure;  ///< Reason why the node must end; empty: no failure.
  std::uint64_t operator[](std::string_view counter) const { return base::counter_value(counters, counter); }
};

}  // namespace rodeo::farm
