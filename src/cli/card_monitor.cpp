// Monitoring of running cards: `rodeo card status | metrics | packets | triggers`, as tables and for Prometheus.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <thread>

#include "base/clock.h"
#include "card/measurements.h"
#include "cli/card.h"
#include "process/prometheus.h"
#include "process/stop_signals.h"

namespace rodeo::cli {
namespace {

using card::Group;
using card::MeasuredField;
using card::Measurement;

struct CardMonitorOptions {
  std::vector<std::string> ids;
  std::string links = "0-23";
  bool onu = false;
  bool fec = false;
  bool prometheus = false;
  bool reference = false;
  std::string listen;
  std::chrono::nanoseconds interval = std::chrono::seconds{1};
  std::optional<std::chrono::nanoseconds> watch;
  OutputFormat format = OutputFormat::table;
};

Json json_of(const MeasuredField& field) {
  return std::visit([](auto value) { return Json(value); }, field.value);
}

Style style_of(const MeasuredField& field) {
  if (field.info->name != "status") return Style::plain;
  const auto* status = std::get_if<std::uint64_t>(&field.value);
  return status == nullptr || *status == 0 ? Style::bad : *status == 1 ? Style::good : Style::warning;
}

/// One table of all measurements of a group: one row for each, one column for every field that occurs.
struct Rows {
  struct Row {
    std::string card;
    std::string type;
    Measurement measurement;
  };
  std::vector<Row> rows;

  std::vector<const card::FieldInfo*> fields() const {
    std::vector<const card::FieldInfo*> list;
    for (const card::FieldInfo& info : card::all_fields()) {
      const bool there =
          std::ranges::any_of(rows, [&](const Row& row) { return row.measurement.find(info.name) != nullptr; });
      const bool twice = std::ranges::any_of(list, [&](const card::FieldInfo* other) { return other->name == info.name; });
      if (there && !twice) list.push_back(&info);
    }
    return list;
  }
  Table table() const {
    const auto infos = fields();
    std::vector<Column> columns{{"card", "card"}, {"type", "type"}, {"of", "measurement"}, {"#", "id"}};
    for (const card::FieldInfo* info : infos) columns.push_back({std::string(info->title), std::string(info->name)});
    Table table(columns);
    for (const Row& row : rows) {
      std::vector<Cell> cells{Cell(row.card), Cell(row.type), Cell(row.measurement.name), optional_cell(row.measurement.id)};
      for (const card::FieldInfo* info : infos) {
        const MeasuredField* field = row.measurement.find(info->name);
        if (field == nullptr) {
          cells.emplace_back(Json(), "-", Style::faint);
        } else {
          cells.emplace_back(json_of(*field), field->text, style_of(*field));
        }
      }
      table.add_row(std::move(cells));
    }
    return table;
  }
};

/// Warns of facts that are easy to miss in the tables: a PCIe link slower than the card's, and registers that are not read.
void say_what_is_wrong(AskedCards& cards, const std::vector<Group>& groups,
                       const std::vector<std::vector<std::vector<Measurement>>>& measured) {
  const auto number = [](const Measurement& one, std::string_view field) {
    const MeasuredField* found = one.find(field);
    if (found == nullptr) return 0.0;
    return std::visit([](auto value) { return static_cast<double>(value); }, found->value);
  };
  for (std::size_t card = 0; card < cards.size(); ++card) {
    if (cards.failed(card)) continue;
    const std::string address = cards.entry(card)->function.address.text();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] != Group::pcie) continue;
      for (const Measurement& one : measured[card][i]) {
        if (number(one, "lanes") >= number(one, "mostLanes") && number(one, "speed") >= number(one, "fastestSpeed"))
          continue;
        say("{}: the PCIe link was trained to x{} at {:g} GT/s, the card has x{} at {:g} GT/s: look at its slot and at "
            "`lspci "
            "-vv` of the port above\n",
            address, number(one, "lanes"), number(one, "speed"), number(one, "mostLanes"), number(one, "fastestSpeed"));
      }
    }
    if (const auto known = cards.card(card).check_map(); !known)
      say("{}: {}; {}\n", address, known.error().what, known.error().next);
  }
}

