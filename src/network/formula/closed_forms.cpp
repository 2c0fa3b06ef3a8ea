#include "network/formula/closed_forms.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace rodeo::network {

namespace {

/// Products of decimal numbers differ from whole numbers by a few ulp: S f/O = 24 must not give 25 events.
constexpr double kRounding = 1e-9;

double sum_of(double events, double event_bytes, double kept_fraction, double output, double rate_hz) {
  return events * (kept_fraction * event_bytes - (events - 1) / 2 * output / rate_hz);
}

Result<void> check(const FormulaInput& input) {
  struct Number {
    double value;
    const char* name;
    const char* next;
  };
  for (const Number& number : {Number{input.event_bytes, "the event size", "give a size above 0, for example 5MB"},
                               Number{input.event_rate_hz, "the event rate", "give a rate above 0, for example 12kHz"},
                               Number{input.input_bps, "the input rate", "give a bit rate above 0, for example 800Gbps"},
                               Number{input.output_bps, "the output rate", "give a bit rate above 0, for example 25Gbps"},
                               Number{static_cast<double>(input.ports), "the number of ports", "give at least 1"}}) {
    if (!(number.value > 0) || !std::isfinite(number.value)) {
      return std::unexpected(
          Error{"network.zero", fmt::format("{} is {}, which is impossible", number.name, number.value), "", number.next});
    }
  }
  return {};
}

/// All events arrive one after another at rate I: when the last has arrived, the j-th event before it has S(1 - j O/I) left.
double back_to_back(double event_bytes, double ratio) {
  const double live = std::floor(ratio * (1 + kRounding));
  return event_bytes * (live - live * (live + 1) / (2 * ratio));
}

}  // namespace

Result<ClosedForms> closed_forms(const FormulaInput& input) {
  RODEO_TRY(check(input));
  const double size = input.event_bytes;
  const double rate = input.event_rate_hz;
  const double in = input.input_bps / 8;
  const double out = input.output_bps / 8;
  const double ports = input.ports;
  const double kept = (in - out) / in;
  const double ratio = in / out;
  const double demand = size * rate / out;  // in units of output links

  ClosedForms forms;
  forms.uplink_load = size * rate / in;
  forms.port_load = demand / ports;
  const double published = std::ceil(demand * (1 - kRounding)) + 1;
  forms.paper_events = static_cast<std::uint64_t>(published);
  forms.paper_bytes = sum_of(published, size, kept, out, rate);

  const bool queues = in > out;
  const bool fills_apart = forms.uplink_load <= 1 + kRounding;
  const bool ports_keep_up = forms.port_load <= 1 + kRounding;
  const bool published_holds = in > (published - 1) * out;
  const bool enough_ports = ports >= ratio * (1 - kRounding);
  forms.valid = queues && fills_apart && ports_keep_up;
  forms.paper_valid = forms.valid && published_holds && forms.paper_bytes >= 0;

  const bool overload = !fills_apart || !ports_keep_up;
  if (!queues && !overload) {
    forms.exact_bytes = 0;
  } else if (!overload) {
    const double live = std::floor(kept * demand * (1 + kRounding)) + 1;
    forms.overlapping_events = static_cast<std::uint64_t>(live);
    forms.exact_bytes = sum_of(live, size, kept, out, rate);
  }
  if (!queues) {
    forms.bound_bytes = 0;
  } else if (enough_ports) {
    forms.bound_bytes = back_to_back(size, ratio);
  }

  const double demand_gbps = size * rate * 8e-9;
  forms.conditions = {
      {"uplink_faster", queues,
       fmt::format("the uplink ({:g} Gb/s) is faster than one port ({:g} Gb/s)", input.input_bps * 1e-9,
                   input.output_bps * 1e-9)},
      {"fills_apart", fills_apart,
       fmt::format("S f <= I: events ask for {:.4g} Gb/s of the uplink's {:g}", demand_gbps, input.input_bps * 1e-9)},
      {"ports_keep_up", ports_keep_up,
       fmt::format("S f <= M O: events ask for {:.4g} Gb/s of the {} ports' {:g}", demand_gbps, input.ports,
                   ports * input.output_bps * 1e-9)},
      {"paper_condition", published_holds,
       fmt::format("I > (N-1) O as printed: {:g} > {:g} Gb/s", input.input_bps * 1e-9,
                   (published - 1) * input.output_bps * 1e-9)},
      {"paper_not_negative", forms.paper_bytes >= 0,
       overload
           ? fmt::format("the published form gives {:.4g} MB, which has no meaning under overload", forms.paper_bytes * 1e-6)
           : fmt::format("the published form gives {:.4g} MB: it counts N = {:.0f} events where {} are live",
                         forms.paper_bytes * 1e-6, published, forms.overlapping_events)},
      {"enough_ports_for_bound", enough_ports, fmt::format("M >= I/O: {} ports, I/O = {:g}", input.ports, ratio)},
  };
  if (!ports_keep_up) {
    forms.why = fmt::format("overload: events ask for {:.4g} Gb/s, {} ports carry {:g}; no buffer is large enough",
                            demand_gbps, input.ports, ports * input.output_bps * 1e-9);
    if (forms.bound_bytes) {
      forms.why = fmt::format(
          "overload: events ask for {:.4g} Gb/s, uplink and {} ports carry {:g}; the switch holds no more than "
          "the bound, the data that wait before it grow without limit",
          demand_gbps, input.ports, std::min(input.input_bps, ports * input.output_bps) * 1e-9);
    }
  } else if (!fills_apart) {
    forms.why = fmt::format(
        "overload: events ask for {:.4g} Gb/s, the uplink carries {:g}; the data that wait before it grow without limit",
        demand_gbps, input.input_bps * 1e-9);
  } else if (!queues) {
    forms.why = "a port is as fast as the uplink: nothing queues, and the published form has no meaning";
  } else if (!published_holds) {
    forms.why = "exact and bound hold; the published form's own condition, I > (N-1) O, does not: take the exact one";
  } else if (forms.paper_bytes < 0) {
    forms.why =
        "exact and bound hold; the published form is negative, because it counts events that have drained: take the exact "
        "one";
  } else {
    forms.why =
        "for events of one size at even intervals over ports in turn; jitter, spread of sizes and random ports need more";
  }
  return forms;
}

Result<std::optional<double>> highest_rate_hz(const FormulaInput& input, double buffer_bytes) {
  FormulaInput probe = input;
  probe.event_rate_hz = 1;
  RODEO_TRY(check(probe));
  const double limit = std::min(input.input_bps, input.ports * input.output_bps) / 8 / input.event_bytes;
  const auto need = [&](double rate) {
    probe.event_rate_hz = rate;
    return *closed_forms(probe)->exact_bytes;
  };
  // A single event needs (I-O)/I S at any rate.
  if (std::max(0.0, (1 - input.output_bps / input.input_bps) * input.event_bytes) > buffer_bytes)
    return std::optional<double>{};
  double high = limit * (1 - 1e-12);
  if (need(high) <= buffer_bytes) return std::optional<double>{limit};
  double low = 0;
  for (int i = 0; i < 100; ++i) {  // the exact form rises continuously with the rate
    const double middle = (low + high) / 2;
    (need(middle) <= buffer_bytes ? low : high) = middle;
  }
  return std::optional<double>{low};
}

}  // namespace rodeo::network
