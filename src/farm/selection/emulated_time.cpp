#include "farm/selection/emulated_time.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

#include "base/clock.h"
#include "base/thread.h"
#include "formats/draw.h"

namespace rodeo::farm {
namespace {

namespace draw = formats::draw;

enum Purpose : std::uint64_t { kTime = 0x71, kAngle = 0x72 };

}  // namespace

std::chrono::nanoseconds EmulatedTime::time_of(std::uint64_t global_id) const {
  const auto scaled = [&](double factor) {
    // An hour exceeds every real wait, and fits the type.
    return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(static_cast<double>(mean.count()) * factor, 3.6e12)));
  };
  const double one = draw::unit(draw::chunk(seed, kTime, 0, global_id));
  switch (shape) {
    case Shape::none: return {};
    case Shape::fixed: return mean;
    case Shape::exponential: return scaled(-std::log(one));
    case Shape::log_normal: {
      // Box and Muller. The mean of the distribution is `mean`, so its median is lower.
      const double other = draw::unit(draw::chunk(seed, kAngle, 0, global_id));
      const double normal = std::sqrt(-2 * std::log(one)) * std::cos(2 * std::numbers::pi * other);
      return scaled(std::exp(sigma * normal - sigma * sigma / 2));
    }
  }
  return {};
}

void EmulatedTime::spend(std::uint64_t global_id) const {
  const auto time = time_of(global_id);
  if (time.count() == 0) return;
  if (!busy) return std::this_thread::sleep_for(time);
  const std::uint64_t end = base::steady_now_ns() + static_cast<std::uint64_t>(time.count());
  while (base::steady_now_ns() < end) base::cpu_relax();
}

const Settings<EmulatedTime>& emulated_time_settings() {
  using T = EmulatedTime;
  using Shape = EmulatedTime::Shape;
  static const Settings<T> settings{
      setting(&T::shape, "time",
              {{"none", Shape::none},
               {"fixed", Shape::fixed},
               {"exponential", Shape::exponential},
               {"log_normal", Shape::log_normal}},
              "Emulated processing time: none, the same for each event, or drawn from a distribution. The same event always "
              "has the same time."),
      setting(&T::mean, "mean_time", "Mean of the emulated time."),
      setting(&T::sigma, "sigma", "Standard deviation of the logarithm of a log_normal time.",
              {.minimum = 0, .maximum = 10}),
      setting(&T::busy, "busy", "Keeps a core busy for this time instead of sleeping."),
      setting(&T::seed, "seed", "Seed of the draws."),
  };
  return settings;
}

}  // namespace rodeo::farm
