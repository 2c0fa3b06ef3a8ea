// rodeo._network: closed forms, superposition and simulator for Python. Users import rodeo.network.
#include "network.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "base/units.h"
#include "errors.h"
#include "network/formula/closed_forms.h"
#include "network/formula/superposition.h"
#include "network/formula/wire.h"

namespace rodeo::python {
namespace {

using Column = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PortColumn = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object or_none(const std::optional<double>& value) {
  return value ? nb::object(nb::float_(*value)) : nb::object(nb::none());
}

nb::dict closed_forms(double event_bytes, double event_rate_hz, double input_bps, double output_bps, std::uint32_t ports) {
  const auto forms = unwrap(network::closed_forms({event_bytes, event_rate_hz, input_bps, output_bps, ports}));
  nb::dict out;
  out["paper_bytes"] = forms.paper_bytes;
  out["exact_bytes"] = or_none(forms.exact_bytes);
  out["bound_bytes"] = or_none(forms.bound_bytes);
  out["overlapping_events"] = forms.overlapping_events;
  out["paper_events"] = forms.paper_events;
  out["valid"] = forms.valid;
  out["paper_valid"] = forms.paper_valid;
  out["why"] = forms.why;
  out["uplink_load"] = forms.uplink_load;
  out["port_load"] = forms.port_load;
  nb::dict conditions;
  for (const network::Condition& condition : forms.conditions) conditions[condition.name.c_str()] = condition.holds;
  out["conditions"] = conditions;
  return out;
}

nb::object highest_rate(double event_bytes, double input_bps, double output_bps, std::uint32_t ports, double buffer_bytes) {
  return or_none(unwrap(network::highest_rate_hz({event_bytes, 1, input_bps, output_bps, ports}, buffer_bytes)));
}

nb::dict superpose(Column start_s, Column bytes, PortColumn port, double input_bps, double output_bps, std::uint32_t ports,
                   bool one_uplink) {
  if (bytes.shape(0) != start_s.shape(0) || port.shape(0) != start_s.shape(0)) {
    throw nb::value_error("start_s, bytes and port must be of one length");
  }
  std::vector<network::Burst> bursts(start_s.shape(0));
  for (std::size_t i = 0; i < bursts.size(); ++i) bursts[i] = {start_s(i), bytes(i), port(i)};
  Result<network::Superposition> sum;
  {
    nb::gil_scoped_release released;
    sum = network::superpose(
        bursts,
        {.input_bps = input_bps, .output_bps = output_bps, .ports = ports, .one_uplink = one_uplink, .keep_points = true});
  }
  const auto found = unwrap(std::move(sum));
  std::vector<double> times;
  std::vector<double> held;
  for (const network::OccupancyPoint& point : found.points) {
    times.push_back(point.time_s);
    held.push_back(point.bytes);
  }
  nb::dict out;
  out["max_bytes"] = found.max_bytes;
  out["max_port_bytes"] = found.max_port_bytes;
  out["time_s"] = array_of(std::move(times));
  out["occupancy_bytes"] = array_of(std::move(held));
  return out;
}

nb::object bursts(const std::string& arrivals, std::uint64_t events, double event_bytes, double event_rate_hz,
                  std::uint32_t ports, double jitter_periods, std::uint64_t seed) {
  network::SequenceSettings settings{.event_bytes = event_bytes,
                                     .event_rate_hz = event_rate_hz,
                                     .ports = ports,
                                     .jitter_periods = jitter_periods,
                                     .events = events,
                                     .seed = seed};
  settings.arrivals = unwrap(network::arrivals_of(arrivals));
  std::vector<double> starts;
  for (const network::Burst& burst : network::make_bursts(settings)) starts.push_back(burst.start_s);
  return array_of(std::move(starts));
}

double parse(const std::string& text, const std::string& unit) {
  if (unit == "size") return static_cast<double>(unwrap(base::parse_size(text)));
  if (unit == "rate") return unwrap(base::parse_rate_hz(text));
  if (unit == "bit_rate") return unwrap(base::parse_bits_per_second(text));
  if (unit == "duration") return static_cast<double>(unwrap(base::parse_duration(text)).count()) * 1e-9;
  throw nb::value_error("a unit is one of size, rate, bit_rate, duration");
}

}  // namespace

NB_MODULE(_network, module) {
  module.def("closed_forms", &closed_forms, nb::arg("event_bytes"), nb::arg("event_rate_hz"), nb::arg("input_bps"),
             nb::arg("output_bps"), nb::arg("ports"));
  module.def("highest_rate_hz", &highest_rate, nb::arg("event_bytes"), nb::arg("input_bps"), nb::arg("output_bps"),
             nb::arg("ports"), nb::arg("buffer_bytes"));
  module.def("superpose", &superpose, nb::arg("start_s"), nb::arg("bytes"), nb::arg("port"), nb::arg("input_bps"),
             nb::arg("output_bps"), nb::arg("ports"), nb::arg("one_uplink") = true);
  module.def("starts", &bursts, nb::arg("arrivals"), nb::arg("events"), nb::arg("event_bytes"), nb::arg("event_rate_hz"),
             nb::arg("ports"), nb::arg("jitter_periods"), nb::arg("seed"));
  module.def(
      "wire_bytes",
      [](std::uint64_t payload, std::uint32_t mtu, std::uint32_t fragments) {
        return unwrap(network::wire_size(payload, mtu, fragments)).wire_bytes;
      },
      nb::arg("payload_bytes"), nb::arg("mtu_bytes"), nb::arg("fragments") = 1);
  module.def("parse", &parse, nb::arg("text"), nb::arg("unit"));
  add_simulator(module);
}

}  // namespace rodeo::python
