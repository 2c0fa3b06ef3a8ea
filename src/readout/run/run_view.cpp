#include "readout/run/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/units.h"
#include "formats/link_names.h"
#include "readout/run/run_report_output.h"

namespace rodeo::readout {
namespace {

using process::add_line;
using process::bar;
using process::clock_text;
using process::Painter;

struct Rates {
  double triggers_hz = 0;
  std::optional<double> dead_time;  // empty if the input does not count vetoed triggers
  double chunks_hz = 0;
  double fragments_hz = 0;
  double payload_bytes_s = 0;
  double written_bytes_s = 0;
};

std::uint64_t written_bytes(const ReadoutStatus& status) {
  std::uint64_t sum = 0;
  for (const auto& consumer : status.consumers) sum += counter_value(consumer.counters, "bytes_written");
  return sum;
}

std::uint64_t lost_chunks(const ReadoutStatus& status) {
  std::uint64_t sum = 0;
  for (const auto& rob : status.robs) {
    for (const NamedCounter& reason : rob.builder.lost) sum += reason.value;
  }
  return sum;
}

Rates rates_between(const ReadoutStatus& before, const ReadoutStatus& now) {
  const double seconds = now.seconds - before.seconds;
  if (seconds <= 0) return {};
  const auto rate = [&](std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) / seconds : 0;
  };
  Rates out;
  const std::uint64_t triggers = counter_value(now.input, "triggers", now.events());
  const std::uint64_t triggers_before = counter_value(before.input, "triggers", before.events());
  out.triggers_hz = rate(triggers_before, triggers);
  if (const NamedCounter* const vetoed = find_counter(now.input, "vetoed")) {
    const double vetoed_hz = rate(counter_value(before.input, "vetoed"), vetoed->value);
    out.dead_time = out.triggers_hz + vetoed_hz > 0 ? vetoed_hz / (out.triggers_hz + vetoed_hz) : 0;
  }
  out.chunks_hz = rate(before.chunks_built(), now.chunks_built());
  out.fragments_hz = rate(before.fragments, now.fragments);
  out.payload_bytes_s = rate(before.payload_bytes(), now.payload_bytes());
  out.written_bytes_s = rate(written_bytes(before), written_bytes(now));
  return out;
}

std::string dead_time_text(const Rates& rates) {
  return rates.dead_time ? fmt::format("dead time {:.2f} %", *rates.dead_time * 100) : "dead time is not known here";
}

std::string count(std::uint64_t n) { return base::format_count(static_cast<double>(n)); }

/// The counters as texts: "   lost 12", " (time_out 10,", " bcid_mismatch 2)". The worst reason is first.
std::vector<std::string> with_reasons(std::string_view what, std::uint64_t total, std::vector<NamedCounter> reasons) {
  std::vector<std::string> parts{fmt::format("   {} {}", what, count(total))};
  std::erase_if(reasons, [](const NamedCounter& reason) { return reason.value == 0; });
  std::ranges::stable_sort(reasons, std::greater{}, &NamedCounter::value);
  for (std::size_t i = 0; i < reasons.size(); ++i)
    parts.push_back(fmt::format(" {}{} {}{}", i == 0 ? "(" : "", reasons[i].name, count(reasons[i].value),
                                i + 1 == reasons.size() ? ")" : ","));
  return parts;
}

std::vector<NamedCounter> summed(const ReadoutStatus& status, std::vector<NamedCounter> FragmentBuilder::Status::* member) {
  std::vector<NamedCounter> out;
  for (const auto& rob : status.robs) {
    for (const NamedCounter& counter : rob.builder.*member) add_counter(out, counter);
  }
  return out;
}

std::vector<std::string> out_of_step_text(const ReadoutStatus& now) {
  std::uint64_t count = 0;
  std::vector<std::string> names;
  for (const auto& rob : now.robs) {
    for (std::size_t i = 0; i < rob.builder.links.size(); ++i) {
      if (rob.place_of(i).out_of_step && ++count <= 2)
        names.push_back(fmt::format(" {}", formats::named_link(rob.builder.links[i].fid)));
    }
  }
  if (count == 0) return {};
  names.insert(names.begin(), fmt::format(", {} out of step:", count));
  if (count > 2) names.push_back(" ...");
  return names;
}

std::vector<std::string> links_text(const ReadoutStatus& now, const Painter& paint) {
  std::uint64_t removed = 0;
  std::vector<std::string> names;
  for (const auto& rob : now.robs) {
    for (const auto& link : rob.builder.links) {
      if (link.state != LinkState::removed) continue;
      if (++removed <= 2)
        names.push_back(fmt::format(" {}{}", formats::named_link(link.fid), link.removed_by_policy ? " by policy" : ""));
    }
  }
  if (removed > 2) names.push_back(" ...");
  if (removed > 0) names.insert(names.begin(), fmt::format(" {} removed:", removed));
  std::vector<std::string> out_of_step = out_of_step_text(now);
  std::string active = fmt::format(" {} active{}", now.links() - removed, removed > 0 ? "," : "");
  names.insert(names.end(), out_of_step.begin(), out_of_step.end());
  for (std::string& name : names) name = paint.warn(name);
  names.insert(names.begin(), std::move(active));
  return names;
}

/// False for counters that only the report shows: latencies of single consumers, and events left unwritten on purpose.
bool for_people(const std::string& counter) {
  return !counter.starts_with("latency_") && counter.find("_beyond_") == std::string::npos && counter != "past_page_cache";
}

}  // namespace

