// Is one event whole? Sizes, checksums, compression, ROBs, RODs, and for Rodeo's own events every chunk.
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

/// What is expected of the events of a file.
struct EventExpectations {
  bool ours = false;                        ///< ROD data are chunk records; ids of event, ROB and ROD agree
  std::optional<std::uint32_t> run_number;  ///< of every event and ROD, if ours
  std::optional<ProvableMark> provable;     ///< chunks prove themselves
  bool global_ids = false;                  ///< global ids follow the rule of event_ids.h, and payload is drawn from them
};

/// What the checked events held.
struct EventTotals {
  std::uint64_t events = 0;
  std::uint64_t unproven_headers = 0;  ///< events so marked when they were recovered (kHeaderNotProven)
  std::uint64_t robs = 0;
  std::uint64_t incomplete_robs = 0;       ///< status is not 0
  std::uint64_t missing_links = 0;         ///< chunks that should have come and did not, as the fragments say
  std::uint64_t robs_without_removed = 0;  ///< incomplete or not, some link was removed from the build
  std::uint64_t removed_links = 0;         ///< chunks that nobody waited for, because their links were removed
  std::uint64_t chunks = 0;
  std::uint64_t flagged_chunks = 0;    ///< not as they were sent, and their header says so
  std::uint64_t wrong_chunks = 0;      ///< not as they were sent, and no header says so: each is a finding
  std::uint64_t wrong_in_flagged = 0;  ///< of these, in fragments that are flagged for the payload of some chunk
  std::uint64_t proven_chunks = 0;     ///< every byte is what the link sent
  std::uint64_t rod_data_bytes = 0;
  std::uint64_t events_with_checksum = 0;
  std::uint64_t robs_with_checksum = 0;

  /// Those of other events.
  EventTotals& operator+=(const EventTotals& more);
};

/// Checks events one after the other, keeping memory between them. One thread.
class EventChecker {
 public:
  explicit EventChecker(const EventExpectations& expectations);

  /// Checks the event that fills `bytes`, which lie at `offset` of the file; `name` ("event 3") starts what is said. True if nothing is wrong.
  bool check(std::span<const std::byte> bytes, std::uint64_t offset, const std::string& name, Findings& findings);

  const EventTotals& totals() const { return totals_; }

 private:
  struct Place;  // which event, and where to report
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
