// The longest silence after which links still find their place, for each ROB of a configuration. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "readout/settings.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// Links whose places are found together: those of a ROB (GBT mode) or of one group (FULL mode).
struct SilentLinks {
  TriggerFields ids;
  bool listed = false;              ///< the trigger's own list gives the events
  std::uint64_t links = 1;          ///< number of links placed together
  std::uint64_t read_together = 1;  ///< smallest number of these links that one worker reads from one card
  bool has_others = false;          ///< other groups or ROBs of the process, or other cards
  std::uint64_t window = 0;         ///< number of events by which workers may be apart
  std::uint64_t reset_events = 0;   ///< events from one counter reset to the next, if known
  bool compares_bcids = false;      ///< the BCIDs of one event are compared, so that a link finds its place again
};

/// The number of events for which links may be silent and still find their place afterwards; nothing: any number.
struct SilenceLimit {
  std::optional<std::uint64_t> one_link{};   ///< silence of one link, while the others bring data
  std::optional<std::uint64_t> all_links{};  ///< silence of all these links at once
};

SilenceLimit silence_limit(const SilentLinks& links);

/// The text for people: "a link finds its place after a silence of any length, all links at once after one of less than 655
/// ms (65536 events at 100 kHz)".
std::string silence_text(const SilenceLimit& limit, std::optional<double> rate_hz);

/// True if a silence of less than ten seconds may already be too long.
bool is_short(const SilenceLimit& limit, std::optional<double> rate_hz);

/// One note for all ROBs with the same text.
struct SilenceNote {
  std::string text;
  bool is_short = false;
};
/// `links`: number of links of each ROB, in the order of the settings; 0: unknown, taken as several. The result is empty for
/// builders of plug-ins. Throws the exceptions of the extractor.
std::vector<SilenceNote> silence_notes(const ReadoutSettings& settings, const TriggerFields& ids,
                                       const std::vector<std::size_t>& links);

}  // namespace rodeo::readout
