// Sequences of events for `rodeo net formula`: generated from a seed, or read from a user's file.
#pragma once

#include "cli/command.h"
#include "network/formula/closed_forms.h"
#include "network/formula/superposition.h"

namespace rodeo::cli {

struct ArrivalOptions {
  std::string kind;  ///< periodic, jittered, poisson, or a file; empty: no superposition
  double jitter_periods = 0.5;
  std::uint64_t events = 0;  ///< 0: chosen automatically
  std::uint64_t seed = 1;

  bool wanted() const { return !kind.empty(); }
};

struct Arrived {
  double max_bytes = 0;
  std::uint64_t events = 0;
  std::string what;  ///< "poisson, seed 3"
  Json json;
  std::vector<network::OccupancyPoint> points;  ///< corners of the sum, for a figure
};

void add_arrival_options(Command& verb, ArrivalOptions& options);

/// Superposes the events of the sequence. Errors: network.bad_sequence, network.zero, cli.bad_value.
Result<Arrived> superpose_arrivals(const ArrivalOptions& options, const network::FormulaInput& input,
                                   const network::ClosedForms& forms);

}  // namespace rodeo::cli
