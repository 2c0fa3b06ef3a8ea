// `rodeo route`: publishes the links of cards on the network, and lists the entries on the bus.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "base/units.h"
#include "cli/process_verbs.h"
#include "cli/route.h"
#include "cli/system.h"
#include "cli/verbs.h"
#include "formats/fid.h"
#include "process/control_request.h"
#include "router/service.h"
#include "transport/bus.h"

namespace rodeo::cli {
namespace {

constexpr std::chrono::seconds kRateInterval{1};

struct RouteOptions : AskOptions {
  std::string bus;
  bool links = false;
};

Result<ExitCode> run(const RunOptions& options) {
  RODEO_TRY(check_run_options(process::kRouter, options));
  const auto loaded = load_router(options.source());
  if (!loaded) return report_errors(loaded.error());
  return run_process(std::make_unique<router::RouterService>(loaded->configuration, loaded->library->registry()), options);
}

Json status_request(const RouteOptions& options) { return Json::object({{"command", "status"}, {"links", options.links}}); }

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

/// Shows the links with their rates since the previous status, for which the first call asks, too.
Result<ExitCode> show_links(const RouteOptions& options, std::optional<Json>& before, Json status, bool first) {
  if (!before) {
    before = std::move(status);
    std::this_thread::sleep_for(kRateInterval);
    status = RODEO_TRY(process::ask_process(process::kRouter, options.name, status_request(options)));
  }
  links_table(*before, status).print(options.format, options.watch, first);
  before = std::move(status);
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

Result<ExitCode> list(const RouteOptions& options) {
  constexpr std::chrono::milliseconds kPatience{500};
  const std::filesystem::path bus = options.bus.empty() ? transport::default_bus() : std::filesystem::path(options.bus);
  const auto reading = RODEO_TRY(transport::read_bus(bus));
  (options.links ? links_of(reading.entries, kPatience) : publishers_of(reading.entries, kPatience)).print(options.format);
  if (reading.entries.empty())
    say("no publisher or service on the bus {}{}\n", bus.string(),
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
  add_run_options(route, process::kRouter, *options);
  route.paragraph(
      "Runs until Ctrl-C (or SIGTERM), the end of the input, or a limit. The first Ctrl-C ends the run in order: the input "
      "stops, subscribers get the data under way, the report is printed. A second Ctrl-C changes nothing, a third aborts.");
  route.paragraph(
      "Exit status 0: the run ended normally; 6: a subscriber of data did not take all that it had asked for; 1: a part "
      "failed, or the sums do not hold.");
  route.run([options] { return run(*options); });

  auto ask = std::make_shared<RouteOptions>();
  Command& lists = route.verb("list", "Lists publishers and services on the bus: links, fragments, assignments, events");
  lists.option("--bus", ask->bus, "Directory of the bus (default: this user's on this host)").value_name("DIR");
  lists.flag("--links", ask->links, "One row for each link, with its publisher");
  lists.output(ask->format);
  lists.run([ask] { return list(*ask); });

  add_route_send(route);

  Command& status = add_status(
      route, process::kRouter, ask, [ask] { return status_request(*ask); },
      [ask, before = std::make_shared<std::optional<Json>>()](Json now, bool first) -> Result<ExitCode> {
        if (ask->links) return show_links(*ask, *before, std::move(now), first);
        properties_of(now).print(ask->format);
        return ExitCode::done;
      });
  status.flag("--links", ask->links, "Each link with its counts and rates; -o json has only counts");
  add_stop(route, process::kRouter, ask);
}

}  // namespace rodeo::cli
