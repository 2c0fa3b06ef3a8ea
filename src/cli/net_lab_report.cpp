#include "cli/net_lab_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/units.h"
#include "network/formula/closed_forms.h"
#include "network/formula/wire.h"

namespace rodeo::cli {

using namespace network::laboratory;
using network::SwitchBuffer;

namespace {

/// The closed form of the largest occupancy for periodic events on the wire; nullopt if it does not hold.
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

double us(double seconds) { return seconds * 1e6; }

/// A value of a run's report. With a title it is also in the table, divided by `unit`.
struct RunColumn {
  const char* key;
  std::function<Json(const Run&)> value;
  const char* title = nullptr;
  double unit = 1;
  int decimals = 0;
};

/// A member of the switch's counters; null without a driver, or if the switch does not know it.
template <typename T>
auto at_switch(T SwitchCounters::* member) {
  return [member](const Run& run) -> Json {
    if (!run.at_switch) return {};
    if constexpr (requires(const SwitchCounters& counters) { *(counters.*member); }) {
      return or_null((*run.at_switch).*member);
    } else {
      return (*run.at_switch).*member;
    }
  };
}

template <typename T>
auto disturbance(T Disturbance::* member) {
  return [member](const Run& run) { return run.disturbance.*member; };
}

const std::vector<RunColumn>& columns() {
  using D = Disturbance;
  static const std::vector<RunColumn> list{
      {"seconds", &Run::seconds},
      {"rate_hz", &Run::rate_hz, "rate [Hz]", 1, 1},
      {"events_scheduled", &Run::events_scheduled},
      {"events_requested", &Run::events_requested},
      {"events_held", &Run::events_held},
      {"events_completed", &Run::events_completed, "completed"},
      {"latency_p50_us", [](const Run& run) { return or_null(run.latency_p50_us); }},
      {"latency_p99_us", [](const Run& run) { return or_null(run.latency_p99_us); }, "latency p99 [ms]", 1e3, 2},
      {"latency_max_us", [](const Run& run) { return or_null(run.latency_max_us); }},
      {"drops", at_switch(&SwitchCounters::drops), "drops"},
      {"drops_by_reason",
       [](const Run& run) {
         if (!run.at_switch || !run.at_switch->reasons) return Json();
         const network::DropCount& reasons = *run.at_switch->reasons;
         return Json::object(
             {{"pool_full", reasons.pool_full}, {"threshold", reasons.threshold}, {"port_limit", reasons.port_limit}});
       }},
      {"max_buffer_bytes", at_switch(&SwitchCounters::max_buffer_bytes), "max buffer [kB]", 1e3, 1},
      {"max_buffer_cell_bytes", at_switch(&SwitchCounters::max_buffer_cell_bytes)},
      {"retransmits", &Run::retransmits, "retransmits"},
      {"timeouts", &Run::timeouts, "time-outs"},
      {"loss_probes", &Run::loss_probes},
      {"round_trip_min_us", [](const Run& run) { return static_cast<double>(run.smallest_round_trip_ns) * 1e-3; }},
      {"request_lateness_p99_us", &Run::lateness_p99_us},
      {"request_lateness_max_us", [](const Run& run) { return us(run.disturbance.request_lateness_seconds); }, "late [ms]",
       1e3, 2},
      {"answer_lateness_p99_us", &Run::answer_lateness_p99_us},
      {"answer_lateness_max_us", [](const Run& run) { return us(run.disturbance.answer_lateness_seconds); }},
      {"clock_error_us", [](const Run& run) { return us(run.disturbance.clock_error_seconds); }},
      {"real_time", &Run::real_time},
      {"machine_drops", disturbance(&D::machine_drops)},
      {"link_drops", disturbance(&D::link_drops)},
      {"left_in_pool_bytes", disturbance(&D::left_in_pool_bytes)},
      {"started_unix_seconds", &Run::started_unix_seconds},
      {"ended_unix_seconds", &Run::ended_unix_seconds},
      {"vetoed", [](const Run& run) { return !run.veto_reasons.empty(); }},
      {"veto_reasons", [](const Run& run) { return Json::array_of(run.veto_reasons); }},
      {"load", [](const Run& run) { return run.load; }},
      {"ports",
       [](const Run& run) {
         Json ports = Json::array();
         if (!run.at_switch) return ports;
         for (const PortDrops& port : run.at_switch->ports)
           ports.push_back(Json::object({{"name", port.name}, {"drops", port.drops}}));
         return ports;
       }},
  };
  return list;
}

Json json_of(const std::vector<Run>& runs) {
  Json list = Json::array();
  for (const Run& run : runs) {
    Json one = Json::object();
    for (const RunColumn& column : columns()) one[column.key] = column.value(run);
    list.push_back(std::move(one));
  }
  return list;
}

/// The median of the members that are numbers; null if there are none.
Json median(const Json& runs, std::string_view key) {
  std::vector<double> values;
  for (const Json& run : runs.elements()) {
    if (const Json& value = member(run, key); value.is_number()) values.push_back(value.number());
  }
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return Json(values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2);
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
  // A size alone means memory that all ports share, as in a simulation.
  if (const auto size = base::parse_size(text)) {
    buffer.shared_bytes = *size;
    return buffer;
  }
  return std::unexpected(Error{"cli.bad_value", fmt::format("`{}` is not a buffer", text), "--buffer",
                               "write shared:2800kB or 2800kB, port:100kB or infinite"});
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
  if (run.at_switch) {
    const auto& [drops, reasons, frames, cells, occupancy, ports] = *run.at_switch;
    text += fmt::format(", {} drops", drops);
    if (frames) text += fmt::format(", {:.1f} kB at most", static_cast<double>(*frames) * 1e-3);
    if (cells && cells != frames) text += fmt::format(" ({:.1f} kB in cells)", static_cast<double>(*cells) * 1e-3);
  }
  text += fmt::format(", {} retransmits, {} time-outs; late by {:.2f} / {:.2f} ms at most (requests / answers)",
                      run.retransmits, run.timeouts, run.disturbance.request_lateness_seconds * 1e3,
                      run.disturbance.answer_lateness_seconds * 1e3);
  for (const std::string& reason : run.veto_reasons) text += fmt::format("\n  vetoed: {}", reason);
  return text;
}

Json json_of(const LabReport& report) {
  const Settings& settings = report.settings;
  Json scaling = Json::array();
  for (const Group& group : groups(settings, round_trip(report), report.real, real_round_trip(report)))
    scaling.push_back(Json::object({{"group", group.name},
                                    {"laboratory", or_null(group.laboratory)},
                                    {"real", or_null(group.real)},
                                    {"kept", group.kept()}}));
  const Json runs = json_of(report.point.runs);
  Json out = Json::object({{"event_size_bytes", settings.traffic.event_bytes},
                           {"event_rate_hz", settings.traffic.event_rate_hz},
                           {"readouts", settings.topology.readouts},
                           {"nodes", settings.topology.nodes},
                           {"racks", settings.topology.racks},
                           {"node_link_bps", settings.topology.node_link_bps},
                           {"uplink_bps", settings.topology.uplink_bps},
                           {"mtu_bytes", settings.traffic.mtu_bytes},
                           {"buffer", buffer_text(settings.buffer)},
                           {"tcp", settings.congestion_control},
                           {"rto_min_us", static_cast<double>(settings.tcp.rto_min_ns) * 1e-3},
                           {"in_flight", settings.traffic.events_in_flight},
                           {"seed", settings.seed},
                           {"where", report.where},
                           {"switch", report.switch_description},
                           {"load", report.load},
                           {"request_credits", settings.traffic.request_credits},
                           {"exact_periodic_bytes", or_null(exact_bytes(settings))}});
  for (const char* key : {"max_buffer_bytes", "max_buffer_cell_bytes", "drops", "retransmits", "timeouts",
                          "events_completed", "rate_hz", "latency_p50_us", "latency_p99_us"})
    out[key] = median(runs, key);
  out["failed"] = report.point.failed;
  out["vetoes"] = report.point.vetoed.size();
  out["veto_rule"] = Json::object(
      {{"most_added_occupancy", report.rule.most_added_occupancy}, {"most_in_a_row", report.rule.most_in_a_row}});
  out["scaling"] = std::move(scaling);
  out["runs"] = runs;
  out["vetoed_runs"] = json_of(report.point.vetoed);
  out["metrics"] = report.metrics;
  return out;
}

Table table_of(const LabReport& report) {
  std::vector<Column> titles{{"run", "run"}};
  for (const RunColumn& column : columns()) {
    if (column.title != nullptr) titles.push_back({column.title, column.key});
  }
  titles.push_back({"vetoed", "vetoed"});
  Table table(std::move(titles));
  std::uint64_t number = 0;
  for (const auto* runs : {&report.point.runs, &report.point.vetoed}) {
    for (const Run& run : *runs) {
      std::vector<Cell> cells{++number};
      for (const RunColumn& column : columns()) {
        if (column.title == nullptr) continue;
        const Json value = column.value(run);
        cells.emplace_back(value,
                           value.is_null() ? "-" : fmt::format("{:.{}f}", value.number() / column.unit, column.decimals));
      }
      const bool counts = run.veto_reasons.empty();
      cells.emplace_back(!counts, counts ? "no" : "yes", counts ? Style::plain : Style::warning);
      table.add_row(std::move(cells));
    }
  }
  return table;
}

}  // namespace rodeo::cli
