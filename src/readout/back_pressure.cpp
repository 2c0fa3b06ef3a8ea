#include "readout/back_pressure.h"

#include <algorithm>

namespace rodeo::readout {
namespace {

// A buffer with this fill has no room for the next burst, even if no stage was seen waiting.
constexpr double kFull = 0.95;

/// The number of times that a consumer was not ready: a stage waited for it, or the consumer skipped a fragment because its
/// queue was full.
std::uint64_t stalls_of(const ReadoutStatus& status, std::size_t consumer) {
  if (consumer >= status.consumers.size()) return 0;
  return status.consumers[consumer].stalls + skipped_by(status.consumers[consumer]);
}

}  // namespace

std::uint64_t skipped_by(const FragmentConsumer::Status& consumer) {
  return counter_value(consumer.counters, "unwritten_queue_full");
}

std::string first_cause(const ReadoutStatus& before, const ReadoutStatus& now) {
  for (std::size_t i = now.consumers.size(); i-- > 0;) {
    const FragmentConsumer::Status& consumer = now.consumers[i];
    if (stalls_of(now, i) > stalls_of(before, i) || consumer.queue_fill >= kFull) return consumer.name;
  }
  const bool pool_full = std::ranges::any_of(now.robs, [](const RobStatus& rob) { return rob.builder.pool_fill >= kFull; });
  // A consumer that keeps fragments by design uses up buffers. A fragment may need more buffers than expected.
  const auto keeper = std::ranges::find_if(now.consumers, [](const FragmentConsumer::Status& consumer) {
    const std::uint64_t limit = counter_value(consumer.counters, "kept_limit");
    return limit != 0 && 2 * counter_value(consumer.counters, "kept") >= limit;
  });
  if (pool_full && keeper != now.consumers.end()) return keeper->name;
  const bool vetoed = counter_value(now.input, "vetoed") > counter_value(before.input, "vetoed");
  return vetoed || pool_full ? "builder" : kLimitedByNothing;
}

void BackPressureHistory::add(const std::string& cause) {
  if (cause != kLimitedByNothing) ++causes_[cause];
}

std::string BackPressureHistory::worst() const {
  const auto worst = std::ranges::max_element(causes_, {}, [](const auto& cause) { return cause.second; });
  return worst == causes_.end() ? kLimitedByNothing : worst->first;
}

}  // namespace rodeo::readout
