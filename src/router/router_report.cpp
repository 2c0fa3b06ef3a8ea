#include "router/router_report.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "input/losses.h"

namespace rodeo::router {
namespace {

/// During a run, chunks under way are not in all counters yet.
Condition condition_of(const RouterReport& report, bool over, bool aborted) {
  if (aborted || !report.failure.empty()) return Condition::aborted;
  if (over && !report.adds_up()) return Condition::wrong;
  const bool lost = report.not_taken > 0 || report.pending > 0 || report.list_not_delivered > 0 || report.no_data ||
                    !report.input_losses().empty();
  return lost ? Condition::incomplete : Condition::good;
}

}  // namespace

std::vector<NamedCounter> RouterReport::input_losses() const {
  std::vector<NamedCounter> out;
  std::ranges::copy_if(input, std::back_inserter(out),
                       [](const NamedCounter& counter) { return counter.value > 0 && input::is_loss(counter.name); });
  return out;
}

std::string limited_by(const RouterStatus& status) {
  std::map<std::string, std::uint64_t> waits;
  for (const ReaderStatus& reader : status.readers) {
    for (const auto& subscriber : reader.subscribers) waits[subscriber.name] += subscriber.waits;
  }
  const auto most = std::ranges::max_element(waits, {}, [](const auto& one) { return one.second; });
  return most == waits.end() || most->second == 0 ? "nothing" : most->first;
}

RouterReport make_report(const RouterSettings& settings, const RouterStatus& status, bool aborted) {
  RouterReport report;
  report.name = settings.name;
  report.seconds = status.seconds;
  report.failure = status.failure;
  report.links = status.links();
  for (const ReaderStatus& reader : status.readers) {
    if (!reader.trigger_list)
      report.links_unread += static_cast<std::size_t>(
          std::ranges::count_if(reader.links, [](const LinkStatus& link) { return link.tally.chunks == 0; }));
  }
  // If the input has no count of its own, the count of the readers is used.
  report.sent = counter_value(status.input, "sent", status.sum("chunks_read"));
  report.published = status.sum("chunks_wanted");
  report.no_subscriber = status.sum("no_subscriber");
  report.not_taken = status.sum("not_taken");
  report.pending = status.sum("undelivered");
  report.bytes_cut = input::cut_bytes(status.input);
  report.bytes_in = counter_value(status.input, "sent_bytes", status.sum("bytes_read")) + report.bytes_cut;
  report.bytes_published = status.sum("wanted_bytes");
  report.bytes_no_subscriber = status.sum("no_subscriber_bytes");
  report.bytes_not_taken = status.sum("not_taken_bytes");
  const bool over = status.phase == Phase::stopped;
  for (const ReaderStatus& reader : status.readers) {
    report.bytes_sent += reader["bytes_sent"];
    report.router_cpu_seconds += reader.cpu_seconds;
    if (reader.trigger_list) report.list_not_delivered += reader["not_taken"] + reader["undelivered"];
    std::uint64_t& pending = reader.trigger_list ? report.list_not_delivered : report.pending;
    for (const auto& subscriber : reader.subscribers) {
      if (over && !subscriber.monitor && !subscriber.gone) pending += subscriber.pending_chunks;
    }
  }
  report.input_cpu_seconds = status.input_cpu_seconds;
  report.limited_by = limited_by(status);
  report.input = status.input;
  report.readers = status.readers;
  report.front_ends = status.front_ends;
  if (status.front_ends) report.router_cpu_seconds += status.front_ends->cpu_seconds;
  report.no_data = over && report.sent == 0;
  report.condition = condition_of(report, over, aborted);
  return report;
}

}  // namespace rodeo::router