/// Reads groups of the selected cards and prints a table of each group; CSV is one table, with the columns of all groups.
/// `first`: nothing was printed before.
Result<ExitCode> show_groups(const CardMonitorOptions& options, const std::vector<Group>& groups, bool first) {
  const std::uint32_t links = RODEO_TRY(link_mask(options.links, 23));  // a FELIX has 24 links, the most of all cards
  auto cards = RODEO_TRY(AskedCards::open(options.ids));
  std::vector<std::vector<std::vector<Measurement>>> measured(cards.size());  // by card and group
  cards.ask([&](std::size_t number, const card::CardEntry&, card::Card& card) -> Result<void> {
    for (const Group group : groups) {
      measured[number].push_back(RODEO_TRY(card::measure(card, group, links)));
    }
    return {};
  });
  if (first) say_what_is_wrong(cards, groups, measured);
  std::vector<Rows> all(groups.size());
  for (std::size_t number = 0; number < cards.size(); ++number) {
    if (cards.failed(number)) continue;
    const card::CardEntry& entry = *cards.entry(number);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t before = all[i].rows.size();
      for (Measurement& one : measured[number][i]) {
        if (!one.fields.empty())
          all[i].rows.push_back({entry.function.address.text(), std::string(card::name_of(entry.type)), std::move(one)});
      }
      if (first && groups[i] == Group::card && all[i].rows.size() == before)
        say("{}: a {} has no metrics of the card; `rodeo card status` and `rodeo card packets` show its links\n",
            entry.function.address.text(), card::name_of(entry.type));
    }
  }
  const auto outcome = cards.outcome();
  if (!outcome) return outcome;
  if (options.format == OutputFormat::json) {
    Json list = Json::array();
    for (const Rows& rows : all) {
      for (const Rows::Row& row : rows.rows) {
        Json one =
            Json::object({{"card", row.card}, {"type", row.type}, {"measurement", std::string(row.measurement.name)}});
        if (row.measurement.id) one["id"] = *row.measurement.id;
        for (const MeasuredField& field : row.measurement.fields) {
          one[field.info->name] = json_of(field);
          if (!field.text.empty() && field.info->name == "status") one["statusText"] = field.text;
        }
        list.push_back(std::move(one));
      }
    }
    print(list.dump(options.watch ? 0 : 2) + "\n");
    return outcome;
  }
  if (options.format == OutputFormat::csv) {
    Rows together;
    for (Rows& rows : all) std::ranges::move(rows.rows, std::back_inserter(together.rows));
    together.table().print(options.format, true, first);
    return outcome;
  }
  for (const Rows& rows : all) {
    if (rows.rows.empty()) continue;
    if (!first) print("\n");
    rows.table().print(options.format);
    first = false;
  }
  return outcome;
}

// Prometheus

constexpr Group kGroups[]{Group::card, Group::pcie, Group::setting, Group::link, Group::packets, Group::onu, Group::fec};

struct Sample {
  const card::FieldInfo* info;
  process::Labels labels;
  std::string value;
};

/// Tags as ReadoutCard's tools set them: SerialId, Endpoint, ID, Type, and CRU or CRORC with the card's sequence number.
process::Labels tags(const card::CardEntry& entry, const Measurement& measurement) {
  const auto text = [](const auto& number) { return number ? fmt::format("{}", *number) : std::string(); };
  process::Labels labels{{"pciAddress", entry.function.address.text()},
                         {"SerialId", text(entry.identity.serial)},
                         {"Endpoint", text(entry.identity.endpoint)},
                         {"Type", std::string(card::name_of(entry.type))},
                         {entry.type == card::CardType::crorc ? "CRORC"
                          : entry.type == card::CardType::cru ? "CRU"
                                                              : "FELIX",
                          fmt::format("{}", entry.sequence)}};
  if (measurement.id) labels.emplace_back("ID", text(measurement.id));
  return labels;
}

process::PrometheusText begun() {
  process::PrometheusText out;
  out.metric("rodeo_card_up", "gauge", "1: the card answered.");
  return out;
}

