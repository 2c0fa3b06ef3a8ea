// Finds the stage that holds a run back. Back-pressure travels upstream - a full queue of a consumer blocks the one before it, then
// the builder, the input, and at last the trigger - so its first cause is the last stage of the chain that is full.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "readout/readout_status.h"

namespace rodeo::readout {

inline constexpr const char* kLimitedByNothing = "nothing";
inline constexpr const char* kLimitedByInput = "input";  ///< triggers were refused though nothing behind the input was full

/// Fragments that a consumer left out because its queue was full: where it may (full_queue = skip), nobody waits for it.
std::uint64_t skipped_by(const FragmentConsumer::Status& consumer);

/// The first cause of back-pressure between two looks at the same run: the name of a consumer, "builder", or "nothing".
std::string first_cause(const ReadoutStatus& before, const ReadoutStatus& now);

/// Remembers over a run which stage held it back most often.
class BackPressureHistory {
 public:
  void add(const std::string& cause);
  /// The most frequent cause; kLimitedByNothing if nothing ever pushed back.
  std::string worst() const;

 private:
  std::map<std::string, std::uint64_t> causes_;
};

}  // namespace rodeo::readout