std::vector<std::string> view_lines(const ReadoutSettings& settings, const ReadoutStatus& before, const ReadoutStatus& now,
                                    ViewStyle style) {
  const Painter paint(style);
  const Rates rates = rates_between(before, now);
  const std::uint64_t lost = lost_chunks(now);
  std::vector<std::string> lines;
  const auto add = [&](const std::string& head, const std::vector<std::string>& parts = {}) {
    add_line(lines, head, parts, style.columns);
  };
  const auto counts = [&](std::uint64_t built, std::vector<std::string> bad, auto painted) {
    for (std::string& part : bad) part = painted(part);
    bad.insert(bad.begin(), "   built " + count(built));
    return bad;
  };
  add(fmt::format("{}  run {}  {} {}", paint.bold("rodeo " + settings.name), settings.run.run_number,
                  process::phase_name(now.phase), clock_text(now.seconds)),
      {paint.dim(now.phase == Phase::running ? "   Ctrl-C ends it in order" : "")});
  const std::string dead_time = "   " + dead_time_text(rates);
  add(fmt::format("  triggers   {:>12}", base::format_quantity(rates.triggers_hz, "Hz")),
      {rates.dead_time.value_or(0) > 0.01 ? paint.warn(dead_time) : dead_time});
  add(fmt::format("  chunks     {:>12}", base::format_quantity(rates.chunks_hz, "/s")),
      counts(now.chunks_built(), with_reasons("lost", lost, summed(now, &FragmentBuilder::Status::lost)),
             [&](const std::string& part) { return lost > 0 ? paint.bad(part) : part; }));
  add(fmt::format("  fragments  {:>12}", base::format_quantity(rates.fragments_hz, "/s")),
      counts(now.fragments,
             with_reasons("incomplete", now.incomplete(), summed(now, &FragmentBuilder::Status::incomplete_by_reason)),
             [&](const std::string& part) { return now.incomplete() > 0 ? paint.warn(part) : part; }));
  add(fmt::format("  payload    {:>12}", base::format_quantity(rates.payload_bytes_s, "B/s")),
      {"   written " + base::format_quantity(rates.written_bytes_s, "B/s")});
  add("  latency    " + latency_text(now.latency, "   "));
  add("  links     ", links_text(now, paint));
  for (const auto& rob : now.robs) {
    add(fmt::format("  {:<15} {}", "ROB " + formats::to_text(rob.source_id), bar(rob.builder.pool_fill)),
        {fmt::format("   {} of {} events open", rob.builder.open_events, rob.builder.window_events)});
  }
  for (const auto& consumer : now.consumers) {
    std::vector<std::string> counters;
    for (const NamedCounter& counter : consumer.counters) {
      if (counter.value != 0 && for_people(counter.name))
        counters.push_back(fmt::format("   {} {}", counter.name, count(counter.value)));
    }
    add(fmt::format("  {:<15} {}", consumer.name, bar(consumer.queue_fill)), counters);
  }
  add(fmt::format("  limited by: {}",
                  now.limited_by == "nothing" ? paint.good(now.limited_by) : paint.warn(now.limited_by)));
  return lines;
}

std::string view_line(const ReadoutStatus& before, const ReadoutStatus& now) {
  const Rates rates = rates_between(before, now);
  return fmt::format("{}  triggers {}  chunks {}  payload {}  incomplete {}  lost {}  {}  limited by {}",
                     clock_text(now.seconds), base::format_quantity(rates.triggers_hz, "Hz"),
                     base::format_quantity(rates.chunks_hz, "/s"), base::format_quantity(rates.payload_bytes_s, "B/s"),
                     count(now.incomplete()), count(lost_chunks(now)), dead_time_text(rates), now.limited_by);
}

}  // namespace rodeo::readout