std::string prometheus_of_all(AskedCards& cards) {
  std::vector<std::vector<Sample>> of_card(cards.size());
  cards.ask([&](std::size_t number, const card::CardEntry& entry, card::Card& card) -> Result<void> {
    for (const Group group : kGroups) {
      const auto measured = RODEO_TRY(card::measure(card, group));
      for (const Measurement& one : measured) {
        for (const MeasuredField& field : one.fields)
          of_card[number].push_back(
              {field.info, tags(entry, one), std::visit([](auto v) { return fmt::format("{}", v); }, field.value)});
      }
    }
    return {};
  });
  process::PrometheusText out = begun();
  std::map<std::string, std::vector<Sample>> samples;  // by metric
  for (std::size_t number = 0; number < cards.size(); ++number) {
    const card::CardEntry* entry = cards.entry(number);
    if (entry == nullptr) continue;
    for (Sample& sample : of_card[number])
      samples[fmt::format("{}_{}", sample.info->measurement, sample.info->name)].push_back(std::move(sample));
    out.sample(cards.failed(number) ? 0 : 1,
               {{"pciAddress", entry->function.address.text()}, {"Type", std::string(card::name_of(entry->type))}});
  }
  for (const auto& [name, all] : samples) {
    out.metric(name, all.front().info->type, fmt::format("{}.", all.front().info->help));
    for (const Sample& sample : all) out.sample(sample.value, sample.labels);
  }
  return out.take();
}

std::string reference() {
  std::string text =
      "# Metrics of cards\n\n"
      "`rodeo card metrics --prometheus` prints these metrics, and `rodeo card metrics --listen ADDRESS:PORT` serves them "
      "at `/metrics`. Names (`measurement_field`)\n"
      "and labels are those that ReadoutCard's tools send to monitoring: `pciAddress`, `SerialId`, `Endpoint`, `Type`, `ID` "
      "(link, wrapper or channel), and `CRU`, `CRORC` or\n"
      "`FELIX` with the card's number in `rodeo card list`. A metric that a card's firmware does not have is absent. "
      "`rodeo_card_up` is 0 for a card that did not answer.\n"
      "`rodeo card metrics --reference` writes this file.\n\n"
      "| metric | cards | type | meaning |\n|---|---|---|---|\n";
  for (const card::FieldInfo& info : card::all_fields())
    text += fmt::format("| `{}_{}` | {} | {} | {} |\n", info.measurement, info.name, info.card, info.type, info.help);
  return text;
}

Result<ExitCode> print_prometheus(const CardMonitorOptions& options) {
  auto cards = RODEO_TRY(AskedCards::open(options.ids));
  print(prometheus_of_all(cards));
  return cards.outcome();
}

Result<ExitCode> metrics(const CardMonitorOptions& options) {
  if (options.reference) {
    print(reference());
    return ExitCode::done;
  }
  if (options.prometheus) {
    return print_prometheus(options);
  }
  if (options.listen.empty())
    return watch(options.watch, options.format, [&](bool first) { return show_groups(options, {Group::card}, first); });
  if (auto possible = process::HttpServer::check(options.listen); !possible)
    return value_error(possible.error().what, possible.error().next);
  const process::StopSignals signals;
  process::HttpServer server(options.listen, process::metrics_answer([&options] {
                               auto cards = AskedCards::open(options.ids);
                               return cards ? prometheus_of_all(*cards) : begun().take();
                             }));
  say("metrics at http://{}/metrics\n", server.address());
  while (!signals.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds{50});
  return ExitCode::done;
}

// Triggers

