// `rodeo net formula`: the published formula, the corrected formula, the bound for any arrivals, and the superposition of a
// sequence.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/net.h"
#include "cli/net_arrivals.h"
#include "cli/python.h"
#include "network/formula/closed_forms.h"
#include "network/formula/wire.h"

namespace rodeo::cli {
namespace {

using network::ClosedForms;
using network::FormulaInput;

struct NetFormulaOptions {
  std::uint64_t event_bytes = 5'000'000;
  FormulaInput input;
  std::optional<std::uint32_t> mtu;
  std::uint32_t readouts = 1;
  double k = 1.5;
  ArrivalOptions arrivals;
  OutputFormat format = OutputFormat::table;
  std::string json;
  std::string plot;
};

Json bytes_or_null(const std::optional<double>& bytes) { return bytes ? Json(*bytes) : Json(); }

Json json_of(const NetFormulaOptions& options, const ClosedForms& forms, const std::optional<Arrived>& arrived) {
  Json conditions = Json::array();
  for (const network::Condition& condition : forms.conditions) {
    conditions.push_back(Json::object({{"name", condition.name}, {"holds", condition.holds}, {"says", condition.says}}));
  }
  Json out = Json::object({{"event_size_bytes", options.event_bytes},
                           {"event_rate_hz", options.input.event_rate_hz},
                           {"paper_bytes", forms.paper_bytes},
                           {"exact_bytes", bytes_or_null(forms.exact_bytes)},
                           {"bound_bytes", bytes_or_null(forms.bound_bytes)},
                           {"overlapping_events", forms.overlapping_events},
                           {"k_bytes", options.k * forms.paper_bytes},
                           {"valid", forms.valid},
                           {"why", forms.why},
                           {"k", options.k},
                           {"paper_events", forms.paper_events},
                           {"paper_valid", forms.paper_valid},
                           {"event_wire_bytes", options.input.event_bytes},
                           {"mtu_bytes", options.mtu ? Json(*options.mtu) : Json()},
                           {"input_bps", options.input.input_bps},
                           {"output_bps", options.input.output_bps},
                           {"ports", options.input.ports},
                           {"uplink_load", forms.uplink_load},
                           {"port_load", forms.port_load},
                           {"conditions", std::move(conditions)}});
  if (arrived) out["superposition"] = arrived->json;
  return out;
}

void print_table(const NetFormulaOptions& options, const ClosedForms& forms, const std::optional<Arrived>& arrived) {
  Table table(
      {{"buffer", "form"}, {"size [MB]", "size_mb"}, {"size [MiB]", "size_mib"}, {"events", "events"}, {"", "remark"}});
  const auto row = [&](const char* name, std::optional<double> bytes, Cell events, std::string remark) {
    const auto shown = [&](double unit) { return bytes ? fmt::format("{:.2f}", *bytes / unit) : std::string("-"); };
    const auto value = [&](double unit) { return bytes ? Json(*bytes / unit) : Json(); };
    table.add_row(
        {name, Cell(value(1e6), shown(1e6)), Cell(value(1048576), shown(1048576)), std::move(events), std::move(remark)});
  };
  row("paper's formula", forms.paper_bytes, forms.paper_events,
      forms.paper_valid ? "as printed" : "as printed; not valid here");
  row("exact, even intervals", forms.exact_bytes, forms.overlapping_events,
      forms.exact_bytes ? "one event size" : "none: overload");
  row("bound, any arrivals", forms.bound_bytes, Cell(Json(), "-"),
      forms.bound_bytes ? "one event size, ports in turn or least loaded" : "none: fewer ports than I/O");
  row("paper's formula x k", options.k * forms.paper_bytes, forms.paper_events, fmt::format("k = {:g}", options.k));
  if (arrived) row("superposition", arrived->max_bytes, arrived->events, arrived->what);
  table.print(OutputFormat::table);
  print_folded(fmt::format("\nS = {:.4f} MB {}; f = {:g} kHz; I = {:g} Gb/s; O = {:g} Gb/s; M = {}\n",
                           options.input.event_bytes * 1e-6,
                           options.mtu ? fmt::format("on the wire ({:.4f} MB of data, MTU {})",
                                                     static_cast<double>(options.event_bytes) * 1e-6, *options.mtu)
                                       : std::string("as given, without headers (--mtu adds them)"),
                           options.input.event_rate_hz * 1e-3, options.input.input_bps * 1e-9,
                           options.input.output_bps * 1e-9, options.input.ports));
  for (const network::Condition& condition : forms.conditions) {
    print_folded(fmt::format("{} {}\n", condition.holds ? "holds  " : "FAILS  ", condition.says));
  }
  print_folded(fmt::format("{}: {}\n", forms.valid ? "valid" : "NOT VALID", forms.why));
}

/// Draws with Python, which reads the numbers from a temporary file.
Result<ExitCode> draw(const NetFormulaOptions& options, const Json& json, const std::optional<Arrived>& arrived) {
  Json points = Json::array();
  // Draw the beginning only, about a hundred events.
  const std::size_t most = 20'000;
  if (arrived) {
    for (std::size_t i = 0; i < std::min(most, arrived->points.size()); ++i) {
      Json point = Json::array();
      point.push_back(arrived->points[i].time_s);
      point.push_back(arrived->points[i].bytes);
      points.push_back(std::move(point));
    }
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "rodeo-formula-XXXXXX").string();
  const int descriptor = mkstemp(pattern.data());
  if (descriptor < 0) return std::unexpected(Error{"cli.output", "cannot make a temporary file", pattern});
  close(descriptor);
  auto written = write_json(pattern, Json::object({{"formula", json}, {"points", std::move(points)}}));
  Result<ExitCode> drawn = ExitCode::done;
  if (!written) {
    drawn = std::unexpected(written.error());
  } else {
    drawn = run_python("rodeo.network", {"occupancy", "--job", pattern, "--out", options.plot});
  }
  std::filesystem::remove(pattern);
  return drawn;
}

Result<ExitCode> formula(NetFormulaOptions& options) {
  options.input.event_bytes = static_cast<double>(options.event_bytes);
  if (options.mtu) {
    const auto wire = RODEO_TRY(network::wire_size(options.event_bytes, *options.mtu, options.readouts));
    options.input.event_bytes = static_cast<double>(wire.wire_bytes);
  }
  if (!(options.k > 0) || !std::isfinite(options.k)) {
    return std::unexpected(Error{"network.zero", fmt::format("k is {}", options.k), "--k",
                                 "1 is the formula without the factor; the paper uses 1.5"});
  }
  const auto forms = RODEO_TRY(network::closed_forms(options.input));
  std::optional<Arrived> arrived;
  if (options.arrivals.wanted()) arrived = RODEO_TRY(superpose_arrivals(options.arrivals, options.input, forms));
  const Json json = json_of(options, forms, arrived);
  if (!options.plot.empty()) {
    if (const auto drawn = draw(options, json, arrived); !drawn || *drawn != ExitCode::done) return drawn;
  }
  RODEO_TRY(show(json, options.json, options.format, [&] { print_table(options, forms, arrived); }));
  return ExitCode::done;
}

}  // namespace

void add_net_formula(Command& net) {
  auto options = std::make_shared<NetFormulaOptions>();
  Command& verb = net.verb(
      "formula", "Computes closed forms (as published, exact, bound for any arrivals) and the superposition of a sequence");
  verb.example("rodeo net formula --event-size 5MB --rate 12kHz", "the operating point of the network paper")
      .example("rodeo net formula --event-size 5MB --rate 12kHz --mtu 1500 --json -", "with packet headers, for programs")
      .example("rodeo net formula --arrivals poisson --seed 3", "a sequence of Poisson arrivals, summed by brute force")
      .example("rodeo net formula --arrivals poisson --plot buffer.png",
               "occupancy against time, with the closed forms as lines")
      .example("rodeo net formula --arrivals trace.csv",
               "your own sequence: start in seconds[,bytes[,port]], one event a line");
  verb.size("--event-size", options->event_bytes, "Size of a whole event, from all readouts together (S)");
  verb.rate("--rate", options->input.event_rate_hz, "Event rate of this switch (f)");
  verb.bit_rate("--uplink", options->input.input_bps, "Uplink of the switch, all its links together (I)")
      .renamed_from("--input");
  verb.bit_rate("--node-link", options->input.output_bps, "Link from the switch to one node (O)").renamed_from("--output");
  verb.option("--nodes", options->input.ports, "Nodes on the switch (M)").renamed_from("--ports");
  verb.option("--mtu", options->mtu,
              "Add Ethernet, IP and TCP headers of packets of this MTU to the size (default: no headers)");
  verb.option("--readouts", options->readouts, "With --mtu: answers for one event; the last packet of each is rarely full");
  verb.option("--k", options->k, "Empirical factor of the paper; its result has its own line");
  add_arrival_options(verb, options->arrivals);
  verb.output(options->format, "-o");  // --output was a bit rate
  verb.json_file(options->json);
  verb.option("--plot", options->plot, "Draw occupancy against time to this file, ending in .png, .svg or .pdf")
      .value_name("FILE");
  verb.paragraph(
      "valid is false if a premise of the closed forms does not hold (overload, no queue). The exit status is 0 also then, "
      "and every premise is listed. MB are 10^6 bytes, MiB 2^20.");
  verb.run([options] { return formula(*options); });
}

}  // namespace rodeo::cli
