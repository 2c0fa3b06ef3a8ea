#include "router/run/router_report_output.h"

#include <fmt/format.h>

#include <utility>

#include "base/sentence.h"
#include "base/units.h"
#include "formats/link_names.h"
#include "process/counters_json.h"
#include "router/subscriber_changes.h"

namespace rodeo::router {
namespace {

Json subscriber_json(const std::string& reader, const transport::Publisher::Subscriber& one) {
  return Json::object({{"name", one.name},
                       {"reader", reader},
                       {"kind", one.monitor ? "monitor" : "data"},
                       {"peer", one.peer},
                       {"provider", one.provider},
                       {"connected", one.connected},
                       {"links", one.links},
                       {"chunks", one.chunks},
                       {"bytes", one.bytes},
                       {"pages", one.pages},
                       {"page_slots", one.page_slots},
                       {"pages_filled", one.pages_filled},
                       {"waits", one.waits},
                       {"pending_chunks", one.pending_chunks},
                       {"dropped_chunks", one.dropped_chunks}});
}

Json front_ends_json(const FrontEndStatus& status) {
  Json owners = Json::array();
  for (const FrontEndStatus::Owner& owner : status.owners)
    owners.push_back(Json::object({{"name", owner.name},
                                   {"peer", owner.peer},
                                   {"links", owner.links},
                                   {"messages", owner.messages},
                                   {"bytes", owner.bytes}}));
  return Json::object({{"links", status.links},
                       {"cpu_seconds", status.cpu_seconds},
                       {"counters", process::counters_json(status.counters)},
                       {"owners", std::move(owners)}});
}

std::string bytes_text(std::uint64_t bytes) { return base::format_quantity(static_cast<double>(bytes), "B"); }

std::string subscriber_text(const ReaderStatus& reader, const transport::Publisher::Subscriber& one) {
  std::string out = fmt::format("{} of {}: {}, {} in {}", text_of(one), reader.name, base::counted(one.links, "link"),
                                base::counted(one.chunks, "chunk"), base::counted(one.pages, "page"));
  if (one.waits > 0) out += fmt::format(", {} for room", base::counted(one.waits, "wait"));
  if (one.dropped_chunks > 0) out += fmt::format(", {} dropped", base::counted(one.dropped_chunks, "chunk"));
  if (one.pending_chunks > 0) out += fmt::format(", {} NOT TAKEN", base::counted(one.pending_chunks, "chunk"));
  return out;
}

std::string verdict_text(const RouterReport& report) {
  std::string out;
  const auto add = [&](std::string text) { out += (out.empty() ? "" : ", ") + std::move(text); };
  if (!report.adds_up() && report.condition == Condition::wrong)
    add(fmt::format("{} chunks were sent, but {} published or counted", report.sent,
                    report.published + report.no_subscriber + report.not_taken));
  if (report.not_taken > 0)
    add(fmt::format("{} dropped, because a subscriber took nothing at the end", base::counted(report.not_taken, "chunk")));
  if (report.pending > 0) add(fmt::format("{} in pages that were not taken", base::counted(report.pending, "chunk")));
  if (report.list_not_delivered > 0)
    add(fmt::format("{} of the trigger's list not taken", base::counted(report.list_not_delivered, "packet")));
  for (const NamedCounter& loss : report.input_losses()) add(fmt::format("{} {}", loss.value, loss.name));
  if (report.no_data) add("the input brought nothing");
  if (!out.empty()) return out;
  return report.condition == Condition::aborted ? "cut short; no loss was counted" : "nothing was lost";
}

}  // namespace

Json report_json(const RouterReport& report) {
  Json out = Json::object();
  out["run"] = Json::object({{"name", report.name},
                             {"seconds", report.seconds},
                             {"condition", process::name_of(report.condition)},
                             {"failure", report.failure}});
  out["links"] = report.links;
  out["links_unread"] = report.links_unread;
  out["chunks"] = Json::object({{"sent", report.sent},
                                {"published", report.published},
                                {"no_subscriber", report.no_subscriber},
                                {"not_taken", report.not_taken},
                                {"pending", report.pending}});
  out["trigger_list"] = Json::object({{"not_delivered", report.list_not_delivered}});
  out["bytes"] = Json::object({{"in", report.bytes_in},
                               {"published", report.bytes_published},
                               {"no_subscriber", report.bytes_no_subscriber},
                               {"not_taken", report.bytes_not_taken},
                               {"cut", report.bytes_cut},
                               {"sent", report.bytes_sent}});
  Json cpu = Json::object({{"router", report.router_cpu_seconds}});
  if (report.input_cpu_seconds > 0) cpu["emulator"] = report.input_cpu_seconds;
  out["cpu_seconds"] = cpu;
  out["limited_by"] = report.limited_by;
  Json readers = Json::array();
  Json subscribers = Json::array();
  for (const ReaderStatus& reader : report.readers) {
    readers.push_back(Json::object({{"name", reader.name},
                                    {"links", reader.links.size()},
                                    {"trigger_list", reader.trigger_list},
                                    {"cpu_seconds", reader.cpu_seconds},
                                    {"counters", process::counters_json(reader.counters)}}));
    for (const auto& subscriber : reader.subscribers) subscribers.push_back(subscriber_json(reader.name, subscriber));
  }
  out["readers"] = std::move(readers);
  out["subscribers"] = std::move(subscribers);
  if (report.front_ends) out["front_ends"] = front_ends_json(*report.front_ends);
  out["input"] = process::counters_json(report.input);
  return out;
}

Json status_json(const RouterReport& so_far, const RouterStatus& status) {
  Json out = report_json(so_far);
  out["phase"] = process::phase_name(status.phase);
  out["waiting_for_subscribers"] = status.waiting;
  return out;
}

Json links_json(const RouterStatus& status) {
  Json out = Json::array();
  for (const ReaderStatus& reader : status.readers) {
    for (const LinkStatus& link : reader.links)
      out.push_back(Json::object({{"fid", formats::to_text(link.fid)},
                                  {"name", formats::link_name(link.fid)},
                                  {"reader", reader.name},
                                  {"chunks", link.tally.chunks},
                                  {"bytes", link.tally.bytes},
                                  {"errors", link.tally.errors}}));
  }
  return out;
}

std::string report_text(const RouterReport& report) {
  std::string out =
      fmt::format("router {}: {} after {:.1f} s", report.name, process::name_of(report.condition), report.seconds);
  const auto row = [&]<typename... T>(std::string_view head, fmt::format_string<T...> text, T&&... values) {
    out += fmt::format("\n  {:<11} ", head) + fmt::format(text, std::forward<T>(values)...);
  };
  if (!report.failure.empty()) row("failure", "{}", report.failure);
  row("chunks", "{} sent = {} published + {} no_subscriber + {} not_taken", report.sent, report.published,
      report.no_subscriber, report.not_taken);
  if (report.condition == Condition::wrong) out += "   THIS DOES NOT ADD UP";
  row("bytes", "{} in = {} published + {} no_subscriber + {} not_taken + {} cut; {} in pages", bytes_text(report.bytes_in),
      bytes_text(report.bytes_published), bytes_text(report.bytes_no_subscriber), bytes_text(report.bytes_not_taken),
      bytes_text(report.bytes_cut), bytes_text(report.bytes_sent));
  for (const ReaderStatus& reader : report.readers) {
    row(reader.trigger_list ? "list" : "reader", "{}: {}, {}, {} for subscribers, CPU {:.1f} s", reader.name,
        base::counted(reader.links.size(), "link"), base::counted(reader["chunks_read"], "chunk"),
        base::counted(reader["waits"], "wait"), reader.cpu_seconds);
    if (reader["error_chunks"] > 0) out += fmt::format(", {} with errors", base::counted(reader["error_chunks"], "chunk"));
    for (const auto& subscriber : reader.subscribers) row("subscriber", "{}", subscriber_text(reader, subscriber));
  }
  if (report.front_ends) {
    const auto count = [&](std::string_view name) { return counter_value(report.front_ends->counters, name); };
    row("front-ends", "{} sent ({}), {} failed", base::counted(count("messages_sent"), "message"),
        bytes_text(count("message_bytes_sent")), count("messages_failed"));
  }
  row("CPU", "router {:.1f} s", report.router_cpu_seconds);
  if (report.input_cpu_seconds > 0) out += fmt::format(", emulator {:.1f} s", report.input_cpu_seconds);
  row("limited by", "{}", report.limited_by);
  row("verdict", "{}", verdict_text(report));
  return out + "\n";
}

}  // namespace rodeo::router