Result<ExitCode> triggers(const CardMonitorOptions& options, bool with_header) {
  RODEO_TRY(check_interval(options.interval, "--interval"));
  auto cards = RODEO_TRY(AskedCards::open(options.ids));
  struct Reading {
    card::TriggerCounts counts;
    std::uint64_t at_ns = 0;
  };
  struct Readings {
    std::optional<Reading> first, second;
  };
  std::vector<Readings> readings(cards.size());
  cards.ask([&](std::size_t number, const card::CardEntry&, card::Card& card) -> Result<void> {
    if (options.ids.empty() && card.type() != card::CardType::cru) return {};
    const auto counts = RODEO_TRY(card::read_trigger_counts(card));
    readings[number].first = {counts, base::steady_now_ns()};
    return {};
  });
  if (std::ranges::any_of(readings, [](const Readings& one) { return one.first.has_value(); })) {
    std::this_thread::sleep_for(options.interval);
  } else if (options.ids.empty()) {
    say("no card counts triggers: only a CRU does\n");
  }
  cards.ask([&](std::size_t number, const card::CardEntry&, card::Card& card) -> Result<void> {
    if (!readings[number].first) return {};
    const auto counts = RODEO_TRY(card::read_trigger_counts(card));
    readings[number].second = {counts, base::steady_now_ns()};
    return {};
  });
  Table table({{"card", "card"},
               {"HB", "heartbeats"},
               {"HB [kHz]", "heartbeat_rate_hz"},
               {"PHY", "physics"},
               {"PHY [kHz]", "physics_rate_hz"},
               {"CAL", "calibration"},
               {"CAL [kHz]", "calibration_rate_hz"},
               {"TOF", "tof"},
               {"TOF [kHz]", "tof_rate_hz"},
               {"SOX", "starts"},
               {"EOX", "ends"}});
  for (std::size_t number = 0; number < cards.size(); ++number) {
    if (!readings[number].second) continue;
    const auto& [then, then_ns] = *readings[number].first;
    const auto& [now, now_ns] = *readings[number].second;
    const double seconds = static_cast<double>(now_ns - then_ns) * 1e-9;
    const auto rate = [&](auto difference) {
      const double hertz = static_cast<double>(difference) / seconds;
      return Cell(hertz, fmt::format("{:.3f}", hertz * 1e-3));
    };
    table.add_row({Cell(cards.entry(number)->function.address.text()), now.heartbeats,
                   rate(now.heartbeats - then.heartbeats), now.physics, rate(now.physics - then.physics),
                   Cell(std::uint64_t{now.calibration}),
                   rate(static_cast<std::uint16_t>(now.calibration - then.calibration)), Cell(std::uint64_t{now.tof}),
                   rate(static_cast<std::uint16_t>(now.tof - then.tof)), Cell(std::uint64_t{now.starts}),
                   Cell(std::uint64_t{now.ends})});
  }
  const auto outcome = cards.outcome();
  if (!outcome) return outcome;
  table.print(options.format, options.watch.has_value(), with_header);
  return outcome;
}

}  // namespace

void add_card_monitor(Command& card) {
  auto options = std::make_shared<CardMonitorOptions>();
  Command& status = card.verb("status", "Shows the settings of each card and the state of its links");
  status.example("rodeo card status --id '#0' --watch 1s", "again each second")
      .example("rodeo card status -o json", "all cards, for programs");
  add_card_ids(status, options->ids);
  status.option("--links", options->links, "Links, as in 0,1,8-10").value_name("LINKS");
  status.flag("--onu-status", options->onu, "CRU: also the optical network unit");
  status.flag("--fec-status", options->fec, "CRU: also its forward error correction");
  add_watch(status, options->watch);
  status.output(options->format);
  status.run([options] {
    std::vector<Group> groups{Group::pcie, Group::setting, Group::link};
    if (options->onu) groups.push_back(Group::onu);
    if (options->fec) groups.push_back(Group::fec);
    return watch(options->watch, options->format, [&](bool first) { return show_groups(*options, groups, first); });
  });

  Command& values =
      card.verb("metrics", "Shows temperature, clocks and packets of each card; serves all metrics to Prometheus");
  values.example("rodeo card metrics --watch 1s", "again each second")
      .example("rodeo card metrics --listen 127.0.0.1:9465", "for Prometheus, until Ctrl-C");
  add_card_ids(values, options->ids);
  values.option("--listen", options->listen, "Serve Prometheus at this address").value_name("ADDRESS:PORT");
  values.flag("--prometheus", options->prometheus, "Print the same text once");
  values.flag("--reference", options->reference, "Print the table of all metrics, in Markdown");
  add_watch(values, options->watch);
  values.output(options->format);
  values.run([options] { return metrics(*options); });

  Command& packets = card.verb("packets", "Shows packets of each link and of the datapath");
  packets.example("rodeo card packets --id '#0' --watch 1s", "again each second");
  add_card_ids(packets, options->ids);
  packets.option("--links", options->links, "Links, as in 0,1,8-10").value_name("LINKS");
  add_watch(packets, options->watch);
  packets.output(options->format);
  packets.run([options] {
    return watch(options->watch, options->format,
                 [&](bool first) { return show_groups(*options, {Group::packets}, first); });
  });

  Command& counts = card.verb("triggers", "Shows triggers that CRUs have received, and their rates");
  counts.example("rodeo card triggers --interval 5s", "rates over five seconds");
  add_card_ids(counts, options->ids);
  counts.duration("--interval", options->interval, "Time between the two readings for a rate");
  add_watch(counts, options->watch);
  counts.output(options->format);
  counts.run(
      [options] { return watch(options->watch, options->format, [&](bool first) { return triggers(*options, first); }); });
}

}  // namespace rodeo::cli
