// The settings of a scenario: one table for each table of a configuration, in the order of display.
#include "network/scenario_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "base/nearest.h"
#include "base/need.h"
#include "base/units.h"
#include "settings/key_value.h"

namespace rodeo::network {

namespace {

constexpr Unit kBytes = Unit::bytes;
constexpr Unit kHertz = Unit::hertz;
constexpr Unit kTime = Unit::nanoseconds;

/// A preset replaces a part of the scenario; the values of that part identify the preset.
template <typename Part>
Settings<Scenario>::Lines preset(const std::string& name, const std::string& help, const std::vector<std::string>& choices,
                                 Part Scenario::* part, Part (*make)(std::string_view),
                                 std::string (*name_of)(const Part&)) {
  return {{{.name = name, .type = KeyType::choice, .help = help, .choices = choices},
           [=](const Scenario& scenario) { return name_of(scenario.*part); },
           [=](Scenario& scenario, const Parameters& from) { scenario.*part = make(from.text(name)); }}};
}

/// A setting that is a size, or a word that means no size.
Settings<SwitchBuffer>::Lines size_or(const std::string& word, std::optional<std::uint64_t> SwitchBuffer::* member,
                                      const std::string& name, const std::string& help) {
  return {{{.name = name, .help = help},
           [=](const SwitchBuffer& buffer) { return buffer.*member ? std::to_string(*(buffer.*member)) : word; },
           [=](SwitchBuffer& buffer, const Parameters& from) {
             const std::string& text = from.text(name);
             if (text == word) return (buffer.*member).reset();
             buffer.*member = need(base::parse_size(text));
           }}};
}

/// A setting that is a bit rate; it is a text, because keys have no type for bit rates.
Settings<Topology>::Lines bit_rate(std::uint64_t Topology::* member, const std::string& name, const std::string& help) {
  return {{{.name = name,
            .fallback = base::format_quantity(static_cast<double>(Topology{}.*member), "bps"),
            .help = help + " A bit rate, such as 25Gbps."},
           [=](const Topology& topology) { return std::to_string(topology.*member); },
           [=](Topology& topology, const Parameters& from) {
             const std::string& text = from.text(name);
             const double bits = need(base::parse_bits_per_second(text));
             if (!(bits >= 0 && bits <= 1e15))
               throw SetupError({"network.bad_setting", fmt::format("\"{}\" is not a bit rate of at most 1000 Tbps", text)});
             topology.*member = static_cast<std::uint64_t>(bits);
           }}};
}

Settings<Scenario> topology_table() {
  using T = Topology;
  return {
      preset<T>(
          "preset",
          "Topology that the other keys change: lab-2023 is the paper's laboratory with 48 readouts, hl-lhc has 600.",
          {"lab-2023", "hl-lhc"}, &Scenario::topology, [](std::string_view name) { return need(topology_preset(name)); },
          [](const T& topology) -> std::string { return topology.readouts == 600 ? "hl-lhc" : "lab-2023"; }),
      setting(&Scenario::topology,
              {
                  setting(&T::readouts, "readouts", "Readout nodes, each with a fragment of every event."),
                  setting(&T::nodes, "nodes", "Filter nodes, all racks together."),
                  setting(&T::racks, "racks", "Racks, each with a switch of its own."),
                  bit_rate(&T::readout_link_bps, "readout_link", "Link of a readout."),
                  bit_rate(&T::uplink_bps, "uplink", "All links together from the core to the switch of one rack."),
                  setting(&T::uplinks, "uplinks", "Physical links that make up `uplink`."),
                  setting(&T::uplink_sharing, "uplink_sharing",
                          {{"ideal", UplinkSharing::ideal}, {"flow-hash", UplinkSharing::flow_hash}},
                          "How packets are spread over the uplinks: as if these were one link, or by a hash of the flow."),
                  bit_rate(&T::node_link_bps, "node_link", "Link from the switch to one node."),
                  setting(&T::propagation_ns, "propagation", "Delay from readout to node, one way.", {.unit = kTime}),
              }),
  };
}

Settings<Scenario> traffic_table() {
  using T = Traffic;
  return {setting(
      &Scenario::traffic,
      {
          setting(&T::event_bytes, "event_size", "Payload of a whole event, all readouts together.", {.unit = kBytes}),
          setting(&T::event_rate_hz, "rate", "Events of one rack.", {.minimum = 0, .unit = kHertz}),
          setting(&T::arrivals, "arrivals",
                  {{"periodic", Arrivals::periodic}, {"jittered", Arrivals::jittered}, {"poisson", Arrivals::poisson}},
                  "Times of events: at even intervals, at such intervals with jitter, or at random."),
          setting(&T::jitter_periods, "jitter_periods", "Jittered arrivals: uniform in +- this many periods.",
                  {.minimum = 0}),
          setting(&T::assignment, "assignment",
                  {{"round-robin", Assignment::round_robin},
                   {"random", Assignment::random},
                   {"least-loaded", Assignment::least_loaded}},
                  "Which node gets an event."),
          setting(&T::size_spread, "size_spread",
                  {{"fixed", SizeSpread::fixed}, {"normal", SizeSpread::normal}, {"log-normal", SizeSpread::log_normal}},
                  "Distribution of event sizes around `event_size`."),
          setting(&T::size_sigma, "size_sigma", "Standard deviation of event sizes, relative to the mean.", {.minimum = 0}),
          setting(&T::mtu_bytes, "mtu", "Largest IP packet: 1500, or 9000 for jumbo frames."),
          setting(
              &T::ethernet_bytes, "ethernet_overhead",
              "What Ethernet adds to a packet, on links and in buffers: 14 for its header, 38 with preamble, check sequence "
              "and gap.",
              {.unit = kBytes}),
          setting(&T::request_bytes, "request_size", "Payload of a request.", {.unit = kBytes}),
          setting(&T::events_in_flight, "events_in_flight",
                  "Events that a node may have, from assignment to the end of processing; 0: no limit."),
          setting(&T::request_gap_ns, "request_gap", "Pacing: least time between two requests of a node.", {.unit = kTime}),
          setting(&T::request_credits, "request_credits",
                  "Fragments that a node may have requested and not received; 0: no limit."),
          setting(&T::processing_ns, "processing", "Time that a node works on a complete event.", {.unit = kTime}),
          setting(&T::processing_exponential, "processing_exponential",
                  "Whether `processing` is the mean of an exponential distribution."),
          setting(&T::node_service_hz, "node_service", "Events that a node can accept, one after another; 0: no limit.",
                  {.minimum = 0, .unit = kHertz}),
          setting(&T::readout_service_hz, "readout_service",
                  "Requests that a readout can answer, one after another; 0: no limit.", {.minimum = 0, .unit = kHertz}),
          setting(&T::readout_response_ns, "readout_response",
                  "Time from a request to its answer, in addition to `readout_service`.", {.unit = kTime}),
          setting(&T::readout_jitter_ns, "readout_jitter",
                  "Random addition to `readout_response`, uniform from 0 to this: readouts differ in speed, in a changing "
                  "order.",
                  {.unit = kTime}),
      })};
}

Settings<Scenario> switch_table() {
  using S = SwitchBuffer;
  return {
      preset<S>(
          "switch", "Switch that the other keys change. plain has an infinite buffer that counts bytes.",
          {"plain", "qfx5120", "acx7100"}, &Scenario::buffer,
          [](std::string_view name) { return name == "plain" ? S{} : need(switch_preset(name)); },
          [](const S& buffer) -> std::string {
            return buffer.virtual_output_queues ? "acx7100" : buffer.cell_bytes != 0 ? "qfx5120" : "plain";
          }),
      setting(
          &Scenario::buffer,
          {
              size_or("infinite", &S::shared_bytes, "buffer", "Memory shared by all ports, or infinite."),
              setting(&S::dedicated_bytes_per_port, "dedicated",
                      "Memory of each port alone, in addition to the shared memory.", {.unit = kBytes}),
              setting(&S::dynamic_threshold, "dynamic_threshold",
                      "A port may hold this many times the free shared memory; 0: no threshold.", {.minimum = 0}),
              size_or("none", &S::port_limit_bytes, "port_limit", "The most memory that one port may hold, or none."),
              setting(&S::cell_bytes, "cell", "Memory is allocated in cells of this size; 0: in bytes.", {.unit = kBytes}),
              setting(&S::first_cell_metadata_bytes, "cell_metadata",
                      "Metadata of the switch in the first cell of a packet.", {.unit = kBytes}),
              setting(&S::virtual_output_queues, "virtual_output_queues",
                      "A deep buffer with a queue for each input and output."),
          }),
  };
}

Settings<Scenario> simulation_table() {
  using S = Scenario;
  return {
      setting(&S::engine, "engine", {{"packet", Engine::packet}, {"train", Engine::train}},
              "packet simulates every packet. train moves all segments that a flow sends at once as one object; its results "
              "agree within 0.5 %, and it is much faster if no connection waits. If connections wait for their windows, a "
              "node has several events at once (random assignment at high load), or packets are lost, train simulates every "
              "packet, too, and gains nothing."),
      setting(&S::tcp, {setting(&TcpSettings::control, "tcp",
                                {{"none", CongestionControl::none},
                                 {"reno", CongestionControl::reno},
                                 {"cubic", CongestionControl::cubic}},
                                "Congestion control; none sends fragments at once, without retransmission.")}),
      setting(&S::duration_ns, "duration", "Virtual time of a run.", {.unit = kTime}),
      setting(&S::seed, "seed", "Seed of everything random."),
  };
}

Settings<Scenario> tcp_table() {
  using T = TcpSettings;
  return {setting(
      &Scenario::tcp,
      {
          setting(
              &T::warm, "warm",
              "Connections have been in use: their windows hold two mean fragments. Otherwise they are new at the start."),
          setting(&T::initial_window, "initial_window", "Segments that a new connection may send."),
          setting(&T::window_limit_bytes, "receive_window", "Largest window.", {.unit = kBytes}),
          setting(&T::slow_start_after_idle, "slow_start_after_idle",
                  "Whether a window shrinks while a connection is idle."),
          setting(&T::tail_loss_probe, "tail_loss_probe", "Whether the last segment is sent again before the time-out."),
          setting(&T::hystart, "hystart", "Whether cubic leaves slow start when delays grow."),
          setting(&T::segments_per_ack, "segments_per_ack", "Segments for one acknowledgement."),
          setting(&T::delayed_ack_ns, "delayed_ack", "Longest wait of an acknowledgement for these segments.",
                  {.unit = kTime}),
          setting(
              &T::timer_tick_ns, "timer_tick",
              "Resolution of the sender's timers, which expire at the next tick but one: 4 ms where CONFIG_HZ is 250; 0: "
              "exact.",
              {.unit = kTime}),
          setting(&T::rto_min_ns, "rto_min", "Shortest retransmission time-out.", {.unit = kTime}),
          setting(&T::rto_initial_ns, "rto_initial", "Time-out before there is a round-trip time.", {.unit = kTime}),
          setting(&T::rto_max_ns, "rto_max", "Longest time-out, after repeated ones.", {.unit = kTime}),
      })};
}

}  // namespace

std::span<const ScenarioSetting> scenario_settings() {
  static const std::vector<ScenarioSetting> all = [] {
    std::vector<ScenarioSetting> joined;
    for (const auto& [table, settings] : {std::pair{"topology", topology_table()},
                                          {"traffic", traffic_table()},
                                          {"switch", switch_table()},
                                          {"simulation", simulation_table()},
                                          {"tcp", tcp_table()}}) {
      for (const Setting<Scenario>& one : settings.list()) joined.push_back({one, table});
    }
    return joined;
  }();
  return all;
}

const ScenarioSetting* find_scenario_setting(std::string_view name) {
  const auto all = scenario_settings();
  const auto found = std::ranges::find(all, name, [](const ScenarioSetting& one) { return one.key.name; });
  return found == all.end() ? nullptr : &*found;
}

std::string ScenarioSetting::text(const Scenario& scenario) const { return settings::base_text(key.type, get(scenario)); }

std::string ScenarioSetting::readable(const Scenario& scenario) const {
  std::string base = text(scenario);
  double number = 0;
  if (std::from_chars(base.data(), base.data() + base.size(), number).ec != std::errc{} || !std::isfinite(number))
    return base;  // the text is a word, not a size
  if (is_bit_rate()) return base::format_quantity(number, "bps");
  switch (key.type) {
    case KeyType::text:
    case KeyType::size: return base::format_size(static_cast<std::uint64_t>(number));
    case KeyType::rate: return base::format_quantity(number, "Hz");
    case KeyType::duration: {
      std::string text = setting_text(key.type, get(scenario));
      return text.insert(text.find_first_not_of("0123456789"), " ");
    }
    default: return base;
  }
}

std::string_view ScenarioSetting::value_name() const {
  if (is_bit_rate()) return "BITRATE";
  switch (key.type) {
    case KeyType::boolean: return "true|false";
    case KeyType::integer: return "N";
    case KeyType::real: return "NUMBER";
    case KeyType::rate: return "RATE";
    case KeyType::duration: return "TIME";
    case KeyType::choice: return "NAME";
    default: return "SIZE";
  }
}

Result<void> ScenarioSetting::assign(Scenario& scenario, std::string_view text) const {
  settings::RawValue word;
  word.kind = settings::RawValue::Kind::word;
  word.text = text;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool bare = error == std::errc{} && end == text.data() + text.size();
  if (key.type == KeyType::duration && bare) word.text += 's';
  // An unknown preset has a more precise error of its own.
  Result<Parameters::Value> value = std::string(text);
  if (!is_preset()) value = settings::convert_value(key, word, key.name, {});
  if (!value) {
    value.error().code = "network.bad_setting";
    return std::unexpected(std::move(value.error()));
  }
  Parameters parameters;
  parameters.set(key.name, *std::move(value));
  try {
    set(scenario, parameters);
  } catch (const SetupError& refused) {
    return std::unexpected(refused.error().within(key.name));
  }
  return {};
}

Result<Scenario> scenario_of(const NamedTexts& given) {
  Scenario scenario;
  for (const bool presets : {true, false}) {
    for (const auto& [name, text] : given) {
      const ScenarioSetting* setting = find_scenario_setting(name);
      if (setting == nullptr) {
        std::vector<std::string> known;
        for (const ScenarioSetting& one : scenario_settings()) known.push_back(one.key.name);
        return std::unexpected(Error{"network.unknown_setting", fmt::format("{} is not a setting of a network", name), "",
                                     base::did_you_mean(name, known)});
      }
      if (setting->is_preset() != presets) continue;
      RODEO_TRY(setting->assign(scenario, text));
    }
  }
  return scenario;
}

}  // namespace rodeo::network
