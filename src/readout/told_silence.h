// After which silence links still find their place: what a set-up says of each ROB. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "readout/settings.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// Links that are placed together: of a ROB (GBT mode) or of one group (FULL mode).
struct SilentLinks {
  TriggerFields ids;
  bool listed = false;              ///< the trigger's own list decides
  std::uint64_t links = 1;          ///< that are placed together
  std::uint64_t read_together = 1;  ///< of these, the fewest that one worker reads from one card
  std::uint64_t window = 0;         ///< events that workers may be apart by
  std::uint64_t reset_events = 0;   ///< from one event counter reset to the next, where that is known
  bool compares_bcids = false;      ///< those of one event, by which a link is placed again
};

/// Events in which links may bring nothing, and be placed rightly afterwards; nothing: any number.
struct ToldSilence {
  std::optional<std::uint64_t> of_one{};  ///< while the others bring data
  std::optional<std::uint64_t> of_all{};  ///< of these links at once
};

ToldSilence told_silence(const SilentLinks& links);

/// "a link finds its place after a silence of any length, all links at once after one of less than 655 ms (65536 events at 100 kHz)"
std::string silence_text(const ToldSilence& told, std::optional<double> rate_hz);

/// Some silence of less than ten seconds is not told.
bool is_short(const ToldSilence& told, std::optional<double> rate_hz);

/// One for all ROBs of which the same is to be said.
struct SilenceNote {
  std::string text;
  bool is_short = false;
};
/// `links`: of each ROB in the order of the settings; 0: not known, then several. Nothing of builders that we do not know. Throws what the extractor throws.
std::vector<SilenceNote> silence_notes(const ReadoutSettings& settings, const TriggerFields& ids,
                                       const std::vector<std::size_t>& links);

}  // namespace rodeo::readout
