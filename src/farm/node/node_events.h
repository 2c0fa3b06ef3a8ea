// The events of a filter node, slot by slot, with the data that all parts of its thread use.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "farm/node/event_data.h"
#include "farm/node/node_status.h"
#include "farm/node/selection_pool.h"
#include "formats/assignment.h"
#include "formats/event_record.h"

namespace rodeo::farm {

/// One event, from its assignment to its decision. If it is `dropped`, it ends as soon as no thread or request uses it.
struct NodeEvent {
  enum class State : std::uint8_t { free, fetching, selecting, completing, recording };
  State state = State::free;
  bool all_readouts_known = false;  ///< All readouts were known when the event began.
  bool dropped = false;
  bool wants_all = false;
  bool built = false;  ///< The event has had all its fragments once.
  formats::AssignedEvent assigned = {};
  std::uint64_t assigned_ns = 0;
  std::uint64_t asked_ns = 0;  ///< Time of the first request after it was complete last; 0: none.
  EventData data = {};
  SelectionJob job = {};
  std::vector<formats::RecordStream> streams = {};
  formats::Verdict verdict = formats::Verdict::accepted;
  std::uint32_t status = 0;

  bool is_active() const { return state != State::free && !dropped; }
};

/// The node's thread owns this. Threads of a selection read its events, and requests use its memory, so it outlives both.
struct NodeEvents {
  std::vector<NodeEvent> slots;
  EventContext context;
  base::CounterBlock<NodeCounter> counters;
  base::CounterBlock<DataCounter> data_counters;
};

}  // namespace rodeo::farm
