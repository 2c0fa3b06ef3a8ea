// The largest occupancy of a switch that gathers events, in closed form: the published form (network paper, section 3.3),
// the corrected one, and a bound for arrivals of any kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::network {

/// The arguments of all forms. Bytes and rates are those on the wire.
struct FormulaInput {
  double event_bytes = 5e6;     ///< S
  double event_rate_hz = 12e3;  ///< f, for one switch
  double input_bps = 800e9;     ///< I
  double output_bps = 25e9;     ///< O, rate of one port
  std::uint32_t ports = 32;     ///< M
};

/// An assumption of a form, and whether it holds here.
struct Condition {
  std::string name;
  bool holds = false;
  std::string says;  ///< the condition with its numbers
};

struct ClosedForms {
  /// N[((I-O)/I) S - (N-1)/2 O/f] with N = ceil(S f/O) + 1, as printed. Up to two of the N events have already drained and
  /// count negative, so the result is too low; at small load it is much too low.
  double paper_bytes = 0;
  std::uint64_t paper_events = 0;  ///< N
  /// The same sum over the n = floor((I-O)/I S f/O) + 1 events in the buffer at the moment when one has arrived: equal to
  /// the superposition. No value under overload.
  std::optional<double> exact_bytes;
  std::uint64_t overlapping_events = 0;  ///< n
  /// A bound for any times of arrival: events of this size arrive one after another at rate I, for M >= I/O ports served
  /// round-robin or least-loaded, without retransmission. S(I/O - 1)/2 for whole I/O. No value for fewer ports, because one
  /// port can hold any number of events.
  std::optional<double> bound_bytes;

  double uplink_load = 0;    ///< S f / I
  double port_load = 0;      ///< S f / (M O)
  bool valid = false;        ///< fills do not overlap, ports are fast enough, and there is a queue
  bool paper_valid = false;  ///< true if `valid`, I > (N-1) O as printed, and the result is not negative
  std::string why;           ///< the first assumption that does not hold; if all assumptions hold, the limits of the numbers
  std::vector<Condition> conditions;
};

/// Errors: network.zero (a number that is not above 0, or not finite).
Result<ClosedForms> closed_forms(const FormulaInput& input);

/// The highest rate at which a buffer of `buffer_bytes` holds all events by the exact form; nothing if not even one event
/// fits. The result is at most the rate that uplink and ports carry. Errors as for closed_forms(); event_rate_hz is not
/// used.
Result<std::optional<double>> highest_rate_hz(const FormulaInput& input, double buffer_bytes);

}  // namespace rodeo::network
