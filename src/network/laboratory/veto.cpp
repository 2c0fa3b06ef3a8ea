#include "network/laboratory/veto.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/sentence.h"
#include "network/formula/superposition.h"

namespace rodeo::network::laboratory {

namespace {

std::uint32_t ports_of(const Settings& settings) { return settings.topology.nodes / settings.topology.racks; }

constexpr double kLongestStallPeriods = 2000;  // longer stalls veto a run in any case

/// The largest occupancy if all events that are due in a stall are requested at its end. The stall begins `after` seconds
/// after an event.
double largest_occupancy(const Settings& settings, double stall_seconds, double after, double live) {
  const double period = 1 / settings.traffic.event_rate_hz;
  const double begin = (std::ceil(live) + 2) * period + after;
  const double end = begin + stall_seconds;
  const double most_at_once = static_cast<double>(ports_of(settings)) * settings.traffic.events_in_flight;
  const double utilisation = static_cast<double>(settings.traffic.event_bytes) * 8 * settings.traffic.event_rate_hz /
                             static_cast<double>(settings.topology.uplink_bps);
  // After this time the uplink has caught up.
  const double until = end + (2 * live + 2) * period + stall_seconds / std::max(0.02, 1 - utilisation);
  std::vector<Burst> bursts;
  double at_once = 0;
  for (std::uint32_t n = 0; n * period < until; ++n) {
    const double due = n * period;
    const bool delayed = due >= begin && due <= end;
    if (delayed && ++at_once > most_at_once) continue;  // the node holds this event back
    bursts.push_back({.start_s = delayed ? end : due,
                      .bytes = static_cast<double>(settings.traffic.event_bytes),
                      .port = n % ports_of(settings)});
  }
  const auto sum = superpose(bursts, {.input_bps = static_cast<double>(settings.topology.uplink_bps),
                                      .output_bps = static_cast<double>(settings.topology.node_link_bps),
                                      .ports = ports_of(settings)});
  return sum ? sum->max_bytes : 0;
}

}  // namespace

double added_by_stall(const Settings& settings, double stall_seconds) {
  if (stall_seconds <= 0 || std::uint64_t{ports_of(settings)} * settings.traffic.events_in_flight == 1) return 0;
  const double period = 1 / settings.traffic.event_rate_hz;
  const double live = static_cast<double>(settings.traffic.event_bytes) * 8 * settings.traffic.event_rate_hz /
                      static_cast<double>(settings.topology.node_link_bps);
  const double usual = largest_occupancy(settings, 0, period / 2, live);
  const double stall = std::min(stall_seconds, kLongestStallPeriods * period);
  // The worst stall begins or ends with an event.
  const double whole = std::floor(stall * settings.traffic.event_rate_hz) * period;
  const double ends_with_one = std::fmod(whole + period - stall + period, period);
  const double worst =
      std::max(largest_occupancy(settings, stall, 0, live), largest_occupancy(settings, stall, ends_with_one, live));
  return usual > 0 ? std::max(0.0, worst / usual - 1) : 0;
}

std::vector<std::string> veto_reasons(const Settings& settings, const Disturbance& disturbance, const VetoRule& rule) {
  std::vector<std::string> reasons;
  const auto late = [&](double seconds, const char* who) {
    const double added = added_by_stall(settings, seconds);
    if (added > rule.most_added_occupancy)
      reasons.push_back(fmt::format("{} {:.2f} ms late, which can raise the occupancy by {:.1f} % (more than {:.1f} %)", who,
                                    seconds * 1e3, added * 100, rule.most_added_occupancy * 100));
  };
  late(disturbance.request_lateness_seconds, "a request was");
  late(disturbance.answer_lateness_seconds, "an answer was");
  late(disturbance.clock_error_seconds, "clocks of hosts may be");
  if (disturbance.counting_lateness_seconds > rule.most_not_counted * 1e-9 * static_cast<double>(settings.duration_ns))
    reasons.push_back(fmt::format("the switch was counted from {:.2f} ms after the start on, more than {:.1f} % of the run",
                                  disturbance.counting_lateness_seconds * 1e3, rule.most_not_counted * 100));
  if (disturbance.machine_drops > 0)
    reasons.push_back(
        fmt::format("this machine lost {} between its network cards", base::counted(disturbance.machine_drops, "packet")));
  if (disturbance.link_drops > 0)
    reasons.push_back(fmt::format("{} lost before the switch", base::counted(disturbance.link_drops, "packet")));
  if (disturbance.left_in_pool_bytes != 0)
    reasons.push_back(fmt::format("{} bytes were left in the shared buffer after the run", disturbance.left_in_pool_bytes));
  return reasons;
}

}  // namespace rodeo::network::laboratory
