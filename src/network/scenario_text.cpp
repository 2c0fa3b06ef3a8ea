#include "network/scenario_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "base/nearest.h"
#include "base/units.h"

namespace rodeo::network {

namespace {

using Kind = ScenarioSetting::Kind;

std::unexpected<Error> bad(std::string_view text, std::string_view wanted) {
  return std::unexpected(Error{"network.bad_setting", fmt::format("\"{}\" is not {}", text, wanted)});
}

template <typename T>
Result<void> read_count(T& value, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return bad(text, "a whole number of 0 or more");
  return {};
}

Result<void> read_number(double& value, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0)) return bad(text, "a number of 0 or more");
  return {};
}

Result<void> read_boolean(bool& value, std::string_view text) {
  if (text != "true" && text != "false") return bad(text, "true or false");
  value = text == "true";
  return {};
}

template <typename T>
Result<void> read_size(T& value, std::string_view text) {
  const auto bytes = base::parse_size(text);
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes > std::numeric_limits<T>::max()) return bad(text, "a size that fits");
  value = static_cast<T>(*bytes);
  return {};
}

Result<void> read_size_or(std::optional<std::uint64_t>& value, std::string_view text, std::string_view none) {
  if (text == none) {
    value.reset();
    return {};
  }
  std::uint64_t bytes = 0;
  if (auto done = read_size(bytes, text); !done) return done;
  value = bytes;
  return {};
}

Result<void> read_bit_rate(std::uint64_t& value, std::string_view text) {
  const auto bits = base::parse_bits_per_second(text);
  if (!bits) return std::unexpected(bits.error());
  if (!(*bits >= 0 && *bits <= 1e15)) return bad(text, "a bit rate of at most 1000 Tbps");
  value = static_cast<std::uint64_t>(*bits);
  return {};
}

Result<void> read_rate(double& value, std::string_view text) {
  const auto hertz = base::parse_rate_hz(text);
  if (!hertz) return std::unexpected(hertz.error());
  value = *hertz;
  return {};
}

/// "1us", or a number of seconds, which is what a base unit is to a program.
Result<void> read_duration(std::uint64_t& value_ns, std::string_view text) {
  double seconds = 0;
  if (read_number(seconds, text)) {
    if (seconds > 1e9) return bad(text, "a duration");
    value_ns = static_cast<std::uint64_t>(std::llround(seconds * 1e9));
    return {};
  }
  const auto duration = base::parse_duration(text);
  if (!duration) return std::unexpected(duration.error());
  if (duration->count() < 0) return bad(text, "a duration of 0 or more");
  value_ns = static_cast<std::uint64_t>(duration->count());
  return {};
}

template <typename Enum, std::size_t n>
struct Names {
  std::array<std::pair<std::string_view, Enum>, n> names;

  Result<void> read(Enum& value, std::string_view text) const {
    for (const auto& [name, one] : names) {
      if (name == text) {
        value = one;
        return {};
      }
    }
    std::string all;
    for (const auto& [name, one] : names) all += (all.empty() ? "" : ", ") + std::string(name);
    return bad(text, "one of " + all);
  }
  std::string text(Enum value) const {
    for (const auto& [name, one] : names) {
      if (one == value) return std::string(name);
    }
    return {};
  }
};

constexpr Names<Arrivals, 3> kArrivals{
    {{{"periodic", Arrivals::periodic}, {"jittered", Arrivals::jittered}, {"poisson", Arrivals::poisson}}}};
constexpr Names<Assignment, 3> kAssignments{{{{"round-robin", Assignment::round_robin},
                                              {"random", Assignment::random},
                                              {"least-loaded", Assignment::least_loaded}}}};
constexpr Names<SizeSpread, 3> kSpreads{
    {{{"fixed", SizeSpread::fixed}, {"normal", SizeSpread::normal}, {"log-normal", SizeSpread::log_normal}}}};
constexpr Names<UplinkSharing, 2> kSharing{{{{"ideal", UplinkSharing::ideal}, {"flow-hash", UplinkSharing::flow_hash}}}};
constexpr Names<Engine, 2> kEngines{{{{"packet", Engine::packet}, {"train", Engine::train}}}};
constexpr Names<CongestionControl, 3> kControls{
    {{{"none", CongestionControl::none}, {"reno", CongestionControl::reno}, {"cubic", CongestionControl::cubic}}}};

