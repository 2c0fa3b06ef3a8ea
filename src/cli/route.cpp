// `rodeo route`: publishes the links of cards on the network, and lists the entries on the bus.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/runtime_dir.h"
#include "base/sentence.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cli/build_text.h"
#include "cli/route.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "formats/fid.h"
#include "process/line_socket.h"
#include "process/status_metrics.h"
#include "process/stop_signals.h"
#include "router/run/prometheus.h"
#include "router/run/router_control.h"
#include "router/run/router_report_output.h"
#include "router/run/router_run.h"
#include "transport/bus.h"

namespace rodeo::cli {
namespace {

constexpr std::chrono::seconds kRateInterval{1};

struct RunOptions {
  std::string file;
  std::vector<std::string> settings;
  std::optional<double> seconds;
  std::string json_file;
};

struct TalkOptions {
  std::string name;
  std::string bus;
  bool watch = false;
  bool links = false;
  OutputFormat format = OutputFormat::table;
};

ExitCode exit_code_of_run(const router::RouterReport& report) {
  using router::Condition;
  if (report.condition == Condition::aborted || report.condition == Condition::wrong) return ExitCode::failed;
  return report.not_taken + report.pending > 0 ? ExitCode::partial : ExitCode::done;
}

Result<void> publish(const router::RouterReport& report, const std::string& json_file) {
  say("{}", base::without_control_characters(router::report_text(report)));
  return json_file.empty() ? Result<void>{} : write_json(json_file, router::report_json(report));
}

Result<ExitCode> run(const RunOptions& options) {
  if (options.file.empty())
    return usage_error("a configuration is missing", "rodeo route CONFIG, or one of the verbs: rodeo route --help");
  RODEO_TRY(check_seconds(options.seconds, "leave it out to run until Ctrl-C or the end of the input"));
  const auto loaded = load_router({.file = options.file, .overrides = options.settings});
  if (!loaded) return report_errors(loaded.error());
  process::outlive_listeners();
  const router::RouterPlan& plan = loaded->plan;
  std::optional<process::LineServer> control;
  if (plan.control_socket) {
    const auto socket = RODEO_TRY(base::runtime_socket(router::control_socket_name(plan.settings.name)));
    control.emplace(socket);
  }
  auto router = std::make_unique<router::Router>(plan.settings, loaded->library->registry());
  process::StatusMetrics<router::RouterStatus> metrics(
      plan.metrics_listen, [&](const auto& status) { return router::prometheus_text(plan.settings, status); });
  for (const router::ReaderStatus& reader : router->status().readers) {
    const std::string what = reader.trigger_list ? "the trigger's list" : base::counted(reader.links.size(), "link");
    std::fprintf(stderr, "%s publishes %s\n", reader.name.c_str(), what.c_str());
  }
  const process::StopSignals until_it_is_reported;
  const process::ProcessIdentity identity{.kind = "router",
                                          .name = plan.settings.name,
                                          .build = build_text(),
                                          .configuration_sha256 = plan.configuration_sha256};
  process::LastResort last_resort(plan.settings.stop_limit, plan.settings.name);
  const router::RouterReport report = router::run_router(
      *router, identity, options.seconds, control ? &*control : nullptr, [&](const auto& status) { metrics.show(status); },
      &last_resort);
  if (router->phase() != router::Phase::stopped) {
    // The user aborted, and threads still use these objects: exit without destructors.
    (void)publish(report, options.json_file);
    std::fflush(nullptr);
    control.reset();
    ::_exit(static_cast<int>(ExitCode::failed));
  }
  router.reset();
  RODEO_TRY(publish(report, options.json_file));
  return exit_code_of_run(report);
}

Properties properties_of(const Json& status) {
  const auto group = [&](std::string_view name, std::string_view key) -> const Json& {
    return member(member(status, name), key);
  };
  const std::string condition = group("run", "condition").string();
  Properties properties;
  properties.add("name", "name", group("run", "name"));
  properties.add("phase", "phase", member(status, "phase"));
  properties.add("waits for subscribers", "waiting_for_subscribers", member(status, "waiting_for_subscribers"));
  properties.add("condition", "condition", {condition, "", condition == "GOOD" ? Style::good : Style::bad});
  properties.add("seconds", "seconds", {group("run", "seconds"), fmt::format("{:.1f}", group("run", "seconds").number())});
  properties.add("links", "links", member(status, "links"));
  for (const char* key : {"sent", "published", "no_subscriber", "not_taken"})
    properties.add(fmt::format("chunks {}", key), fmt::format("chunks_{}", key), group("chunks", key));
  std::uint64_t errors = 0;
  for (const Json& reader : member(status, "readers").elements())
    errors += static_cast<std::uint64_t>(member(member(reader, "counters"), "error_chunks").number());
  properties.add("chunks with errors", "chunks_with_errors", {errors, "", errors > 0 ? Style::bad : Style::plain});
  std::string subscribers;
  for (const Json& one : member(status, "subscribers").elements()) {
    if (!member(one, "connected").boolean()) continue;
    subscribers += fmt::format("{}{} ({}) of {}", subscribers.empty() ? "" : ", ", member(one, "name").string(),
                               member(one, "kind").string(), member(one, "reader").string());
  }
  properties.add("subscribers", "subscribers", {member(status, "subscribers"), subscribers.empty() ? "none" : subscribers});
  properties.add("limited by", "limited_by", member(status, "limited_by"));
  return properties;
}

/// The links of a status, with the rates since the previous status.
Table links_table(const Json& before, const Json& now) {
  Table table({{"link", "fid"},
               {"reader", "reader"},
               {"chunks/s", "chunk_rate_hz"},
               {"B/s", "bytes_per_second"},
               {"errors/s", "error_rate_hz"},
               {"chunks", "chunks"},
               {"bytes", "bytes"},
               {"errors", "errors"}});
  const auto seconds_of = [](const Json& status) { return member(member(status, "run"), "seconds").number(); };
  const double seconds = seconds_of(now) - seconds_of(before);
  const auto& links = member(now, "by_link").elements();
  const auto& then = member(before, "by_link").elements();
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto rate = [&](const char* key) {
      const double more = member(links[i], key).number() - member(then[i], key).number();
      const double each_second = seconds > 0 ? more / seconds : 0;
      return Cell(each_second, base::format_count(each_second));
    };
    const bool errors = member(links[i], "errors").number() > 0;
    table.add_row({member(links[i], "fid"), member(links[i], "reader"), rate("chunks"), rate("bytes"), rate("errors"),
                   member(links[i], "chunks"), member(links[i], "bytes"),
                   Cell(member(links[i], "errors"), "", errors ? Style::bad : Style::plain)});
  }
  return table;
}

Result<ExitCode> show_status(const TalkOptions& options) {
  std::optional<std::chrono::nanoseconds> interval;
  if (options.watch) interval = kRateInterval;
  bool known = false;
  const auto ask = [&] {
    return router::ask_router(options.name, Json::object({{"command", "status"}, {"links", options.links}}));
  };
  std::optional<Json> before;
  const auto outcome = watch(interval, options.format, [&](bool first) -> Result<ExitCode> {
    auto status = RODEO_TRY(ask());
    known = true;
    if (options.format == OutputFormat::json) {
      print(status.dump(options.watch ? 0 : 2) + "\n");
    } else {
      if (!first && options.format == OutputFormat::table) print("\n");
      if (!options.links) {
        properties_of(status).print(options.format);
        return ExitCode::done;
      }
      if (!before) {
        before = std::move(status);
        std::this_thread::sleep_for(kRateInterval);
        status = RODEO_TRY(ask());
      }
      links_table(*before, status).print(options.format, options.watch, first);
      before = std::move(status);
    }
    return ExitCode::done;
  });
  if (outcome || !known) return outcome;
  std::fprintf(stderr, "the run is over\n");
  return ExitCode::done;
}

Result<ExitCode> stop(const TalkOptions& options) {
  RODEO_TRY(router::ask_router(options.name, Json::object({{"command", "stop"}})));
  return ExitCode::done;
}

/// The purpose of an entry, for people; an unknown service by its own name.
std::string purpose_of(const transport::BusEntry& entry) {
  if (entry.trigger_list) return "publishes the trigger list";
  if (entry.service.empty()) return "publishes links";
  for (const auto& [service, does] :
       {std::pair{"fragments", "serves fragments"}, {"assignments", "assigns events"}, {"events", "records events"}}) {
    if (entry.service == service) return does;
  }
  return "service " + entry.service;
}

/// One row for each link of each publisher.
Table links_of(const std::vector<transport::BusEntry>& entries, std::chrono::milliseconds patience) {
  Table table(
      {{"link", "fid"}, {"publisher", "publisher"}, {"host", "host"}, {"page [B]", "page_bytes"}, {"alive", "alive"}});
  for (const transport::BusEntry& entry : entries) {
    const bool alive = transport::is_alive(entry, patience);
    for (const Fid link : entry.links) {
      table.add_row({formats::to_text(link), entry.name, entry.host, entry.page_bytes,
                     Cell(alive, alive ? "yes" : "no", alive ? Style::good : Style::bad)});
    }
  }
  return table;
}

/// One row for each entry on the bus.
Table publishers_of(const std::vector<transport::BusEntry>& entries, std::chrono::milliseconds patience) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Table table({{"name", "name"},
               {"does", "service"},
               {"host", "host"},
               {"process", "pid"},
               {"address", "address"},
               {"links", "links"},
               {"first link", "first_fid"},
               {"providers", "providers"},
               {"age [s]", "age_seconds"},
               {"alive", "alive"}});
  for (const transport::BusEntry& entry : entries) {
    std::string providers;
    for (const std::string& one : entry.providers) providers += (providers.empty() ? "" : ",") + one;
    const double age = std::max(now - entry.unix_time, 0.0);
    const bool alive = transport::is_alive(entry, patience);
    table.add_row({entry.name, Cell(entry.service.empty() ? Json() : Json(entry.service), purpose_of(entry)), entry.host,
                   entry.pid, fmt::format("{}:{}", entry.address, entry.port),
                   Cell(entry.links.size(), entry.service.empty() && !entry.trigger_list ? "" : "-"),
                   entry.links.empty() ? Json() : Json(formats::to_text(entry.links.front())), std::move(providers),
                   Cell(age, fmt::format("{:.0f}", age)),
                   Cell(alive, alive ? "yes" : "no", alive ? Style::good : Style::bad)});
  }
  return table;
}

