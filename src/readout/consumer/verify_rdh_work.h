// The work `verify_rdh`: proves every byte of frames of RDH pages from emulated cards.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "formats/provable.h"
#include "formats/time_frame_numbers.h"
#include "readout/consumer/first_wrong.h"
#include "readout/consumer/link_table.h"
#include "rodeo/consumer.h"
#include "rodeo/parameters.h"

namespace rodeo::readout {

/// Verifies headers and payload of every frame (formats/rdh_payload.h), that the frame belongs to the fragment's orbit, and
/// that no link occurs twice. The RDH link id of a chunk must be the link number of its FID, as the card input makes it.
class VerifyRdhWork final : public FragmentWork {
 public:
  struct Settings {
    std::uint64_t seed = 1;
    std::uint32_t orbits_per_frame = 1;
  };
  explicit VerifyRdhWork(Settings settings)
      : settings_(settings), provable_(settings.seed), numbers_(settings.orbits_per_frame) {}

  bool read_only() const override { return true; }
  void process(Fragment& fragment) override;

  /// verified_chunks, mismatches (the sum of the faults, by kind below), flagged_chunks (known to be damaged, so not
  /// compared), unfinished_frames (correct, but with fewer orbits than a frame: not verified), wrong_chunks,
  /// duplicate_links, wrong_triggers, broken_fragments.
  std::vector<NamedCounter> counters() const override;

  static std::vector<Key> keys();
  static Settings settings(const Parameters& parameters);

 private:
  const Settings settings_;
  const formats::Provable provable_;
  formats::TimeFrameNumbers numbers_;
  LinkTable links_;
  FirstWrong first_wrong_;
  base::Gauge<std::uint64_t> verified_chunks_, flagged_chunks_, unfinished_frames_, wrong_chunks_, duplicate_links_,
      wrong_triggers_, broken_fragments_;
};

}  // namespace rodeo::readout
