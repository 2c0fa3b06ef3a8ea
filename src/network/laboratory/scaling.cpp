#include "network/laboratory/scaling.h"

#include <cmath>

namespace rodeo::network::laboratory {

namespace {

std::uint64_t times(std::uint64_t value, double factor) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(value) * factor));
}

}  // namespace

Settings scaled(const Settings& settings, const Scale& scale) {
  Settings result = settings;
  Topology& topology = result.topology;
  for (std::uint64_t* bps : {&topology.readout_link_bps, &topology.uplink_bps, &topology.node_link_bps})
    *bps = times(*bps, scale.rate);
  for (std::uint64_t* ns : {&topology.propagation_ns, &result.tcp.rto_min_ns}) *ns = times(*ns, scale.time());
  for (std::uint64_t* bytes : {&result.traffic.event_bytes, &result.buffer.dedicated_bytes_per_port})
    *bytes = times(*bytes, scale.size);
  for (auto* bytes : {&result.buffer.shared_bytes, &result.buffer.port_limit_bytes}) {
    if (*bytes) *bytes = times(**bytes, scale.size);
  }
  result.traffic.event_rate_hz /= scale.time();
  return result;
}

bool Group::kept() const {
  if (laboratory.has_value() != real.has_value()) return false;
  return !laboratory || std::abs(*laboratory - *real) <= 0.02 * std::abs(*real);
}

std::vector<Group> groups(const Settings& laboratory, std::optional<std::chrono::nanoseconds> laboratory_round_trip,
                          const Settings& real, std::optional<std::chrono::nanoseconds> real_round_trip) {
  std::vector<Group> list;
  const auto add = [&](std::string name, std::string meaning, auto&& value) {
    list.push_back(
        {std::move(name), std::move(meaning), value(laboratory, laboratory_round_trip), value(real, real_round_trip)});
  };
  using RoundTrip = std::optional<std::chrono::nanoseconds>;
  using Value = std::optional<double>;
  const auto drain_ns = [](const Settings& s) {  // S / O
    return static_cast<double>(s.traffic.event_bytes) * 8e9 / static_cast<double>(s.topology.node_link_bps);
  };
  add("I / O", "how much faster a port fills than it drains", [](const Settings& s, RoundTrip) -> Value {
    return static_cast<double>(s.topology.uplink_bps) / static_cast<double>(s.topology.node_link_bps);
  });
  add("S f / O", "events that drain at the same time",
      [&](const Settings& s, RoundTrip) -> Value { return drain_ns(s) * 1e-9 * s.traffic.event_rate_hz; });
  add("B / S", "events that the buffer holds", [](const Settings& s, RoundTrip) -> Value {
    const auto& bytes = s.buffer.shared_bytes ? s.buffer.shared_bytes : s.buffer.port_limit_bytes;
    return bytes ? Value(static_cast<double>(*bytes) / static_cast<double>(s.traffic.event_bytes)) : std::nullopt;
  });
  add("S / (R MSS)", "segments of a fragment: few of them end in time-outs", [](const Settings& s, RoundTrip) -> Value {
    return static_cast<double>(s.traffic.event_bytes) / s.topology.readouts / s.traffic.segment_bytes();
  });
  add("RTO O / S", "cost of a time-out: determines the depth of a collapse",
      [&](const Settings& s, RoundTrip) -> Value { return static_cast<double>(s.tcp.rto_min_ns) / drain_ns(s); });
  add("RTT O / S", "time until a sender learns of a loss", [&](const Settings& s, RoundTrip trip) -> Value {
    return trip ? Value(static_cast<double>(trip->count()) / drain_ns(s)) : std::nullopt;
  });
  return list;
}

}  // namespace rodeo::network::laboratory
