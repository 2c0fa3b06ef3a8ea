#include "readout/run/run_report_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/sentence.h"
#include "base/units.h"
#include "formats/link_names.h"
#include "process/counters_json.h"

namespace rodeo::readout {
namespace {

/// Texts for an input that brought nothing or lost data. The last entry is for inputs of plug-ins.
struct Advice {
  std::string_view input;
  std::string_view no_data;
  std::string_view lost;
};
constexpr Advice kAdvice[] = {
    {"card", "see that the cards are on and triggers come (rodeo card status, rodeo emulate status)",
     "in the card or on its links"},
    {"generator",
     "see that readout.input.rate is not too low for the time, and which of its chunks the fault_ keys keep back",
     "in the generator"},
    {"file", "see what the recording holds (rodeo data info FILE), and that readout.rob.links names links of it",
     "in the recording"},
    {"event_file", "see what the file holds (rodeo data list FILE), and that readout.rob.links names links of it",
     "in the event file"},
    {"network",
     "see what is on the network (rodeo route list --links), whether it has data (rodeo route status), and the warnings "
     "above",
     "in the network or before it"},
    {"", "see that its source is on, and that readout.rob.links names links of it", "in its source"},
};

std::string bytes_text(std::uint64_t bytes) { return base::format_quantity(static_cast<double>(bytes), "B"); }

std::string seconds_text(double seconds) {
  return base::format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

/// ": time_out 3, late 1", or nothing.
std::string reasons(const std::vector<NamedCounter>& counters) {
  std::string out;
  for (const NamedCounter& counter : counters)
    out += fmt::format("{} {} {}", out.empty() ? ":" : ",", counter.name, counter.value);
  return out;
}

/// Losses that the processes before this one report, on any link.
std::vector<NamedCounter> lost_upstream(const std::vector<NamedCounter>& input) {
  constexpr std::string_view kPrefix = "upstream_";
  std::vector<NamedCounter> lost;
  for (const NamedCounter& counter : input) {
    if (counter.name.starts_with(kPrefix)) lost.push_back({counter.name.substr(kPrefix.size()), counter.value});
  }
  return lost;
}

/// The fragments that a consumer failed to write or process. Shares and limits of the configuration are not losses.
std::string losses_text(const FragmentConsumer::Status& consumer) {
  constexpr std::string_view kPrefix = "unwritten_";
  std::vector<NamedCounter> unwritten;
  std::vector<NamedCounter> failed;
  std::uint64_t events = 0;
  for (const NamedCounter& counter : losses_of(consumer)) {
    if (!counter.name.starts_with(kPrefix)) {
      failed.push_back(counter);
      continue;
    }
    unwritten.push_back({counter.name.substr(kPrefix.size()), counter.value});
    events += counter.value;
  }
  std::string out;
  if (events > 0)
    out += fmt::format("\n  not written {} for {}{}", base::counted(events, "event"), consumer.name, reasons(unwritten));
  if (!failed.empty()) out += fmt::format("\n  failed      {}{}", consumer.name, reasons(failed));
  return out;
}

/// The mismatches, by consumer and counter, and the first place.
std::string wrong_text(const RunReport& report) {
  if (report.condition != Condition::wrong && report.mismatches == 0) return {};
  std::string out = "data are WRONG";
  if (report.condition == Condition::wrong && report.chunks_sent != report.chunks_built + report.lost())
    out +=
        fmt::format("; {} chunks were sent, but {} built or lost", report.chunks_sent, report.chunks_built + report.lost());
  if (report.condition == Condition::wrong && !report.bytes_add_up())
    out += fmt::format("; {} bytes of chunks came, but {} are built or lost", report.bytes_in,
                       report.bytes_built + report.bytes_lost_sum());
  for (const auto& consumer : report.consumers) {
    const std::vector<NamedCounter> mismatches = mismatches_of(consumer);
    if (mismatches.empty()) continue;
    out += fmt::format("; {}{}", consumer.name, reasons(mismatches));
    if (const NamedCounter* l1id = find_counter(consumer.counters, "first_wrong_l1id"))
      out += fmt::format(", first in L1 id {:#010x}", l1id->value);
    if (const std::uint64_t link_id = counter_value(consumer.counters, "first_wrong_link_id"); link_id != 0)
      out += fmt::format(", link id {:#010x}", link_id);
  }
  // Provable payload contains the link id: a wrong link id makes every chunk wrong.
  if (report.input_type == "card" && report.mismatches > 0 && report.verified_chunks == 0)
    out += "; no chunk is right: for endpoint 1 alone, set readout.input.connector = 1";
  return out + "; ";
}

constexpr std::size_t kNamed = 4;

std::string out_of_step_text(const KnownPlace& place) {
  return place.bcid_offset ? fmt::format("out of step (BCIDs too large by {})", *place.bcid_offset) : "out of step";
}

/// "; 12 chunks of link 0x40 in doubt", "; link 0x40 is out of step".
std::string doubt_verdict(const RunReport& report) {
  std::vector<const DoubtfulLink*> links;
  std::string out_of_step;
  for (const DoubtfulLink& one : report.doubtful) {
    if (one.place.in_doubt > 0) links.push_back(&one);
    if (one.place.out_of_step)
      out_of_step += fmt::format("; link {} is {}", formats::named_link(one.link.fid), out_of_step_text(one.place));
  }
  if (links.empty()) return out_of_step;
  std::ranges::stable_sort(links, std::greater{}, [](const DoubtfulLink* one) { return one->place.in_doubt; });
  if (links.size() == 1)
    return fmt::format("; {} of link {} in doubt", base::counted(report.in_doubt(), "chunk"),
                       formats::named_link(links[0]->link.fid)) +
           out_of_step;
  std::string out = fmt::format("; {} in doubt: ", base::counted(report.in_doubt(), "chunk"));
  for (std::size_t i = 0; i < std::min(kNamed, links.size()); ++i)
    out += fmt::format("{}{} of link {}", i == 0 ? "" : ", ", links[i]->place.in_doubt,
                       formats::named_link(links[i]->link.fid));
  return out + (links.size() > kNamed ? ", ..." : "") + out_of_step;
}

std::string doubt_text(const RunReport& report) {
  if (report.doubtful.empty()) return {};
  std::string out =
      fmt::format("\n  {:<11} {} of {}:", "in doubt", report.doubtful.size(), base::counted(report.links, "link"));
  for (std::size_t i = 0; i < std::min(kNamed, report.doubtful.size()); ++i) {
    const auto& [link, place] = report.doubtful[i];
    std::vector<std::string> what;
    if (place.out_of_step) what.push_back(out_of_step_text(place));
    if (place.in_doubt > 0) what.push_back(base::counted(place.in_doubt, "chunk"));
    if (place.moved > 0) what.push_back(fmt::format("moved {}", base::counted(place.moved, "time")));
    out += fmt::format("{} {} {}", i == 0 ? "" : ";", formats::named_link(link.fid), fmt::join(what, ", "));
  }
  return out + (report.doubtful.size() > kNamed ? "; ..." : "");
}

/// The losses, and whether they exceed the limit.
std::string loss_verdict(const RunReport& report) {
  const std::vector<Loss> losses = report.losses();
  if (losses.empty())
    return wrong_text(report) +
           (report.condition == Condition::aborted ? "cut short; no loss was counted" : "nothing was lost");
  std::string out;
  for (const Loss& loss : losses) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", loss.lost, loss.what);
    if (loss.of > 0) out += fmt::format(" of {} ({:.3g} %)", loss.of, loss.fraction() * 100);
  }
  const std::string allowed = fmt::format("fail_on_loss allows {:.3g} %", report.fail_on_loss * 100);
  if (report.lost_too_much()) return wrong_text(report) + "TOO MUCH IS LOST: " + out + "; " + allowed;
  return wrong_text(report) + out + (report.fail_on_loss < 1 ? "; " + allowed : "; --fail-on-loss sets a limit");
}

/// The last line of a report.
std::string verdict_text(const RunReport& report) { return loss_verdict(report) + doubt_verdict(report); }

Json losses_json(const RunReport& report) {
  Json what = Json::array();
  for (const Loss& loss : report.losses()) {
    what.push_back(Json::object({{"what", loss.what}, {"lost", loss.lost}, {"of", loss.of > 0 ? Json(loss.of) : Json()}}));
  }
  return Json::object({{"fraction", report.loss_fraction()},
                       {"allowed", report.fail_on_loss},
                       {"exceeded", report.lost_too_much()},
                       {"losses", what}});
}

/// The links that are missing or removed in most fragments.
std::string absent_text(std::string_view what, const RunReport& report, const std::vector<FragmentBuilder::Link>& links,
                        std::uint64_t FragmentBuilder::Link::* events) {
  if (links.empty()) return {};
  std::string out =
      fmt::format("\n  {:<11} {} of {} in some fragments:", what, links.size(), base::counted(report.links, "link"));
  for (std::size_t i = 0; i < std::min(kNamed, links.size()); ++i) {
    const FragmentBuilder::Link& link = links[i];
    out += fmt::format("{} {} in {}", i == 0 ? "" : ",", formats::named_link(link.fid), link.*events);
    if (link.chunks == 0) out += " (it brought nothing)";
  }
  return out + (links.size() > kNamed ? ", ..." : "");
}

Json link_json(const FragmentBuilder::Link& link) {
  return Json::object({{"fid", formats::to_text(link.fid)},
                       {"name", formats::link_name(link.fid)},
                       {"state", link.state == LinkState::active ? "active" : "removed"},
                       {"removed_by_policy", link.removed_by_policy},
                       {"chunks", link.chunks},
                       {"missing", link.missing},
                       {"left_out", link.left_out},
                       {"bad", link.bad}});
}

Json link_json(const FragmentBuilder::Link& link, const KnownPlace& place) {
  Json out = link_json(link);
  out["in_doubt"] = place.in_doubt;
  out["moved"] = place.moved;
  out["out_of_step"] = place.out_of_step;
  out["bcid_offset"] = place.bcid_offset ? Json(std::uint64_t{*place.bcid_offset}) : Json();
  return out;
}

}  // namespace

std::string latency_text(const Latency& latency, std::string_view between) {
  if (!latency.measured()) return "not measured: no event was complete";
  return fmt::format("p50 {:.0f} us{}p99 {:.0f} us{}max {:.0f} us", latency.p50_us, between, latency.p99_us, between,
                     latency.max_us);
}

Json report_json(const RunReport& report) {
  Json cpu = Json::object();
  for (const auto& [stage, seconds] : report.cpu_seconds) cpu[stage] = seconds;
  Json consumers = Json::object();
  for (const auto& consumer : report.consumers) {
    consumers[consumer.name] = Json::object({{"consumed", consumer.consumed},
                                             {"stalls", consumer.stalls},
                                             {"counters", process::counters_json(consumer.counters)}});
  }
  Json missing = Json::array();
  for (const auto& link : report.missing) missing.push_back(link_json(link));
  Json removed = Json::array();
  for (const auto& link : report.left_out) removed.push_back(link_json(link));
  Json doubtful = Json::array();
  for (const auto& [link, place] : report.doubtful) doubtful.push_back(link_json(link, place));
  Json out = Json::object();
  out["run"] = Json::object({{"name", report.name},
                             {"number", report.run_number},
                             {"seconds", report.seconds},
                             {"condition", name_of(report.condition)},
                             {"failure", report.failure}});
  out["links"] = report.links;
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  out["offered_rate_hz"] = or_null(report.offered_rate_hz);
  out["trigger_rate_hz"] = report.trigger_rate_hz;
  out["dead_time_fraction"] = or_null(report.dead_time_fraction);
  out["chunks"] = Json::object(
      {{"sent", report.chunks_sent}, {"built", report.chunks_built}, {"lost", process::counters_json(report.chunks_lost)}});
  out["limited_by"] = report.limited_by;
  out["fragments"] =
      Json::object({{"built", report.fragments},
                    {"events", report.events_built},
                    {"incomplete", report.incomplete},
                    {"skipped_events", report.skipped},
                    {"without_removed_links", report.without_removed},
                    {"incomplete_by_reason", process::counters_json(report.incomplete_by_reason)},
                    {"missing_links", missing},
                    {"removed_links", removed},
                    {"doubtful_links", doubtful},
                    {"chunks_in_doubt", report.in_doubt()},
                    {"rate_hz", report.seconds > 0 ? static_cast<double>(report.fragments) / report.seconds : 0.0}});
  out["bytes"] = Json::object({{"in", report.bytes_in},
                               {"built", report.bytes_known ? Json(report.bytes_built) : Json()},
                               {"lost", process::counters_json(report.bytes_lost)},
                               {"payload", report.bytes_payload},
                               {"written", report.bytes_written}});
  const auto latency = [&](double us) { return report.latency.measured() ? Json(us) : Json(); };
  out["latency_us"] = Json::object({{"p50", latency(report.latency.p50_us)},
                                    {"p99", latency(report.latency.p99_us)},
                                    {"max", latency(report.latency.max_us)}});
  out["cpu_seconds"] = cpu;
  out["verified"] = Json::object({{"chunks", report.verified_chunks}, {"mismatches", report.mismatches}});
  out["files"] = Json::array();
  for (const auto& file : report.files) out["files"].push_back(file.path);
  out["loss"] = losses_json(report);
  out["consumers"] = std::move(consumers);
  out["input"] = process::counters_json(report.input);
  return out;
}

Json status_json(const RunReport& so_far, const ReadoutStatus& status) {
  Json out = report_json(so_far);
  out["phase"] = process::phase_name(status.phase);
  out["input_ready"] = status.input_ready;
  out["limited_by_now"] = status.limited_by;
  Json robs = Json::array();
  for (const auto& rob : status.robs) {
    Json links = Json::array();
    for (std::size_t i = 0; i < rob.builder.links.size(); ++i)
      links.push_back(link_json(rob.builder.links[i], rob.place_of(i)));
    robs.push_back(Json::object({{"source_id", formats::to_text(rob.source_id)},
                                 {"groups", rob.groups},
                                 {"open_events", rob.builder.open_events},
                                 {"window_events", rob.builder.window_events},
                                 {"pool_fill", rob.builder.pool_fill},
                                 {"links", links}}));
  }
  out["robs"] = robs;
  Json queues = Json::object();
  for (const auto& consumer : status.consumers) queues[consumer.name] = consumer.queue_fill;
  out["queue_fill"] = std::move(queues);
  return out;
}

std::string report_text(const RunReport& report) {
  std::string out = fmt::format("run {} of {}: {} after {:.1f} s", report.run_number, report.name, name_of(report.condition),
                                report.seconds);
  const auto row = [&]<typename... T>(std::string_view head, fmt::format_string<T...> text, T&&... values) {
    out += fmt::format("\n  {:<11} ", head) + fmt::format(text, std::forward<T>(values)...);
  };
  if (!report.failure.empty()) row("failure", "{}", report.failure);
  row("triggers", "{} accepted", base::format_quantity(report.trigger_rate_hz, "Hz"));
  if (!report.offered_rate_hz && report.trigger_seconds < 0.9 * report.seconds)
    out += fmt::format(" in the {:.1f} s with data", report.trigger_seconds);
  if (report.offered_rate_hz && report.dead_time_fraction) {
    out += fmt::format(" of {} offered, dead time {:.2f} %", base::format_quantity(*report.offered_rate_hz, "Hz"),
                       *report.dead_time_fraction * 100);
  } else {
    out += "; dead time is not known here";
  }
  row("chunks", "{} {} = {} built + {} lost{}", report.chunks_sent, report.sent_by_input ? "sent" : "received",
      report.chunks_built, report.lost(), reasons(report.chunks_lost));
  if (report.chunks_sent != report.chunks_built + report.lost()) out += "   THIS DOES NOT ADD UP";
  row("fragments", "{} built of {}, {} incomplete{}", report.fragments, base::counted(report.links, "link"),
      report.incomplete, reasons(report.incomplete_by_reason));
  if (report.open_at_stop > 0) row("", "{} of these were open when the run was stopped: not a loss", report.open_at_stop);
  if (report.without_removed > 0) row("", "{} lack links that were removed", report.without_removed);
  out += absent_text("missing", report, report.missing, &FragmentBuilder::Link::missing);
  out += absent_text("removed", report, report.left_out, &FragmentBuilder::Link::left_out);
  out += doubt_text(report);
  if (report.bytes_known)
    row("bytes", "{} in = {} built + {} lost{}", report.bytes_in, report.bytes_built, report.bytes_lost_sum(),
        reasons(report.bytes_lost));
  if (!report.bytes_add_up()) out += "   THIS DOES NOT ADD UP";
  row(report.bytes_known ? "" : "bytes", "{} of fragments, {} written", bytes_text(report.bytes_payload),
      bytes_text(report.bytes_written));
  row("latency", "{}", latency_text(report.latency, ", "));
  std::string cpu;
  for (const auto& [stage, seconds] : report.cpu_seconds)
    cpu += fmt::format("{}{} {}", cpu.empty() ? "" : ", ", stage, seconds_text(seconds));
  row("CPU", "{}", cpu);
  for (const auto& consumer : report.consumers) out += losses_text(consumer);
  const Advice& advice =
      *std::ranges::find_if(kAdvice, [&](const Advice& one) { return one.input.empty() || one.input == report.input_type; });
  if (report.no_data) row("input", "no data came: {}", advice.no_data);
  if (const auto losses = report.input_losses(); !losses.empty())
    row("input", "data were lost before they came here, {}{}", advice.lost, reasons(losses));
  if (const std::string lost = reasons(lost_upstream(report.input)); !lost.empty())
    row("upstream", "lost there, on any link{}", lost);
  if (const std::uint64_t silent = counter_value(report.input, "cards_silent"); silent > 0)
    row("input", "{} had brought nothing for a second or longer at the end, while others had",
        base::counted(silent, "card"));
  if (const std::uint64_t damaged = counter_value(report.input, "damaged"); damaged > 0)
    row("input", "the recording is damaged in {}; `rodeo data verify` says where", base::counted(damaged, "place"));
  row("limited by", "{}", report.limited_by);
  if (report.verified_chunks + report.mismatches > 0)
    row("verified", "{} in passing, {}", base::counted(report.verified_chunks, "chunk"),
        report.mismatches == 1 ? "1 mismatch" : fmt::format("{} mismatches", report.mismatches));
  for (std::size_t i = 0; i < std::min(kNamed, report.files.size()); ++i)
    row("file", "{} in {}", base::counted(report.files[i].events, "event"), report.files[i].path);
  if (report.files.size() > kNamed) row("", "and {} more", report.files.size() - kNamed);
  row("verdict", "{}", verdict_text(report));
  return out + "\n";
}

}  // namespace rodeo::readout
