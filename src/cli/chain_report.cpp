#include "cli/chain_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/sentence.h"
#include "base/units.h"
#include "cli/output.h"
#include "emulator/chunk_books.h"
#include "process/phase.h"

namespace rodeo::cli {
namespace {

using process::Condition;

const Json& at(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* found = &json;
  for (const std::string_view key : path) found = &member(*found, key);
  return *found;
}

/// Adds `more` to `sum`; counts stay integers.
void add(Json& sum, const Json& more) {
  if (!more.is_number()) return;
  if (more.is_unsigned() && (sum.is_null() || sum.is_unsigned())) {
    sum = sum.unsigned_integer() + more.unsigned_integer();
  } else if (more.is_signed() && more.number() >= 0 && (sum.is_null() || sum.is_unsigned())) {
    sum = sum.unsigned_integer() + static_cast<std::uint64_t>(more.signed_integer());
  } else {
    sum = sum.number() + more.number();
  }
}

std::uint64_t count(const Json& json) { return static_cast<std::uint64_t>(json.number()); }

/// The reports of a kind of process.
class Reports {
 public:
  Reports(const ChainRun& run, std::string_view kind) {
    for (const ChainProcess& one : run.processes) {
      if (one.kind != kind) continue;
      if (one.report.is_null()) {
        ++silent_;
      } else {
        of_.push_back(&one);
      }
    }
  }

  /// True if there are such processes and each has left a report.
  bool complete() const { return silent_ == 0 && !of_.empty(); }
  bool some_silent() const { return silent_ > 0; }

  Json sum(std::initializer_list<std::string_view> path) const {
    Json out = std::uint64_t{0};
    for (const ChainProcess* one : of_) add(out, at(one->report, path));
    return out;
  }
  /// Sums of all numbers of an object, by their names.
  Json sums(std::initializer_list<std::string_view> path) const {
    Json out = Json::object();
    for (const ChainProcess* one : of_) {
      for (const auto& [name, value] : at(one->report, path).members()) add(out[name], value);
    }
    return out;
  }
  Json list(std::initializer_list<std::string_view> path) const {
    Json out = Json::array();
    for (const ChainProcess* one : of_) {
      for (const Json& element : at(one->report, path).elements()) out.push_back(element);
    }
    return out;
  }
  /// The largest value; null if no report has one.
  Json largest(std::initializer_list<std::string_view> path) const {
    Json out;
    for (const ChainProcess* one : of_) {
      const Json& value = at(one->report, path);
      if (value.is_number() && (out.is_null() || value.number() > out.number())) out = value;
    }
    return out;
  }
  const Json& last() const {
    static const Json nothing = Json::object();
    return of_.empty() ? nothing : of_.back()->report;
  }
  const std::vector<const ChainProcess*>& all() const { return of_; }