std::string seconds(std::uint64_t ns) { return fmt::format("{}", static_cast<double>(ns) / 1e9); }
std::string bytes_or(const std::optional<std::uint64_t>& bytes, std::string_view none) {
  return bytes ? std::to_string(*bytes) : std::string(none);
}

// A setting: how it is read into the scenario `s` from `t`, and how it is written.
#define READS(expression) [](Scenario& s, std::string_view t) -> Result<void> { return expression; }
#define WRITES(expression) [](const Scenario& s) -> std::string { return expression; }

const std::vector<ScenarioSetting>& settings() {
  static const std::vector<ScenarioSetting> all{
      {"preset",
       "topology",
       Kind::choice,
       "Topology that the other keys change: lab-2023 is the paper's laboratory with 48 readouts, hl-lhc has 600.",
       {"lab-2023", "hl-lhc"},
       [](Scenario& s, std::string_view t) -> Result<void> {
         auto preset = topology_preset(t);
         if (!preset) return std::unexpected(preset.error());
         s.topology = *preset;
         return {};
       },
       WRITES(s.topology.readouts == 600 ? "hl-lhc" : "lab-2023")},
      {"readouts",
       "topology",
       Kind::count,
       "Readout nodes, each with a fragment of every event.",
       {},
       READS(read_count(s.topology.readouts, t)),
       WRITES(std::to_string(s.topology.readouts))},
      {"nodes",
       "topology",
       Kind::count,
       "Filter nodes, all racks together.",
       {},
       READS(read_count(s.topology.nodes, t)),
       WRITES(std::to_string(s.topology.nodes))},
      {"racks",
       "topology",
       Kind::count,
       "Racks, each with a switch of its own.",
       {},
       READS(read_count(s.topology.racks, t)),
       WRITES(std::to_string(s.topology.racks))},
      {"readout_link",
       "topology",
       Kind::bit_rate,
       "Link of a readout.",
       {},
       READS(read_bit_rate(s.topology.readout_link_bps, t)),
       WRITES(std::to_string(s.topology.readout_link_bps))},
      {"uplink",
       "topology",
       Kind::bit_rate,
       "All links together from the core to the switch of one rack.",
       {},
       READS(read_bit_rate(s.topology.uplink_bps, t)),
       WRITES(std::to_string(s.topology.uplink_bps))},
      {"uplinks",
       "topology",
       Kind::count,
       "Physical links that make up `uplink`.",
       {},
       READS(read_count(s.topology.uplinks, t)),
       WRITES(std::to_string(s.topology.uplinks))},
      {"uplink_sharing",
       "topology",
       Kind::choice,
       "How packets are spread over them: as if they were one link, or by a hash of the flow.",
       {"ideal", "flow-hash"},
       READS(kSharing.read(s.topology.uplink_sharing, t)),
       WRITES(kSharing.text(s.topology.uplink_sharing))},
      {"node_link",
       "topology",
       Kind::bit_rate,
       "Link from the switch to one node.",
       {},
       READS(read_bit_rate(s.topology.node_link_bps, t)),
       WRITES(std::to_string(s.topology.node_link_bps))},
      {"propagation",
       "topology",
       Kind::duration,
       "Delay from readout to node, one way.",
       {},
       READS(read_duration(s.topology.propagation_ns, t)),
       WRITES(seconds(s.topology.propagation_ns))},

      {"event_size",
       "traffic",
       Kind::size,
       "Payload of a whole event, all readouts together.",
       {},
       READS(read_size(s.traffic.event_bytes, t)),
       WRITES(std::to_string(s.traffic.event_bytes))},
      {"rate",
       "traffic",
       Kind::rate,
       "Events of one rack.",
       {},
       READS(read_rate(s.traffic.event_rate_hz, t)),
       WRITES(fmt::format("{}", s.traffic.event_rate_hz))},
      {"arrivals",
       "traffic",
       Kind::choice,
       "When events come: at even intervals, these with jitter, or at random.",
       {"periodic", "jittered", "poisson"},
       READS(kArrivals.read(s.traffic.arrivals, t)),
       WRITES(kArrivals.text(s.traffic.arrivals))},
      {"jitter_periods",
       "traffic",
       Kind::number,
       "Of jittered arrivals: uniform in +- this many periods.",
       {},
       READS(read_number(s.traffic.jitter_periods, t)),
       WRITES(fmt::format("{}", s.traffic.jitter_periods))},
      {"assignment",
       "traffic",
       Kind::choice,
       "Which node gets an event.",
       {"round-robin", "random", "least-loaded"},
       READS(kAssignments.read(s.traffic.assignment, t)),
       WRITES(kAssignments.text(s.traffic.assignment))},
      {"size_spread",
       "traffic",
       Kind::choice,
       "Distribution of event sizes around `event_size`.",
       {"fixed", "normal", "log-normal"},
       READS(kSpreads.read(s.traffic.size_spread, t)),
       WRITES(kSpreads.text(s.traffic.size_spread))},
      {"size_sigma",
       "traffic",
       Kind::number,
       "Standard deviation of event sizes, relative to the mean.",
       {},
       READS(read_number(s.traffic.size_sigma, t)),
       WRITES(fmt::format("{}", s.traffic.size_sigma))},
      {"mtu",
       "traffic",
       Kind::count,
       "Largest IP packet: 1500, or 9000 for jumbo frames.",
       {},
       READS(read_count(s.traffic.mtu_bytes, t)),
       WRITES(std::to_string(s.traffic.mtu_bytes))},

      {"ethernet_overhead",
       "traffic",
       Kind::size,
       "What Ethernet adds to a packet, on links and in buffers: 14 for its header, 38 with preamble, check sequence and "
       "gap.",
       {},
       READS(read_size(s.traffic.ethernet_bytes, t)),
       WRITES(std::to_string(s.traffic.ethernet_bytes))},
      {"request_size",
       "traffic",
       Kind::size,
       "Payload of a request.",
       {},
       READS(read_size(s.traffic.request_bytes, t)),
       WRITES(std::to_string(s.traffic.request_bytes))},
      {"events_in_flight",
       "traffic",
       Kind::count,
       "Events that a node may have, from assignment to processed; 0: no limit.",
       {},
       READS(read_count(s.traffic.events_in_flight, t)),
       WRITES(std::to_string(s.traffic.events_in_flight))},
      {"request_gap",
       "traffic",
       Kind::duration,
       "Pacing: least time between two requests of a node.",
       {},
       READS(read_duration(s.traffic.request_gap_ns, t)),
       WRITES(seconds(s.traffic.request_gap_ns))},
      {"request_credits",
       "traffic",
       Kind::count,
       "Fragments that a node may have asked for and not got; 0: no limit.",
       {},
       READS(read_count(s.traffic.request_credits, t)),
       WRITES(std::to_string(s.traffic.request_credits))},
      {"processing",
       "traffic",
       Kind::duration,
       "Time that a node works on an event that is there.",
       {},
       READS(read_duration(s.traffic.processing_ns, t)),
       WRITES(seconds(s.traffic.processing_ns))},
      {"processing_exponential",
       "traffic",
       Kind::boolean,
       "Whether that is the mean of an exponential distribution.",
       {},
       READS(read_boolean(s.traffic.processing_exponential, t)),
       WRITES(s.traffic.processing_exponential ? "true" : "false")},
      {"node_service",
       "traffic",
       Kind::rate,
       "Events that a node can take in, one after another; 0: no limit.",
       {},
       READS(read_rate(s.traffic.node_service_hz, t)),
       WRITES(fmt::format("{}", s.traffic.node_service_hz))},
      {"readout_service",
       "traffic",
       Kind::rate,
       "Requests that a readout can answer, one after another; 0: no limit.",
       {},
       READS(read_rate(s.traffic.readout_service_hz, t)),
       WRITES(fmt::format("{}", s.traffic.readout_service_hz))},
      {"readout_response",
       "traffic",
       Kind::duration,
       "Time from a request to its answer, beside that.",
       {},
       READS(read_duration(s.traffic.readout_response_ns, t)),
       WRITES(seconds(s.traffic.readout_response_ns))},

      {"readout_jitter",
       "traffic",
       Kind::duration,
       "Added to that, uniform from 0 to this: readouts that are not equally quick, in an order that changes.",
       {},
       READS(read_duration(s.traffic.readout_jitter_ns, t)),
       WRITES(seconds(s.traffic.readout_jitter_ns))},

      {"switch",
       "switch",
       Kind::choice,
       "Switch that the other keys change. plain has an infinite buffer that counts bytes.",
       {"plain", "qfx5120", "acx7100"},
       [](Scenario& s, std::string_view t) -> Result<void> {
         if (t == "plain") {
           s.buffer = SwitchBuffer{};
           return {};
         }
         auto preset = switch_preset(t);
         if (!preset) return std::unexpected(preset.error());
         s.buffer = *preset;
         return {};
       },
       WRITES(s.buffer.virtual_output_queues ? "acx7100"
              : s.buffer.cell_bytes != 0     ? "qfx5120"
                                             : "plain")},
      {"buffer",
       "switch",
       Kind::size,
       "Memory shared by all ports, or infinite.",
       {},
       READS(read_size_or(s.buffer.shared_bytes, t, "infinite")),
       WRITES(bytes_or(s.buffer.shared_bytes, "infinite"))},
      {"dedicated",
       "switch",
       Kind::size,
       "Memory of each port alone, beside the shared.",
       {},
       READS(read_size(s.buffer.dedicated_bytes_per_port, t)),
       WRITES(std::to_string(s.buffer.dedicated_bytes_per_port))},
      {"dynamic_threshold",
       "switch",
       Kind::number,
       "A port may hold this many times what is free of the shared memory; 0: no threshold.",
       {},
       READS(read_number(s.buffer.dynamic_threshold, t)),
       WRITES(fmt::format("{}", s.buffer.dynamic_threshold))},
      {"port_limit",
       "switch",
       Kind::size,
       "What one port may hold at most, or none.",
       {},
       READS(read_size_or(s.buffer.port_limit_bytes, t, "none")),
       WRITES(bytes_or(s.buffer.port_limit_bytes, "none"))},
      {"cell",
       "switch",
       Kind::size,
       "Memory is given out in cells of this size; 0: by the byte.",
       {},
       READS(read_size(s.buffer.cell_bytes, t)),
       WRITES(std::to_string(s.buffer.cell_bytes))},
      {"cell_metadata",
       "switch",
       Kind::size,
       "What the switch itself keeps in the first cell of a packet.",
       {},
       READS(read_size(s.buffer.first_cell_metadata_bytes, t)),
       WRITES(std::to_string(s.buffer.first_cell_metadata_bytes))},
      {"virtual_output_queues",
       "switch",
       Kind::boolean,
       "A deep buffer with a queue for each input and output.",
       {},
       READS(read_boolean(s.buffer.virtual_output_queues, t)),
       WRITES(s.buffer.virtual_output_queues ? "true" : "false")},

      {"engine",
       "simulation",
       Kind::choice,
       "packet follows every packet; train is many times faster and within 0.5 % of it. Where connections wait for their "
       "windows, "
       "or packets are lost, it follows packets too, at their cost.",
       {"packet", "train"},
       READS(kEngines.read(s.engine, t)),
       WRITES(kEngines.text(s.engine))},
      {"tcp",
       "simulation",
       Kind::choice,
       "Congestion control; none sends fragments at once and never again.",
       {"none", "reno", "cubic"},
       READS(kControls.read(s.tcp.control, t)),
       WRITES(kControls.text(s.tcp.control))},
      {"duration",
       "simulation",
       Kind::duration,
       "Virtual time of a run.",
       {},
       READS(read_duration(s.duration_ns, t)),
       WRITES(seconds(s.duration_ns))},
      {"seed",
       "simulation",
       Kind::count,
       "Seed of everything random.",
       {},
       READS(read_count(s.seed, t)),
       WRITES(std::to_string(s.seed))},

      {"warm",
       "tcp",
       Kind::boolean,
       "Connections have been in use: their windows hold two mean fragments. Otherwise they are new at the start.",
       {},
       READS(read_boolean(s.tcp.warm, t)),
       WRITES(s.tcp.warm ? "true" : "false")},
      {"initial_window",
       "tcp",
       Kind::count,
       "Segments that a new connection may send.",
       {},
       READS(read_count(s.tcp.initial_window, t)),
       WRITES(std::to_string(s.tcp.initial_window))},
      {"receive_window",
       "tcp",
       Kind::size,
       "Largest window.",
       {},
       READS(read_size(s.tcp.window_limit_bytes, t)),
       WRITES(std::to_string(s.tcp.window_limit_bytes))},
      {"slow_start_after_idle",
       "tcp",
       Kind::boolean,
       "Whether a window shrinks while a connection is idle.",
       {},
       READS(read_boolean(s.tcp.slow_start_after_idle, t)),
       WRITES(s.tcp.slow_start_after_idle ? "true" : "false")},
      {"tail_loss_probe",
       "tcp",
       Kind::boolean,
       "Whether the last segment is sent again before the time-out.",
       {},
       READS(read_boolean(s.tcp.tail_loss_probe, t)),
       WRITES(s.tcp.tail_loss_probe ? "true" : "false")},
      {"hystart",
       "tcp",
       Kind::boolean,
       "Whether cubic leaves slow start when delays grow.",
       {},
       READS(read_boolean(s.tcp.hystart, t)),
       WRITES(s.tcp.hystart ? "true" : "false")},
      {"segments_per_ack",
       "tcp",
       Kind::count,
       "Segments that one acknowledgement is for.",
       {},
       READS(read_count(s.tcp.segments_per_ack, t)),
       WRITES(std::to_string(s.tcp.segments_per_ack))},
      {"delayed_ack",
       "tcp",
       Kind::duration,
       "How long it waits for them.",
       {},
       READS(read_duration(s.tcp.delayed_ack_ns, t)),
       WRITES(seconds(s.tcp.delayed_ack_ns))},
      {"timer_tick",
       "tcp",
       Kind::duration,
       "Resolution of the sender's timers, which go off at the next tick but one: 4 ms where CONFIG_HZ is 250; 0: exact.",
       {},
       READS(read_duration(s.tcp.timer_tick_ns, t)),
       WRITES(seconds(s.tcp.timer_tick_ns))},
      {"rto_min",
       "tcp",
       Kind::duration,
       "Shortest retransmission time-out.",
       {},
       READS(read_duration(s.tcp.rto_min_ns, t)),
       WRITES(seconds(s.tcp.rto_min_ns))},
      {"rto_initial",
       "tcp",
       Kind::duration,
       "Time-out before there is a round-trip time.",
       {},
       READS(read_duration(s.tcp.rto_initial_ns, t)),
       WRITES(seconds(s.tcp.rto_initial_ns))},
      {"rto_max",
       "tcp",
       Kind::duration,
       "Longest time-out, after repeated ones.",
       {},
       READS(read_duration(s.tcp.rto_max_ns, t)),
       WRITES(seconds(s.tcp.rto_max_ns))},
  };
  return all;
}

