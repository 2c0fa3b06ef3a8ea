// The bytes of one event in a filter node: fragments in the pages in which they were received, checked as they come, and the
// event that is made around them without copying them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "farm/node/event_collector.h"
#include "formats/assignment.h"
#include "formats/event_record.h"
#include "formats/rob_walk.h"
#include "formats/whole_event.h"
#include "rodeo/selection.h"
#include "transport/received_message.h"

namespace rodeo::farm {

enum class DataCounter : std::uint8_t {
  bad_robs,
  unknown_robs,
  twice_robs,
  wrong_l1id,
  wrong_run,
  too_large,
  unreadable_replies,
  trigger_mismatch,
  count
};
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(DataCounter::count)> kDataCounters{{
    {"bad_robs", "fragments", "Fragments without a valid ROD."},
    {"unknown_robs", "fragments", "ROBs in an answer that were not asked for."},
    {"twice_robs", "fragments", "ROBs that arrived a second time."},
    {"wrong_l1id", "fragments", "Fragments with the L1 id of another event: left out, so the event is partial."},
    {"wrong_run", "fragments", "Fragments of another run: left out, so the event is partial."},
    {"too_large", "fragments", "Fragments that would make the event larger than farm.node.max_event_size: left out."},
    {"unreadable_replies", "replies", "Answers with bytes that are not ROBs: the ROBs before them are taken."},
    {"trigger_mismatch", "events", "Events whose fragments do not agree on BCID or trigger type: flagged."},
}};

/// The values that all events of a run share.
struct EventContext {
  std::uint32_t run_number = 0;
  std::uint32_t run_type = 0;
  std::uint64_t most_bytes = std::uint64_t{256} << 20;
  bool checksum = true;  ///< Makes the Adler-32 of the payload.
};

/// One thread changes it. Other threads may read its views while it does not change.
class EventData {
 public:
  using RobIndex = EventCollector::RobIndex;

  /// Begins a new event and drops the last one.
  void begin(const formats::AssignedEvent& assigned, std::size_t robs, std::uint64_t utc_ns);

  /// Reads a readout's answer to a request for the ROBs `asked`. Sets the result of each ROB in `results`. Returns the
  /// number of bytes that were kept.
  std::uint64_t parse(transport::ReceivedMessage message, std::span<const RobIndex> asked, const EventCollector& collector,
                      const EventContext& context, std::vector<EventCollector::Result>& results,
                      base::CounterBlock<DataCounter>& counters);

  /// The event as a selection sees it. Valid until the next answer or begin().
  WholeEvent view(const EventContext& context, const EventCollector& collector, std::uint32_t step);

  /// Makes the record of the event for a recorder. `partial`: fragments are missing, perhaps of unknown ROBs.
  struct RecordOptions {
    std::span<const formats::RecordStream> streams;
    std::uint32_t status = 0;  ///< Bits of event_status.
    bool partial = false;
  };
  void make_record(const RecordOptions& options, EventCollector::Slot slot, const EventCollector& collector,
                   const EventContext& context, base::CounterBlock<DataCounter>& counters);
  /// The record, in memory of this object and of its messages. Valid until the next begin().
  std::span<const std::span<const std::byte>> record() const { return record_; }
  std::uint64_t event_bytes() const { return event_bytes_; }

  bool empty() const { return arrived_robs_ == 0; }
  /// Releases the pages.
  void end();

 private:
  struct Part {
    bool present = false;
    std::uint8_t missing_status = 0;  ///< Generic status bits of the ROB that stands for the missing fragment.
    std::uint32_t message = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::uint32_t status = 0;
  };

  formats::AssignedEvent assigned_;
  std::uint64_t utc_ns_ = 0;
  std::vector<transport::ReceivedMessage> messages_;
  std::vector<Part> parts_;
  std::vector<formats::FoundRob> found_;
  std::size_t arrived_robs_ = 0;
  std::uint64_t payload_bytes_ = 0;
  std::uint32_t status_ = 0;
  bool knows_trigger_ = false;
  bool trigger_differs_ = false;
  L1Id l1id_ = {};  // L1 id of the first fragment; before it arrives, from the event's id.
  std::uint32_t bcid_ = 0;
  std::uint32_t trigger_type_ = 0;
  std::vector<std::span<const std::byte>> view_pieces_;
  std::vector<EventRob> view_robs_;
  std::vector<std::byte> front_;  // Record head and event header.
  std::vector<std::byte> stubs_;
  std::array<std::byte, 4> checksum_{};
  std::vector<std::span<const std::byte>> record_;
  std::uint64_t event_bytes_ = 0;
};

}  // namespace rodeo::farm
