// The events that a filter node has, slot by slot, with what all parts of its thread need to know of them.
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

/// One event, from its assignment to its decision. Nobody's any more (`dropped`): it ends as soon as nobody works on it.
struct NodeEvent {
  enum class State : std::uint8_t { free, fetching, selecting, completing, recording };
  State state = State::free;
  bool knew_all = false;  ///< all readouts were known when it began
  bool dropped = false;
  bool wants_all = false;
  bool built = false;  ///< it had all, once
  formats::AssignedEvent assigned = {};
  std::uint64_t assigned_ns = 0;
  std::uint64_t asked_ns = 0;  ///< the first request of those that are under way; 0: none yet
  EventData data = {};
  SelectionJob job = {};
  std::vector<formats::RecordStream> streams = {};
  formats::Verdict verdict = formats::Verdict::accepted;
  std::uint32_t status = 0;

  bool here() const { return state != State::free && !dropped; }
};

/// Of the node's thread. Threads of a selection look at an event meanwhile, and requests are made of its memory: it outlives both.
struct NodeEvents {
  std::vector<NodeEvent> slots;
  EventContext context;
  base::CounterBlock<NodeCounter> counters;
  base::CounterBlock<DataCounter> data_counters;
};

}  // namespace rodeo::farm
