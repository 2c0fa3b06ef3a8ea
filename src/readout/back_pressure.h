// Finds the stage that holds a run back. Back-pressure travels upstream: a full queue of a consumer blocks the stage before
// it, then the builder, the input, and at last the trigger. So its first cause is the last stage of the chain that is full.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "readout/readout_status.h"

namespace rodeo::readout {

inline constexpr const char* kLimitedByNothing = "nothing";
inline constexpr const char* kLimitedByInput = "input";  ///< triggers were vetoed, but no later stage was full

/// Number of fragments that a consumer left out because its queue was full (full_queue = skip). No stage waits for such a
/// consumer.
std::uint64_t skipped_by(const FragmentConsumer::Status& consumer);

/// The first cause of back-pressure between two status calls: the name of a consumer, "builder", or "nothing".
std::string first_cause(const ReadoutStatus& before, const ReadoutStatus& now);

/// Counts, over the whole run, which stage held the run back.
class BackPressureHistory {
 public:
  void add(const std::string& cause);
  /// The most frequent cause; kLimitedByNothing if there was no back-pressure.
  std::string worst() const;

 private:
  std::map<std::string, std::uint64_t> causes_;
};

}  // namespace rodeo::readout
