#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ranges>

#include "base/units.h"

namespace rodeo::cli {
namespace {

using process::ListedProcess;

std::optional<double> number_at(const Json& status, std::initializer_list<std::string_view> path) {
  const Json* place = &status;
  for (const std::string_view key : path) place = &member(*place, key);
  return place->is_number() ? std::optional(place->number()) : std::nullopt;
}

/// The counter whose growth is the rate of a kind of process, its divisor, and the mean over the run if the status has one.
struct Rate {
  std::optional<double> count;
  double by = 1;
  std::optional<double> mean;
};

double seconds_of(const Json& status) {
  return number_at(status, {"run", "seconds"}).value_or(number_at(status, {"seconds"}).value_or(0));
}

Rate rate_of(const ListedProcess& one) {
  const Json& status = one.status;
  Rate rate;
  if (one.kind == "readout") {
    rate.count = number_at(status, {"fragments", "events"});
    if (!rate.count) {  // A readout of an earlier version counts only fragments.
      rate.count = number_at(status, {"fragments", "built"});
      rate.by = std::max<double>(1, static_cast<double>(member(status, "robs").elements().size()));
    }
  } else if (one.kind == "emulator") {
    rate.count = number_at(status, {"trigger", "accepted"});
  } else if (one.kind == "router") {
    rate.count = number_at(status, {"chunks", "sent"});
    rate.by = std::max(1.0, number_at(status, {"links"}).value_or(1));
  } else if (one.kind == "supervisor") {
    rate.count = number_at(status, {"events", "in"});
  } else if (one.kind == "node") {
    rate.count = number_at(status, {"events", "assigned"});
  } else if (one.kind == "recorder") {
    rate.count = number_at(status, {"events", "recorded"});
  }
  if (rate.count && seconds_of(status) > 0) rate.mean = *rate.count / rate.by / seconds_of(status);
  return rate;
}

void add_lost(TopRow& row, const std::string& reason, double count) {
  if (count <= 0) return;
  const auto known = std::ranges::find(row.lost, reason, &std::pair<std::string, double>::first);
  if (known != row.lost.end()) {
    known->second += count;
  } else {
    row.lost.emplace_back(reason, count);
  }
}

/// Readout: chunks in no fragment, and earlier losses that only the readout knows. Card: the losses in its counters. Router:
/// chunks that a subscriber of data did not take.
void add_losses(TopRow& row, const ListedProcess& one) {
  for (const auto& [reason, count] : member(member(one.status, "chunks"), "lost").members())
    add_lost(row, reason, count.number());
  for (const Json& loss : member(member(one.status, "loss"), "losses").elements()) {
    if (member(loss, "of").is_null()) add_lost(row, member(loss, "what").string(), member(loss, "lost").number());
  }
  for (const Json& function : member(one.status, "functions").elements()) {
    for (const auto& [name, count] : member(function, "counters").members()) {
      const std::string_view ending = std::string_view(name).substr(std::min(name.find('_'), name.size()));
      if (ending == "_dropped" || ending == "_lost" || ending == "_corrupted" || ending == "_unmapped" ||
          ending == "_link_down")
        add_lost(row, name, count.number());
    }
  }
  if (one.kind == "router") add_lost(row, "not_taken", member(member(one.status, "chunks"), "not_taken").number());
  std::ranges::stable_sort(row.lost, std::greater{}, &std::pair<std::string, double>::second);
}

TopRow row_of(const ListedProcess* before, const ListedProcess& now) {
  TopRow row;
  row.name = now.name;
  row.kind = now.kind;
  row.pid = now.pid;
  row.rss_bytes = now.rss_bytes;
  const bool same = before != nullptr && before->pid == now.pid && now.pid;
  const double seconds = same ? std::chrono::duration<double>(now.seen - before->seen).count() : 0;
  if (seconds > 0) row.cpu = std::max(0.0, now.cpu_seconds - before->cpu_seconds) / seconds;
  if (!now.silent.empty()) {
    row.verdict = "SILENT";
    row.why = now.silent;
    return row;
  }
  const Json& status = now.status;
  const Json& self = member(status, "process");
  row.phase = member(self.is_object() ? self : status, "phase").string();
  if (const auto number = number_at(status, {"run", "number"}); number && *number > 0)
    row.run = static_cast<std::uint64_t>(*number);
  row.verdict = member(member(status, "run"), "condition").string();
  const Rate rate = rate_of(now);
  row.rate_hz = rate.mean;
  if (seconds > 0 && !before->status.is_null()) {
    const Rate earlier = rate_of(*before);
    if (earlier.count && rate.count && *rate.count >= *earlier.count)
      row.rate_hz = (*rate.count - *earlier.count) / rate.by / seconds;
  }
  row.dead_time_fraction = now.kind == "emulator" ? number_at(status, {"trigger", "dead_time_fraction"})
                                                  : number_at(status, {"dead_time_fraction"});
  const std::string limit = member(status, now.kind == "readout" ? "limited_by_now" : "limited_by").string();
  if (limit != "nothing") row.limited_by = limit;
  add_losses(row, now);
  // A card has no condition: it is GOOD as long as it has lost nothing.
  if (row.verdict.empty()) row.verdict = row.lost.empty() ? "GOOD" : "INCOMPLETE";
  return row;
}

std::string lost_text(const TopRow& row) {
  std::string text;
  for (const auto& [reason, count] : row.lost) text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", reason, count);
  return text.empty() ? "nothing" : text;
}

Style style_of(const std::string& verdict) {
  if (verdict == "GOOD") return Style::good;
  return verdict == "INCOMPLETE" ? Style::warning : Style::bad;
}

template <typename T, typename Show>
Cell shown(const std::optional<T>& value, Show show) {
  return value ? Cell(Json(*value), show(*value)) : Cell(Json(), "-");
}

}  // namespace

TopView top_view(const std::vector<ListedProcess>& before, const std::vector<ListedProcess>& now, std::size_t most_links) {
  TopView view;
  for (const ListedProcess& one : now) {
    const auto earlier = std::ranges::find_if(
        before, [&](const ListedProcess& other) { return other.name == one.name && other.kind == one.kind; });
    view.rows.push_back(row_of(earlier == before.end() ? nullptr : &*earlier, one));
    for (const Json& rob : member(one.status, "robs").elements()) {
      for (const Json& link : member(rob, "links").elements()) {
        TopLink seen{one.name,
                     member(link, "fid").string(),
                     member(link, "name").string(),
                     member(link, "state").string(),
                     member(link, "missing").number(),
                     member(link, "bad").number(),
                     member(link, "in_doubt").number(),
                     member(link, "out_of_step").boolean()};
        if (seen.missing + seen.bad + seen.in_doubt > 0 || seen.out_of_step || seen.state != "active")
          view.links.push_back(std::move(seen));
      }
    }
  }
  std::ranges::stable_sort(view.links, std::greater{}, [](const TopLink& one) { return one.missing + one.bad; });
  if (view.links.size() > most_links) {
    view.more_links = view.links.size() - most_links;
    view.links.resize(most_links);
  }
  return view;
}

Table top_table(const TopView& view) {
  Table table({{"process", "name"},
               {"kind", "kind"},
               {"pid", "pid"},
               {"phase", "phase"},
               {"run", "run", true},
               {"verdict", "verdict"},
               {"rate", "rate_hz"},
               {"dead [%]", "dead_time_fraction"},
               {"cpu [cores]", "cpu"},
               {"memory", "rss_bytes"},
               {"limited by", "limited_by", true},
               {"lost", "lost"}});
  for (const TopRow& row : view.rows) {
    Json lost = Json::object();
    for (const auto& [reason, count] : row.lost) lost[reason] = Json(count);
    const bool silent = row.verdict == "SILENT";
    table.add_row({row.name, row.kind, shown(row.pid, [](pid_t pid) { return std::to_string(pid); }),
                   Cell(Json(row.phase), row.phase.empty() ? "-" : ""),
                   shown(row.run, [](std::uint64_t run) { return std::to_string(run); }),
                   Cell(Json(row.verdict), "", style_of(row.verdict)),
                   shown(row.rate_hz, [](double rate) { return base::format_quantity(rate, "Hz"); }),
                   shown(row.dead_time_fraction, [](double part) { return fmt::format("{:.2f}", part * 100); }),
                   shown(row.cpu, [](double cores) { return fmt::format("{:.2f}", cores); }),
                   Cell(Json(row.rss_bytes), base::format_quantity(static_cast<double>(row.rss_bytes), "B")),
                   Cell(Json(row.limited_by), row.limited_by.empty() ? "-" : "",
                        row.limited_by.empty() ? Style::plain : Style::warning),
                   Cell(std::move(lost), silent ? row.why : lost_text(row),
                        silent             ? Style::bad
                        : row.lost.empty() ? Style::faint
                                           : Style::warning)});
  }
  return table;
}

Table top_links_table(const TopView& view) {
  Table table({{"worst links", "fid"},
               {"name", "name", true},
               {"process", "process"},
               {"state", "state"},
               {"missing", "missing"},
               {"bad", "bad"},
               {"in doubt", "in_doubt", true},
               {"out of step", "out_of_step", true}});
  for (const TopLink& link : view.links)
    table.add_row(
        {link.fid, link.name, link.process, Cell(Json(link.state), "", link.state == "active" ? Style::plain : Style::bad),
         Cell(Json(link.missing), fmt::format("{:.0f}", link.missing)),
         Cell(Json(link.bad), fmt::format("{:.0f}", link.bad)),
         Cell(Json(link.in_doubt), fmt::format("{:.0f}", link.in_doubt)),
         Cell(Json(link.out_of_step), link.out_of_step ? "yes" : "no", link.out_of_step ? Style::bad : Style::plain)});
  return table;
}

Json top_json(const TopView& view, const std::vector<std::string>& rooms) {
  Json named = Json::array();
  for (const std::string& room : rooms) named.push_back(Json(room));
  return Json::object({{"processes", top_table(view).json()},
                       {"worst_links", top_links_table(view).json()},
                       {"more_bad_links", static_cast<std::uint64_t>(view.more_links)},
                       {"control_rooms", std::move(named)}});
}

}  // namespace rodeo::cli
