// Checks that one event is whole: sizes, checksums, compression, ROBs, RODs, and for Rodeo's own events every chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/file_marks.h"
#include "formats/findings.h"
#include "formats/full_event.h"
#include "formats/provable.h"
#include "formats/rob.h"

namespace rodeo::formats {

/// The expectations for the events of a file.
struct EventExpectations {
  bool ours = false;                        ///< ROD data are chunk records; ids of event, ROB and ROD agree
  std::optional<std::uint32_t> run_number;  ///< run number of every event and ROD, if `ours`
  std::optional<ProvableMark> provable;     ///< chunks have provable payload
  bool global_ids = false;                  ///< global ids follow the rule of event_ids.h, and determine the payload
};

/// Totals of the checked events.
struct EventTotals {
  std::uint64_t events = 0;
  std::uint64_t unproven_headers = 0;  ///< events that recovery marked (kHeaderNotProven)
  std::uint64_t robs = 0;
  std::uint64_t incomplete_robs = 0;       ///< ROBs whose status is not 0
  std::uint64_t missing_links = 0;         ///< missing chunks, according to the fragments
  std::uint64_t robs_without_removed = 0;  ///< complete or not, but without a link that was removed from the build
  std::uint64_t removed_links = 0;         ///< chunks that events did not wait for, because their links were removed
  std::uint64_t chunks = 0;
  std::uint64_t flagged_chunks = 0;    ///< chunks that differ from what was sent, and are flagged in their header
  std::uint64_t wrong_chunks = 0;      ///< chunks that differ from what was sent, and are not flagged: each is a finding
  std::uint64_t wrong_in_flagged = 0;  ///< wrong chunks in fragments that are flagged for the payload of some chunk
  std::uint64_t proven_chunks = 0;     ///< chunks of which every byte is what the link sent
  std::uint64_t rod_data_bytes = 0;
  std::uint64_t events_with_checksum = 0;
  std::uint64_t robs_with_checksum = 0;

  /// Adds the totals of other events.
  EventTotals& operator+=(const EventTotals& more);
};

/// Checks events one after the other and reuses its memory. One thread.
class EventChecker {
 public:
  explicit EventChecker(const EventExpectations& expectations);

  /// Checks the event that fills `bytes`, at `offset` of the file; findings begin with `name` ("event 3"). True if there are
  /// no findings.
  bool check(std::span<const std::byte> bytes, std::uint64_t offset, const std::string& name, Findings& findings);

  const EventTotals& totals() const { return totals_; }

 private:
  struct Place;  // the event and the place of reports
  void check_rob(const RobView& rob, const FullEventView& event, std::size_t offset, const Place& place);
  void check_rod(const RodView& rod, const FullEventView& event, std::size_t offset, const Place& place);
  void check_links(const RodView& rod, std::size_t offset, const Place& place);
  void check_chunks(const RodView& rod, L1Id id, std::size_t offset, const Place& place);

  EventExpectations expectations_;
  std::optional<Provable> provable_;
  EventTotals totals_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint32_t> link_ids_;
};

}  // namespace rodeo::formats
