// Asks recorders whether they have events that readouts hold and no trigger announced: after a restart, after a gap in the
// triggers, or without a trigger authority. dispatch/admission.h says which events these are and when they enter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "farm/supervisor/events.h"
#include "formats/event_record.h"
#include "transport/requester.h"
#include "trigger/range.h"

namespace rodeo::farm {

enum class OrphansCounter : std::uint8_t { untold, unasked, count };
inline constexpr std::array<base::CounterInfo, 2> kOrphansCounters{{
    {"untold", "events", "Events that readouts held, and that no trigger or node had announced."},
    {"unasked", "events",
     "Of these, events that a recorder may have, because it did not answer: assigned to be built and recorded only."},
}};

/// One thread.
class Orphans {
 public:
  Orphans(Events& events, transport::Requester& requester, const std::vector<std::string>& recorders);

  /// Asks, and admits events. `released`: the supervisor waits for no node. `marks` gives blocks and steps by id; `block`
  /// counts before the first mark.
  void poll(std::uint64_t now_ns, bool released, const std::vector<trigger::TriggerMark>& marks, std::uint16_t block);
  bool on_reply(const transport::Requester::Reply& reply, std::uint64_t now_ns);
  std::vector<NamedCounter> counters() const;

 private:
  /// What recorders answered about an id. If a recorder does not answer, the id may be in its files.
  enum class Recorded : std::uint8_t { no, unknown, accepted, debug };
  void ask_recorders(std::uint64_t now_ns);
  void mark_unknown(std::size_t from, std::size_t count);

  Events& events_;
  transport::Requester& requester_;
  std::vector<transport::Requester::Service> recorders_;
  std::span<const std::uint64_t> asked_ids_;  // The admission owns these ids until they are answered.
  std::size_t asked_recorder_ = 0;            // Recorder that is asked now.
  std::size_t asked_first_ = 0;               // First id of that question.
  std::optional<transport::Requester::Request> request_;
  std::uint64_t asked_ns_ = 0;
  std::vector<Recorded> recorded_;
  std::vector<dispatch::Admission::Recorded> answer_;
  base::CounterBlock<OrphansCounter> counters_;
  std::vector<std::byte> bytes_;
};

}  // namespace rodeo::farm
