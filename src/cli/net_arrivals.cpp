#include "cli/net_arrivals.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include <fmt/format.h>

namespace rodeo::cli {
namespace {

using network::Burst;

/// The limit of the superposition; use the simulator for more events.
constexpr std::uint64_t kMostEvents = 5'000'000;

Error bad_line(const std::string& file, std::size_t line, std::string_view why) {
  return Error{"network.bad_sequence", std::string(why), fmt::format("{}:{}", file, line),
               "START_SECONDS[,BYTES[,PORT]], one event a line"};
}

/// Reads the fields of one line as numbers. Returns their count; 0 if a field is not a number.
std::size_t numbers(std::string_view line, double (&values)[3]) {
  std::size_t count = 0;
  while (count < 3) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), values[count]);
    if (error != std::errc{}) return 0;
    ++count;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t' || line.front() == '\r')) line.remove_prefix(1);
    if (line.empty()) return count;
    if (line.front() != ',') return 0;
    line.remove_prefix(1);
  }
  return 0;
}

Result<std::vector<Burst>> read_bursts(const std::string& file, const network::FormulaInput& input) {
  std::ifstream in(file);
  if (!in)
    return std::unexpected(
        Error{"cli.bad_value", "cannot read the sequence of events", file, "name a file, or periodic, jittered or poisson"});
  std::vector<Burst> bursts;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    double values[3] = {0, input.event_bytes, static_cast<double>(bursts.size() % input.ports)};
    if (numbers(line, values) == 0) {
      if (number == 1) continue;  // a heading
      return std::unexpected(bad_line(file, number, "the line is not START_SECONDS[,BYTES[,PORT]]"));
    }
    if (!(values[2] >= 0) || values[2] >= input.ports) {
      return std::unexpected(
          bad_line(file, number, fmt::format("port {:g} of {}: ports count from 0", values[2], input.ports)));
    }
    if (bursts.size() == kMostEvents)
      return std::unexpected(bad_line(file, number, fmt::format("more than {} events", kMostEvents)));
    bursts.push_back({values[0], values[1], static_cast<std::uint32_t>(values[2])});
  }
  if (bursts.empty()) return std::unexpected(Error{"network.bad_sequence", "the sequence has no event", file});
  return bursts;
}

}  // namespace

void add_arrival_options(Command& verb, ArrivalOptions& options) {
  verb.option("--arrivals", options.kind, "Superpose also a sequence of events: periodic, jittered, poisson, or a file")
      .value_name("KIND|FILE");
  verb.option("--jitter-periods", options.jitter_periods, "For jittered arrivals: uniform within +- this many periods")
      .renamed_from("--jitter");
  verb.option("--events", options.events, "Length of a sequence; 0: ten thousand, and at least enough to fill the switch");
  verb.option("--seed", options.seed, "Seed of jittered and Poisson arrivals");
}

Result<Arrived> superpose_arrivals(const ArrivalOptions& options, const network::FormulaInput& input,
                                   const network::ClosedForms& forms) {
  network::SequenceSettings settings{.event_bytes = input.event_bytes,
                                     .event_rate_hz = input.event_rate_hz,
                                     .ports = input.ports,
                                     .jitter_periods = options.jitter_periods,
                                     .seed = options.seed};
  settings.events = options.events != 0 ? options.events : std::max<std::uint64_t>(10'000, 20 * forms.paper_events);
  std::vector<Burst> bursts;
  std::string what = options.kind;
  if (const auto kind = network::arrivals_of(options.kind)) {
    if (settings.events > kMostEvents) {
      return std::unexpected(Error{"network.bad_sequence",
                                   fmt::format("{} events are more than {}", settings.events, kMostEvents), "--events",
                                   "use rodeo net simulate"});
    }
    if (!(options.jitter_periods >= 0 && options.jitter_periods <= 1e6)) {
      return std::unexpected(Error{"network.bad_sequence", fmt::format("a jitter of {} periods", options.jitter_periods),
                                   "--jitter-periods", "give 0 or more periods, for example 0.5"});
    }
    settings.arrivals = *kind;
    bursts = network::make_bursts(settings);
    if (options.kind != "periodic") what += fmt::format(", seed {}", options.seed);
  } else {
    bursts = RODEO_TRY(read_bursts(options.kind, input));
  }
  const auto sum = RODEO_TRY(network::superpose(
      bursts, {.input_bps = input.input_bps, .output_bps = input.output_bps, .ports = input.ports, .keep_points = true}));
  Arrived arrived{.max_bytes = sum.max_bytes, .events = bursts.size(), .what = what, .json = {}, .points = sum.points};
  arrived.json = Json::object({{"arrivals", what},
                               {"events", bursts.size()},
                               {"max_bytes", sum.max_bytes},
                               {"max_port_bytes", sum.max_port_bytes},
                               {"last_drained_s", sum.last_drained_s}});
  return arrived;
}

}  // namespace rodeo::cli