 private:
  std::vector<const ChainProcess*> of_;
  std::size_t silent_ = 0;
};

Condition condition_named(std::string_view name) {
  for (const Condition one : {Condition::good, Condition::wrong, Condition::aborted}) {
    if (name == process::name_of(one)) return one;
  }
  return Condition::incomplete;
}

int badness(Condition condition) {
  constexpr Condition kOrder[] = {Condition::good, Condition::incomplete, Condition::aborted, Condition::wrong};
  return static_cast<int>(std::ranges::find(kOrder, condition) - std::begin(kOrder));
}

/// The largest number of chunks that the damage found by inputs can have cost, by the same counters as in
/// python/rodeo/control/state/balance.py.
std::uint64_t most_damaged(const Reports& reports) {
  // A block or page of 64 KiB is full of chunks of 8 bytes with their trailers.
  constexpr std::uint64_t kOfABlock = 8192;
  struct Damage {
    std::string_view counter;
    std::uint64_t chunks;  // the most that one of it costs
  };
  constexpr Damage kDamage[] = {{"sequence_gaps", kOfABlock},   {"lost_blocks", kOfABlock},
                                {"bad_marker", kOfABlock},      {"bad_trailer", kOfABlock},
                                {"page_gaps", kOfABlock},       {"packet_gaps", kOfABlock},
                                {"lost_pages", kOfABlock},      {"bad_rdh", kOfABlock},
                                {"damaged", kOfABlock},         {"skipped_bytes", 1},
                                {"network_cut_chunks", 1},      {"list_network_lost", 1},
                                {"list_network_cut_chunks", 1}, {"oversize", 1}};
  const Json input = reports.sums({"input"});
  std::uint64_t most = 0;
  for (const Damage& one : kDamage) {
    const std::uint64_t places = count(member(input, one.counter));
    most += std::min(places, std::uint64_t{1} << 40) * one.chunks;
  }
  return most;
}

/// Chunks of all processes: sent chunks are in fragments, or lost for a reason. The cards count the sent chunks. If a card
/// left no report, the routers' counts are used, else the readouts'. The rest has the terms of
/// python/rodeo/control/state/balance.py, in the same order: pages that readouts did not acknowledge; links that a router
/// left out, at most one chunk for each trigger and link; chunks lost with a router or readout without a report; damage that
/// an input found, at most what fits into the damaged places.
Json chunks_of(const ChainRun& run) {
  const Reports readouts(run, "readout");
  const Reports routers(run, "router");
  const Reports emulators(run, "emulator");
  Json lost = Json::object();
  std::uint64_t lost_sum = 0;
  const auto lose = [&](const std::string& reason, const Json& chunks) {
    if (count(chunks) == 0) return;
    add(lost[reason], chunks);
    lost_sum += count(chunks);
  };
  std::uint64_t by_cards = 0;
  const Json functions = emulators.list({"functions"});
  for (const Json& function : functions.elements()) {
    by_cards += count(member(function, "chunks"));
    for (const std::string_view name : emulator::kChunkLosses)
      lose(fmt::format("card_{}", name.substr(name.find('_') + 1)), at(function, {"counters", name}));
  }
  by_cards += lost_sum;
  const std::uint64_t by_routers = count(routers.sum({"chunks", "sent"})) + lost_sum;
  for (const char* const reason : {"no_subscriber", "not_taken"})
    lose(fmt::format("router_{}", reason), routers.sum({"chunks", reason}));
  lose("network_lost", readouts.sum({"input", "network_lost"}));
  const std::uint64_t by_readouts = count(readouts.sum({"chunks", "sent"})) + lost_sum;
  const Json reasons = readouts.sums({"chunks", "lost"});
  for (const auto& [reason, chunks] : reasons.members()) lose(reason, chunks);

  const std::uint64_t sent = emulators.complete() ? by_cards : routers.complete() ? by_routers : by_readouts;
  std::uint64_t triggers = 0;
  for (const Json& function : functions.elements()) triggers = std::max(triggers, count(member(function, "triggers")));
  const bool silent = (emulators.complete() && routers.some_silent()) ||
                      ((emulators.complete() || routers.complete()) && readouts.some_silent());
  const std::uint64_t built = count(readouts.sum({"chunks", "built"}));
  const auto lose_of_rest = [&](const char* reason, std::uint64_t most) {
    if (built + lost_sum < sent) lose(reason, Json(std::min(most, sent - built - lost_sum)));
  };
  lose_of_rest("router_undelivered", count(routers.sum({"chunks", "pending"})));
  if (emulators.complete()) lose_of_rest("router_left_out", count(routers.sum({"links_unread"})) * triggers);
  if (silent) lose_of_rest("not_reported", UINT64_MAX);
  if (const std::uint64_t most = most_damaged(readouts) + most_damaged(routers); most > 0) lose_of_rest("damaged", most);
  return Json::object({{"sent", sent}, {"built", built}, {"lost", std::move(lost)}});
}

bool adds_up(const Json& chunks) {
  std::uint64_t known = count(member(chunks, "built"));
  for (const auto& [reason, lost] : member(chunks, "lost").members()) known += count(lost);
  return known == count(member(chunks, "sent"));
}

/// Bytes of chunks. Bytes that readouts received are built, or lost for a reason. If no chunk was lost on the network,
/// readouts received all bytes that routers published. A sum is not checked if a process does not report its part (a
/// plug-in's builder, for example).
Json bytes_of(const ChainRun& run) {
  const Reports readouts(run, "readout");
  const Reports routers(run, "router");
  const auto all_tell = [](const Reports& reports, std::string_view key) {
    return reports.complete() && std::ranges::all_of(reports.all(), [&](const ChainProcess* one) {
             return at(one->report, {"bytes", key}).is_number();
           });
  };
  const Json in = readouts.sum({"bytes", "in"});
  const Json published = routers.sum({"bytes", "published"});
  const Json built = readouts.sum({"bytes", "built"});
  Json lost = readouts.sums({"bytes", "lost"});
  std::uint64_t known = count(built);
  for (const auto& [reason, bytes] : lost.members()) known += count(bytes);
  double missing = readouts.sum({"input", "network_lost"}).number() + routers.sum({"chunks", "pending"}).number();
  for (const char* const what : {"network_cut_chunks", "network_cut_off", "network_bad_pages"})
    missing += readouts.sum({"input", what}).number();
  const bool built_hold = !all_tell(readouts, "built") || known == count(in);
  const bool way_holds =
      !all_tell(routers, "published") || !all_tell(readouts, "in") || missing > 0 || count(published) == count(in);
  return Json::object({{"in", in},
                       {"published", all_tell(routers, "published") ? published : Json()},
                       {"built", built},
                       {"lost", std::move(lost)},
                       {"adds_up", built_hold && way_holds},
                       {"payload", readouts.sum({"bytes", "payload"})},
                       {"written", Reports(run, "recorder").sum({"bytes", "files"})}});
}

/// Events, from trigger to file.
Json farm_of(const ChainRun& run) {
  const Reports supervisors(run, "supervisor");
  const Reports recorders(run, "recorder");
  const Reports nodes(run, "node");
  const Reports emulators(run, "emulator");
  const auto events = [&](std::string_view key) { return count(at(supervisors.last(), {"events", key})); };
  const farm::Decided decided =
      run.decided.value_or(farm::Decided{events("accepted"), events("rejected"), events("debug"), events("readout_died")});
  const std::uint64_t all = decided.all();
  // Without the card's report: the events of the supervisor. If it was restarted, no report has all events, and the sum is
  // unknown.
  std::optional<std::uint64_t> triggers;
  if (emulators.complete()) {
    triggers = count(emulators.sum({"trigger", "accepted"}));
  } else if (supervisors.complete() && supervisors.all().size() == 1) {
    triggers = events("in");
  }
  // A restarted recorder has read back the events of its earlier lives.
  const std::uint64_t recorded =
      count(recorders.largest({"events", "recorded"})) + count(at(recorders.last(), {"events", "read_back"}));
  return Json::object({{"triggers", triggers ? Json(*triggers) : Json()},
                       {"accepted", decided.accepted},
                       {"rejected", decided.rejected},
                       {"debug", decided.debug},
                       {"readout_died", decided.lost},
                       {"undecided", triggers ? Json(*triggers - std::min(*triggers, all)) : Json()},
                       {"partial", events("partial")},
                       {"reassigned", events("reassigned")},
                       {"recorded", recorded},
                       {"adds_up", triggers ? Json(all <= *triggers) : Json()},
                       {"latency_us", Json::object({{"building_p50", nodes.largest({"latency_us", "building_p50"})},
                                                    {"building_p99", nodes.largest({"latency_us", "building_p99"})},
                                                    {"deciding_p50", nodes.largest({"latency_us", "deciding_p50"})},
                                                    {"deciding_p99", nodes.largest({"latency_us", "deciding_p99"})}})}});
}

double cpu_of(const ChainProcess& one) {
  if (one.kind == "emulator") return member(one.report, "cpu_seconds").number();
  double sum = 0;
  for (const auto& [stage, seconds] : member(one.report, "cpu_seconds").members()) sum += seconds.number();
  return sum;
}

/// CPU time by stage, upstream first; each CPU second counts in one stage.
Json cpu_seconds(const ChainRun& run) {
  Json out = Json::object();
  for (const ChainProcess& one : run.processes) {
    if (one.kind == "emulator") {
      add(out["emulator"], member(one.report, "cpu_seconds"));
    } else {
      for (const auto& [stage, seconds] : member(one.report, "cpu_seconds").members()) add(out[stage], seconds);
    }
  }
  return out;
}

Json processes_json(const ChainRun& run) {
  Json out = Json::array();
  for (const ChainProcess& one : run.processes) {
    const Json& condition = at(one.report, {"run", "condition"});
    out.push_back(Json::object({{"name", one.name},
                                {"kind", one.kind},
                                {"reported", !one.report.is_null()},
                                {"condition", condition.is_string() ? condition : Json()},
                                {"cpu_seconds", one.report.is_null() ? Json() : Json(cpu_of(one))}}));
  }
  return out;
}

/// The losses of all readouts, each with the name of its readout.
Json loss_of(const Reports& readouts) {
  Json losses = Json::array();
  Json out = Json::object({{"fraction", 0.0}, {"allowed", 1.0}, {"exceeded", false}});
  for (const ChainProcess* one : readouts.all()) {
    const Json& loss = member(one->report, "loss");
    for (Json each : member(loss, "losses").elements()) {
      each["what"] = fmt::format("{} ({})", member(each, "what").string(), one->name);
      losses.push_back(std::move(each));
    }
    out["fraction"] = std::max(out["fraction"].number(), member(loss, "fraction").number());
    out["allowed"] = member(loss, "allowed").number();
    if (member(loss, "exceeded").boolean()) out["exceeded"] = true;
  }
  out["losses"] = std::move(losses);
  return out;
}

/// The stage that held back the trigger; `nothing` if the dead time is below 1 %.
std::string limit_of(const ChainRun& run, double dead_time) {
  constexpr double kHardly = 0.01;
  const auto real = [](const std::string& stage) { return !stage.empty() && stage != "nothing" && stage != "input"; };
  if (dead_time < kHardly) return "nothing";
  if (real(run.limited_by)) return run.limited_by;
  const Reports readouts(run, "readout");
  for (const ChainProcess* one : readouts.all()) {
    if (const std::string& stage = at(one->report, {"limited_by"}).string(); real(stage))
      return fmt::format("{} of {}", stage, one->name);
  }
  const std::string& subscriber = at(Reports(run, "router").last(), {"limited_by"}).string();
  return real(subscriber) ? subscriber : "input";
}

Condition condition_of(const ChainRun& run, const Json& report) {
  std::vector<Condition> all{Condition::good};
  if (!run.failure.empty()) all.push_back(Condition::aborted);
  for (const ChainProcess& one : run.processes) {
    const Json& said = at(one.report, {"run", "condition"});
    if (said.is_string()) all.push_back(condition_named(said.string()));
    if (one.report.is_null()) all.push_back(Condition::incomplete);
  }
  const Json& farm = member(report, "farm");
  if (!member(report, "chunks").find("lost")->members().empty() || count(member(farm, "undecided")) > 0)
    all.push_back(Condition::incomplete);
  // The sums of an aborted run cannot hold.
  const bool aborted = std::ranges::find(all, Condition::aborted) != all.end();
  const bool holds = adds_up(member(report, "chunks")) && at(report, {"bytes", "adds_up"}).boolean() &&
                     (member(farm, "adds_up").is_null() || member(farm, "adds_up").boolean());
  if (!holds && !aborted) all.push_back(Condition::wrong);
  if (at(report, {"verified", "mismatches"}).number() > 0) all.push_back(Condition::wrong);
  return std::ranges::max(all, {}, badness);
}

/// True if no process counted the triggers.
bool cannot_be_checked(const Json& report) { return at(report, {"farm", "triggers"}).is_null(); }
constexpr std::string_view kCannotBeChecked =
    "this cannot be checked: the card left no report, and the supervisor was restarted or left none";

Json rate(const Json& events, double seconds) { return seconds > 0 ? Json(events.number() / seconds) : Json(); }

}  // namespace

Json chain_report(const ChainRun& run) {
  const Reports readouts(run, "readout");
  const Reports recorders(run, "recorder");
  const Json& trigger = member(Reports(run, "emulator").last(), "trigger");
  const double offered = member(trigger, "offered").number();
  const double accepted = member(trigger, "accepted").number();
  const double offering = member(trigger, "offering_seconds").number();
  const double dead_time = offered > 0 ? (offered - accepted) / offered : 0;
  Json out = Json::object();
  out["run"] = Json::object({{"name", run.name},
                             {"number", at(Reports(run, "supervisor").last(), {"run", "number"})},
                             {"seconds", readouts.largest({"run", "seconds"})},
                             {"condition", ""},
                             {"failure", run.failure}});
  out["links"] = readouts.sum({"links"});
  out["offered_rate_hz"] = rate(member(trigger, "offered"), offering);
  out["trigger_rate_hz"] = rate(member(trigger, "accepted"), offering);
  out["dead_time_fraction"] = dead_time;
  out["chunks"] = chunks_of(run);
  out["limited_by"] = limit_of(run, dead_time);
  Json fragments = Json::object();
  for (const char* const key : {"built", "incomplete", "skipped_events", "without_removed_links", "chunks_in_doubt"})
    fragments[key] = readouts.sum({"fragments", key});
  fragments["incomplete_by_reason"] = readouts.sums({"fragments", "incomplete_by_reason"});
  for (const char* const key : {"missing_links", "removed_links", "doubtful_links"})
    fragments[key] = readouts.list({"fragments", key});
  fragments["events"] = readouts.largest({"fragments", "events"});
  fragments["rate_hz"] = readouts.sum({"fragments", "rate_hz"});
  out["fragments"] = std::move(fragments);
  out["farm"] = farm_of(run);
  out["bytes"] = bytes_of(run);
  out["latency_us"] = Json::object({{"p50", readouts.largest({"latency_us", "p50"})},
                                    {"p99", readouts.largest({"latency_us", "p99"})},
                                    {"max", readouts.largest({"latency_us", "max"})}});
  out["cpu_seconds"] = cpu_seconds(run);
  out["processes"] = processes_json(run);
  out["verified"] = Json::object(
      {{"chunks", readouts.sum({"verified", "chunks"})}, {"mismatches", readouts.sum({"verified", "mismatches"})}});
  out["files"] = Json::array();
  const Json files = recorders.list({"files"});
  for (const Json& file : files.elements()) out["files"].push_back(member(file, "path"));
  out["loss"] = loss_of(readouts);
  out["consumers"] = Json::object();
  for (const ChainProcess* one : readouts.all()) {
    for (const auto& [name, consumer] : member(one->report, "consumers").members())
      out["consumers"][fmt::format("{}.{}", one->name, name)] = consumer;
  }
  const Json input = readouts.sums({"input"});
  out["input"] = Json::object();
  // Every readout knows the same losses of the routers: take the largest, not the sum.
  for (const auto& [name, sum] : input.members())
    out["input"][name] = name.starts_with("upstream_") ? readouts.largest({"input", name}) : sum;
  out["run"]["condition"] = process::name_of(condition_of(run, out));
  return out;
}

std::string chain_report_text(const Json& report) {
  const auto number = [&](std::string_view group, std::string_view key) { return at(report, {group, key}).number(); };
  const auto events = [&](std::string_view key) { return number("farm", key); };
  std::vector<std::string> lost;
  for (const auto& [reason, chunks] : at(report, {"chunks", "lost"}).members())
    lost.push_back(fmt::format("{} {:.0f}", reason, chunks.number()));
  std::vector<std::string> cpu;
  for (const auto& [stage, seconds] : member(report, "cpu_seconds").members())
    cpu.push_back(fmt::format("{} {:.1f} s", stage, seconds.number()));
  std::vector<std::string> silent;
  std::vector<std::string> not_good;
  for (const Json& one : member(report, "processes").elements()) {
    const std::string& said = member(one, "condition").string();
    if (!member(one, "reported").boolean()) silent.push_back(member(one, "name").string());
    if (!said.empty() && said != process::name_of(Condition::good))
      not_good.push_back(fmt::format("{} {}", member(one, "name").string(), said));
  }
  const std::string& failure = at(report, {"run", "failure"}).string();
  std::string out = fmt::format("{}: run {:.0f} of {} took {:.1f} s\n", at(report, {"run", "condition"}).string(),
                                number("run", "number"), at(report, {"run", "name"}).string(), number("run", "seconds"));
  if (!failure.empty()) out += fmt::format("  failure     {}\n", failure);
  if (!not_good.empty()) out += fmt::format("  not good    {}\n", fmt::join(not_good, ", "));
  if (!silent.empty()) out += fmt::format("  no report   of {}\n", fmt::join(silent, ", "));
  out += fmt::format("  triggers    {} offered, {} accepted, dead time {:.2f} %\n",
                     base::format_quantity(member(report, "offered_rate_hz").number(), "Hz"),
                     base::format_quantity(member(report, "trigger_rate_hz").number(), "Hz"),
                     member(report, "dead_time_fraction").number() * 100);
  out += fmt::format("  chunks      {:.0f} sent = {:.0f} in fragments + lost: {}{}\n", number("chunks", "sent"),
                     number("chunks", "built"), lost.empty() ? "0" : fmt::format("{}", fmt::join(lost, ", ")),
                     adds_up(member(report, "chunks")) ? "" : "   THIS DOES NOT ADD UP");
  double bytes_lost = 0;
  for (const auto& [reason, bytes] : at(report, {"bytes", "lost"}).members()) bytes_lost += bytes.number();
  out += fmt::format("  bytes       {:.0f} in = {:.0f} built + {:.0f} lost{}\n", number("bytes", "in"),
                     number("bytes", "built"), bytes_lost,
                     at(report, {"bytes", "adds_up"}).boolean() ? "" : "   THIS DOES NOT ADD UP");
  out += fmt::format("  fragments   {:.0f}, {:.0f} incomplete\n", number("fragments", "built"),
                     number("fragments", "incomplete"));
  const std::string decided = fmt::format("{:.0f} accepted + {:.0f} rejected + {:.0f} debug + {:.0f} readout_died",
                                          events("accepted"), events("rejected"), events("debug"), events("readout_died"));
  if (cannot_be_checked(report)) {
    out += fmt::format("  events      {}; {}\n", decided, kCannotBeChecked);
  } else {
    out += fmt::format("  events      {:.0f} triggers = {} + {:.0f} undecided{}\n", events("triggers"), decided,
                       events("undecided"), at(report, {"farm", "adds_up"}).boolean() ? "" : "   THIS DOES NOT ADD UP");
  }
  out += fmt::format("  of these    {:.0f} partial; {:.0f} times assigned again\n", events("partial"), events("reassigned"));
  out += fmt::format("  recorded    {:.0f} events, {}B in {}\n", events("recorded"),
                     base::format_count(number("bytes", "written")),
                     base::counted(member(report, "files").elements().size(), "file"));
  out += fmt::format("  verified    {:.0f} chunks during the run, {:.0f} mismatches\n", number("verified", "chunks"),
                     number("verified", "mismatches"));
  const Json& latency = at(report, {"farm", "latency_us"});
  if (const Json& p50 = member(latency, "deciding_p50"); p50.is_number())
    out += fmt::format("  latency     built p50 {:.0f} us, p99 {:.0f} us; decided p50 {:.0f} us, p99 {:.0f} us\n",
                       member(latency, "building_p50").number(), member(latency, "building_p99").number(), p50.number(),
                       member(latency, "deciding_p99").number());
  out += fmt::format("  CPU         {}\n", fmt::join(cpu, ", "));
  return out + fmt::format("  limited by  {}\n", member(report, "limited_by").string());
}

bool chain_sum_holds(const Json& report, std::uint64_t in_files) {
  const Json& farm = member(report, "farm");
  const auto events = [&](std::string_view key) { return count(member(farm, key)); };
  const std::uint64_t kept = events("accepted") + events("debug");
  if (cannot_be_checked(report)) return kept <= in_files;
  // An event in a file may be undecided, if the run ended before the supervisor knew of it.
  return member(farm, "adds_up").boolean() && events("triggers") > 0 && kept <= in_files &&
         in_files <= kept + events("undecided");
}

std::string chain_sum_text(const Json& report, std::uint64_t in_files) {
  const Json& farm = member(report, "farm");
  const auto events = [&](std::string_view key) { return count(member(farm, key)); };
  if (cannot_be_checked(report)) {
    return fmt::format("the triggers are not known: {} accepted + {} debug (read back: {}) + {} rejected + {} lost; {}",
                       events("accepted"), events("debug"), in_files, events("rejected"), events("readout_died"),
                       kCannotBeChecked);
  }
  const std::string parts = fmt::format(
      "{} triggers = {} accepted + {} debug (both in files, read back: {}) + {} rejected + {} lost", events("triggers"),
      events("accepted"), events("debug"), in_files, events("rejected"), events("readout_died") + events("undecided"));
  return (chain_sum_holds(report, in_files) ? "each trigger is in one place: " : "THE SUM DOES NOT HOLD: ") + parts;
}

}  // namespace rodeo::cli