Result<ExitCode> list(const TalkOptions& options) {
  constexpr std::chrono::milliseconds kPatience{500};
  const std::filesystem::path bus = options.bus.empty() ? transport::default_bus() : std::filesystem::path(options.bus);
  const auto reading = RODEO_TRY(transport::read_bus(bus));
  (options.links ? links_of(reading.entries, kPatience) : publishers_of(reading.entries, kPatience)).print(options.format);
  if (reading.entries.empty())
    std::fprintf(stderr, "no publisher or service on the bus %s%s\n", bus.c_str(),
                 std::filesystem::is_directory(bus) ? "" : ": there is no such directory");
  for (const Error& error : reading.unreadable) print_error(error);
  return reading.unreadable.empty() ? ExitCode::done : ExitCode::partial;
}

}  // namespace

void add_route(Command& root) {
  auto options = std::make_shared<RunOptions>();
  Command& route = root.verb("route", "Publishes the links of cards on the network, or lists publishers");
  route.example("rodeo route examples/router.toml", "until Ctrl-C; in another terminal: rodeo readout with input `network`")
      .example("rodeo route run.toml --seconds 10 --json -", "for 10 s; the report as JSON")
      .example("rodeo route send FID --hex \"01 02\"", "a message to a front-end")
      .example("rodeo route list", "publishers with their links, farm services, and whether they answer");
  route.option("CONFIG", options->file, "Configuration with a [router] table (TOML)").value_name("CONFIG");
  route.option("--seconds", options->seconds, "End the run after this time of its input").value_name("S");
  route.option("--set", options->settings, "Set a key of the configuration").value_name("KEY=VALUE");
  route.json_file(options->json_file);
  route.paragraph(
      "Runs until Ctrl-C (or SIGTERM), the end of the input, or a limit. The first Ctrl-C ends the run in order: the input "
      "stops, subscribers get the data under way, the report is printed. A second Ctrl-C changes nothing, a third aborts.");
  route.paragraph(
      "Exit status 0: the run ended normally; 6: a subscriber of data did not take all that it had asked for; 1: a part "
      "failed, or the sums do not hold.");
  route.run([options] { return run(*options); });

  auto talk = std::make_shared<TalkOptions>();
  Command& lists = route.verb("list", "Lists publishers and services on the bus: links, fragments, assignments, events");
  lists.option("--bus", talk->bus, "Directory of the bus (default: this user's on this host)").value_name("DIR");
  lists.flag("--links", talk->links, "One row for each link, with its publisher");
  lists.output(talk->format);
  lists.run([talk] { return list(*talk); });

  add_route_send(route);

  const auto with_name = [talk](Command& verb) {
    verb.option("--name", talk->name, "Name of the router (router.name); needed if several run").value_name("NAME");
  };
  Command& status = route.verb("status", "Shows the state of a running router");
  status.flag("--watch", talk->watch, "Repeat each second; with -o json one line each time");
  status.flag("--links", talk->links, "Each link with its counts and rates; -o json has only counts");
  with_name(status);
  status.output(talk->format);
  status.run([talk] { return show_status(*talk); });

  Command& ends = route.verb("stop", "Ends a running router in order, as Ctrl-C does");
  with_name(ends);
  ends.run([talk] { return stop(*talk); });
}

}  // namespace rodeo::cli
