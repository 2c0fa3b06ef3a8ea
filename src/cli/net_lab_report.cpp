#include "cli/net_lab_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "network/formula/closed_forms.h"
#include "network/formula/wire.h"

namespace rodeo::cli {

using namespace network::laboratory;
using network::SwitchBuffer;

namespace {

/// The largest occupancy of periodic events on the wire, in closed form; nothing where it does not hold.
std::optional<double> exact_bytes(const Settings& settings) {
  const auto wire = network::wire_size(settings.traffic.event_bytes, settings.traffic.mtu_bytes, settings.topology.readouts);
  if (!wire) return std::nullopt;
  const auto forms = network::closed_forms({.event_bytes = static_cast<double>(wire->wire_bytes),
                                            .event_rate_hz = settings.traffic.event_rate_hz,
                                            .input_bps = static_cast<double>(settings.topology.uplink_bps),
                                            .output_bps = static_cast<double>(settings.topology.node_link_bps),
                                            .ports = settings.topology.nodes / settings.topology.racks});
  return forms ? forms->exact_bytes : std::nullopt;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename Of>
Json median(const std::vector<Run>& runs, Of of) {
  std::vector<double> values;
  for (const Run& run : runs) {
    if (const std::optional<double> value = of(run)) values.push_back(*value);
  }
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return Json(values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2);
}

Json json_of_run(const Run& run) {
  Json ports = Json::array();
  for (const PortDrops& port : run.ports) ports.push_back(Json::object({{"name", port.name}, {"drops", port.drops}}));
  return Json::object({{"seconds", run.seconds},
                       {"events_scheduled", run.events_scheduled},
                       {"events_requested", run.events_requested},
                       {"events_held", run.events_held},
                       {"events_completed", run.events_completed},
                       {"rate_hz", run.rate_hz},
                       {"latency_p50_us", or_null(run.latency_p50_us)},
                       {"latency_p99_us", or_null(run.latency_p99_us)},
                       {"latency_max_us", or_null(run.latency_max_us)},
                       {"drops", or_null(run.drops)},
                       {"drops_by_reason", run.reasons ? Json::object({{"pool_full", run.reasons->pool_full},
                                                                       {"threshold", run.reasons->threshold},
                                                                       {"port_limit", run.reasons->port_limit}})
                                                       : Json()},
                       {"max_buffer_bytes", or_null(run.max_buffer_bytes)},
                       {"max_buffer_cell_bytes", or_null(run.max_buffer_cell_bytes)},
                       {"retransmits", run.retransmits},
                       {"timeouts", run.timeouts},
                       {"loss_probes", run.loss_probes},
                       {"round_trip_min_us", static_cast<double>(run.smallest_round_trip_ns) * 1e-3},
                       {"request_lateness_p99_us", run.lateness_p99_us},
                       {"request_lateness_max_us", run.lateness_max_us},
                       {"answer_lateness_p99_us", run.answer_lateness_p99_us},
                       {"answer_lateness_max_us", run.answer_lateness_max_us},
                       {"clock_error_us", run.clock_error_us},
                       {"real_time", run.real_time},
                       {"machine_drops", run.disturbance.machine_drops},
                       {"link_drops", run.disturbance.link_drops},
                       {"left_in_pool_bytes", run.disturbance.left_in_pool_bytes},
                       {"started_unix_seconds", run.started_unix_seconds},
                       {"ended_unix_seconds", run.ended_unix_seconds},
                       {"vetoed", !run.veto_reasons.empty()},
                       {"veto_reasons", Json::array_of(run.veto_reasons)},
                       {"ports", std::move(ports)}});
}

std::optional<std::chrono::nanoseconds> round_trip(const LabReport& report) {
  for (const Run& run : report.point.runs) {
    if (run.smallest_round_trip_ns > 0) return std::chrono::nanoseconds(run.smallest_round_trip_ns);
  }
  return std::nullopt;
}

std::chrono::nanoseconds real_round_trip(const LabReport& report) {
  return std::chrono::nanoseconds(2 * report.real.topology.propagation_ns);
}

}  // namespace

std::string buffer_text(const SwitchBuffer& buffer) {
  std::string text = buffer.shared_bytes       ? fmt::format("shared:{}", *buffer.shared_bytes)
                     : buffer.port_limit_bytes ? fmt::format("port:{}", *buffer.port_limit_bytes)
                                               : "infinite";
  if (buffer.dedicated_bytes_per_port != 0) text += fmt::format(", {} of each port", buffer.dedicated_bytes_per_port);
  if (buffer.shared_bytes && buffer.port_limit_bytes) text += fmt::format(", at most {} a port", *buffer.port_limit_bytes);
  if (buffer.dynamic_threshold > 0) text += fmt::format(", alpha {:g}", buffer.dynamic_threshold);
  if (buffer.cell_bytes != 0)
    text += fmt::format(", cells of {} with {} of metadata", buffer.cell_bytes, buffer.first_cell_metadata_bytes);
  return text;
}

Result<SwitchBuffer> parse_buffer(std::string_view text) {
  SwitchBuffer buffer;
  if (text == "infinite") return buffer;
  for (const std::string_view kind : {"shared:", "port:"}) {
    if (!text.starts_with(kind)) continue;
    (kind == "port:" ? buffer.port_limit_bytes : buffer.shared_bytes) =
        RODEO_TRY(base::parse_size(text.substr(kind.size())));
    return buffer;
  }
  return std::unexpected(Error{"cli.bad_value", fmt::format("`{}` is no buffer", text), "--buffer",
                               "write shared:2800kB, port:100kB or infinite"});
}

std::string scaling_text(const LabReport& report) {
  const auto show = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("-");
  };
  const double stretch =
      static_cast<double>(report.settings.traffic.event_bytes) /
      static_cast<double>(report.settings.topology.node_link_bps) /
      (static_cast<double>(report.real.traffic.event_bytes) / static_cast<double>(report.real.topology.node_link_bps));
  std::string text =
      fmt::format("stands for {}: S {}, f {}, B {}; times are {:.4g} x longer here\n", report.real_name,
                  base::format_size(report.real.traffic.event_bytes),
                  base::format_quantity(report.real.traffic.event_rate_hz, "Hz"), buffer_text(report.real.buffer), stretch);
  for (const Group& group : groups(report.settings, round_trip(report), report.real, real_round_trip(report)))
    text += fmt::format("  {:<10} here {:<9} there {:<9} {:<9} {}\n", group.name, show(group.laboratory), show(group.real),
                        group.kept() ? "kept" : "not kept", group.meaning);
  return text;
}

std::string run_line(const Run& run) {
  std::string text =
      fmt::format("{:.4g} events/s, {} of {} complete", run.rate_hz, run.events_completed, run.events_scheduled);
  if (run.latency_p99_us) text += fmt::format(", p99 {:.2f} ms", *run.latency_p99_us * 1e-3);
  if (run.drops) text += fmt::format(", {} drops", *run.drops);
  if (run.max_buffer_bytes) text += fmt::format(", {:.1f} kB at most", static_cast<double>(*run.max_buffer_bytes) * 1e-3);
  if (run.max_buffer_cell_bytes && run.max_buffer_cell_bytes != run.max_buffer_bytes)
    text += fmt::format(" ({:.1f} kB in cells)", static_cast<double>(*run.max_buffer_cell_bytes) * 1e-3);
  text += fmt::format(", {} retransmits, {} time-outs; late by {:.2f} / {:.2f} ms at most (requests / answers)",
                      run.retransmits, run.timeouts, run.lateness_max_us * 1e-3, run.answer_lateness_max_us * 1e-3);
  for (const std::string& reason : run.veto_reasons) text += fmt::format("\n  vetoed: {}", reason);
  return text;
}

Json json_of(const LabReport& report) {
  const Settings& settings = report.settings;
  const auto& runs = report.point.runs;
  Json scaling = Json::array();
  for (const Group& group : groups(settings, round_trip(report), report.real, real_round_trip(report)))
    scaling.push_back(Json::object({{"group", group.name},
                                    {"laboratory", or_null(group.laboratory)},
                                    {"real", or_null(group.real)},
                                    {"kept", group.kept()}}));
  Json all = Json::array();
  for (const Run& run : runs) all.push_back(json_of_run(run));
  Json vetoed = Json::array();
  for (const Run& run : report.point.vetoed) vetoed.push_back(json_of_run(run));
  const auto of = [&](auto member) {
    return median(runs, [member](const Run& run) { return std::optional<double>(static_cast<double>(run.*member)); });
  };
  const auto of_known = [&](auto member) {
    return median(runs, [member](const Run& run) {
      return run.*member ? std::optional<double>(static_cast<double>(*(run.*member))) : std::nullopt;
    });
  };
  return Json::object({{"event_size_bytes", settings.traffic.event_bytes},
                       {"event_rate_hz", settings.traffic.event_rate_hz},
                       {"readouts", settings.topology.readouts},
                       {"nodes", settings.topology.nodes},
                       {"racks", settings.topology.racks},
                       {"node_link_bps", settings.topology.node_link_bps},
                       {"uplink_bps", settings.topology.uplink_bps},
                       {"mtu_bytes", settings.traffic.mtu_bytes},
                       {"buffer", buffer_text(settings.buffer)},
                       {"tcp", settings.congestion_control},
                       {"rto_min_us", static_cast<double>(settings.smallest_retransmission_timeout.count()) * 1e-3},
                       {"in_flight", settings.traffic.events_in_flight},
                       {"seed", settings.seed},
                       {"where", report.where},
                       {"switch", report.switch_description},
                       {"exact_periodic_bytes", or_null(exact_bytes(settings))},
                       {"max_buffer_bytes", of_known(&Run::max_buffer_bytes)},
                       {"max_buffer_cell_bytes", of_known(&Run::max_buffer_cell_bytes)},
                       {"drops", of_known(&Run::drops)},
                       {"retransmits", of(&Run::retransmits)},
                       {"timeouts", of(&Run::timeouts)},
                       {"events_completed", of(&Run::events_completed)},
                       {"rate_hz", of(&Run::rate_hz)},
                       {"latency_p50_us", of_known(&Run::latency_p50_us)},
                       {"latency_p99_us", of_known(&Run::latency_p99_us)},
                       {"failed", report.point.failed},
                       {"vetoes", report.point.vetoed.size()},
                       {"veto_rule", Json::object({{"most_added_occupancy", report.rule.most_added_occupancy},
                                                   {"most_in_a_row", report.rule.most_in_a_row}})},
                       {"scaling", std::move(scaling)},
                       {"runs", std::move(all)},
                       {"vetoed_runs", std::move(vetoed)},
                       {"metrics", report.metrics}});
}

Table table_of(const LabReport& report) {
  Table table({{"run", "run"},
               {"rate [Hz]", "rate_hz"},
               {"completed", "events_completed"},
               {"latency p99 [ms]", "latency_p99_us"},
               {"drops", "drops"},
               {"max buffer [kB]", "max_buffer_bytes"},
               {"retransmits", "retransmits"},
               {"time-outs", "timeouts"},
               {"late [ms]", "request_lateness_max_us"},
               {"vetoed", "vetoed"}});
  std::uint64_t number = 0;
  for (const auto* runs : {&report.point.runs, &report.point.vetoed}) {
    for (const Run& run : *runs) {
      const bool counts = run.veto_reasons.empty();
      table.add_row(
          {++number, Cell(run.rate_hz, fmt::format("{:.1f}", run.rate_hz)), run.events_completed,
           Cell(or_null(run.latency_p99_us), run.latency_p99_us ? fmt::format("{:.2f}", *run.latency_p99_us * 1e-3) : "-"),
           Cell(or_null(run.drops), run.drops ? "" : "-"),
           Cell(or_null(run.max_buffer_bytes),
                run.max_buffer_bytes ? fmt::format("{:.1f}", static_cast<double>(*run.max_buffer_bytes) * 1e-3) : "-"),
           run.retransmits, run.timeouts, Cell(run.lateness_max_us, fmt::format("{:.2f}", run.lateness_max_us * 1e-3)),
           Cell(!counts, counts ? "no" : "yes", counts ? Style::plain : Style::warning)});
    }
  }
  return table;
}

}  // namespace rodeo::cli
