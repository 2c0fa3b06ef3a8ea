#include "router/run/router_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sentence.h"
#include "base/units.h"
#include "router/router_report.h"

namespace rodeo::router {
namespace {

using Subscriber = transport::Publisher::Subscriber;

std::string count(std::uint64_t n) { return base::format_count(static_cast<double>(n)); }

/// Formats an increase between two looks as a rate.
struct Rate {
  double seconds;
  std::string operator()(std::uint64_t before, std::uint64_t now, std::string_view unit) const {
    return base::format_quantity(seconds > 0 && now > before ? static_cast<double>(now - before) / seconds : 0, unit);
  }
};

const Subscriber* find_subscriber(const RouterStatus& status, std::size_t reader, const Subscriber& subscriber) {
  if (reader >= status.readers.size()) return nullptr;
  const auto& all = status.readers[reader].subscribers;
  const auto found = std::ranges::find_if(
      all, [&](const Subscriber& one) { return one.name == subscriber.name && one.peer == subscriber.peer; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> view_lines(const RouterSettings& settings, const RouterStatus& before, const RouterStatus& now,
                                    process::ViewStyle style) {
  const process::Painter paint(style);
  const Rate rate{now.seconds - before.seconds};
  std::vector<std::string> lines;
  const auto add = [&](const std::string& head, const std::vector<std::string>& parts) {
    process::add_line(lines, head, parts, style.columns);
  };
  add(fmt::format("{}  {} {}", paint.bold("rodeo " + settings.name),
                  now.waiting ? "waits for subscribers" : process::phase_name(now.phase), process::clock_text(now.seconds)),
      {paint.dim(now.phase == Phase::running ? "   Ctrl-C ends it in order" : "")});
  add(fmt::format("  chunks     {:>12}", rate(before.sum("chunks_read"), now.sum("chunks_read"), "/s")),
      {"   published " + count(now.sum("chunks_wanted")), "   no subscriber " + count(now.sum("no_subscriber"))});
  add(fmt::format("  payload    {:>12}", rate(before.sum("bytes_read"), now.sum("bytes_read"), "B/s")),
      {"   in pages " + rate(before.sum("bytes_sent"), now.sum("bytes_sent"), "B/s")});
  for (std::size_t i = 0; i < now.readers.size(); ++i) {
    const ReaderStatus& reader = now.readers[i];
    const ReaderStatus then = i < before.readers.size() ? before.readers[i] : ReaderStatus{};
    std::vector<std::string> parts{
        "   " + (reader.trigger_list ? "trigger list" : base::counted(reader.links.size(), "link")),
        "   waits " + count(reader["waits"])};
    if (reader["error_chunks"] > 0)
      parts.push_back(paint.warn("   errors " + rate(then["error_chunks"], reader["error_chunks"], "/s")));
    if (reader["not_taken"] > 0) parts.push_back(paint.bad("   not taken " + count(reader["not_taken"])));
    add(fmt::format("  {:<10} {:>12}", reader.name, rate(then["chunks_read"], reader["chunks_read"], "/s")), parts);
    for (const Subscriber& one : reader.subscribers) {
      const Subscriber* const was = find_subscriber(before, i, one);
      std::vector<std::string> more{fmt::format("   {} ({}) {}", one.name, one.monitor ? "monitor" : "data", one.peer),
                                    "   " + base::counted(one.links, "link")};
      if (one.dropped_chunks > 0) more.push_back(paint.warn(fmt::format("   {} chunks dropped", count(one.dropped_chunks))));
      if (!one.connected) more.push_back(paint.warn("   gone"));
      add(fmt::format("    {:<8} {:>12}", "to", rate(was == nullptr ? 0 : was->chunks, one.chunks, "/s")), more);
    }
  }
  if (now.front_ends) {
    const auto count_of = [](const RouterStatus& status, std::string_view name) {
      return status.front_ends ? counter_value(status.front_ends->counters, name) : 0;
    };
    std::vector<std::string> parts{"   sent " + count(count_of(now, "messages_sent")),
                                   "   " + base::counted(now.front_ends->owners.size(), "owner")};
    if (const auto failed = count_of(now, "messages_failed"); failed > 0)
      parts.push_back(paint.bad("   failed " + count(failed)));
    add(fmt::format("  front-ends {:>12}", rate(count_of(before, "messages_sent"), count_of(now, "messages_sent"), "/s")),
        parts);
  }
  const std::string limit = limited_by(now);
  add(fmt::format("  limited by: {}", limit == "nothing" ? paint.good(limit) : paint.warn(limit)), {});
  return lines;
}

std::string view_line(const RouterStatus& before, const RouterStatus& now) {
  if (now.waiting) return "waits for subscribers";
  const Rate rate{now.seconds - before.seconds};
  std::size_t subscribers = 0;
  for (const ReaderStatus& reader : now.readers)
    subscribers += static_cast<std::size_t>(std::ranges::count(reader.subscribers, true, &Subscriber::connected));
  return fmt::format("{}  chunks {}  payload {}  published {}  no subscriber {}  {}  waits {}  limited by {}",
                     process::clock_text(now.seconds), rate(before.sum("chunks_read"), now.sum("chunks_read"), "/s"),
                     rate(before.sum("bytes_read"), now.sum("bytes_read"), "B/s"), count(now.sum("chunks_wanted")),
                     count(now.sum("no_subscriber")), base::counted(subscribers, "subscription"), count(now.sum("waits")),
                     limited_by(now));
}

}  // namespace rodeo::router