#undef READS
#undef WRITES

}  // namespace

std::span<const ScenarioSetting> scenario_settings() { return settings(); }

std::string readable(const ScenarioSetting& setting, const Scenario& scenario) {
  std::string text = setting.text(scenario);
  double number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{} || !std::isfinite(number))
    return text;  // a word
  switch (setting.kind) {
    case Kind::size: return base::format_size(static_cast<std::uint64_t>(number));
    case Kind::rate: return base::format_quantity(number, "Hz");
    case Kind::bit_rate: return base::format_quantity(number, "bps");
    case Kind::duration: {
      // In the largest unit that it is a whole number of: "120 s", which can be read again.
      const auto ns = std::llround(number * 1e9);
      constexpr std::pair<std::int64_t, std::string_view> kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1000, "us"}};
      for (const auto& [unit, name] : kUnits) {
        if (ns % unit == 0) return fmt::format("{} {}", ns / unit, name);
      }
      return fmt::format("{} ns", ns);
    }
    default: return text;
  }
}

std::string_view value_name(const ScenarioSetting& setting) {
  switch (setting.kind) {
    case Kind::count: return "N";
    case Kind::number: return "NUMBER";
    case Kind::boolean: return "true|false";
    case Kind::size: return "SIZE";
    case Kind::rate: return "RATE";
    case Kind::bit_rate: return "BITRATE";
    case Kind::duration: return "TIME";
    case Kind::choice: return "NAME";
  }
  return "VALUE";
}

const ScenarioSetting* find_scenario_setting(std::string_view name) {
  const auto found = std::ranges::find(settings(), name, &ScenarioSetting::name);
  return found == settings().end() ? nullptr : &*found;
}

Result<Scenario> scenario_of(const NamedTexts& given) {
  Scenario scenario;
  for (const bool presets : {true, false}) {
    for (const auto& [name, text] : given) {
      const ScenarioSetting* setting = find_scenario_setting(name);
      if (setting == nullptr) {
        std::vector<std::string> known;
        for (const ScenarioSetting& one : settings()) known.emplace_back(one.name);
        return std::unexpected(Error{"network.unknown_setting", fmt::format("{} is no setting of a network", name), "",
                                     base::did_you_mean(name, known)});
      }
      if ((name == "preset" || name == "switch") != presets) continue;
      if (auto done = setting->assign(scenario, text); !done) return std::unexpected(done.error().within(name));
    }
  }
  return scenario;
}

}  // namespace rodeo::network
