#include "cli/demo_room.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/sentence.h"
#include "base/units.h"
#include "cli/chain_parts.h"
#include "cli/chain_report.h"
#include "cli/demo_chain.h"
#include "cli/python.h"
#include "cli/verbs.h"
#include "process/stop_signals.h"
#include "settings/text_file.h"

namespace rodeo::cli {
namespace {

/// One [[control.process]]. JSON strings are valid TOML strings.
std::string process_table(std::string_view name, std::string_view kind, const std::string& file,
                          const std::vector<std::string>& settings, std::string_view more = "") {
  std::vector<std::string> quoted;
  for (const std::string& one : settings) quoted.push_back(Json(one).dump());
  return fmt::format("\n[[control.process]]\nname = \"{}\"\nkind = \"{}\"\nconfiguration = \"{}\"\n{}set = [{}]\n", name,
                     kind, file, more, fmt::join(quoted, ", "));
}

/// All processes of the chain. Farm processes that die are restarted, and no event is lost.
std::string chain_tables(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                         const std::string& file) {
  std::string text;
  for (const ChainPart& part : chain_parts(options, card, directory)) {
    const bool starts_again = part.kind == "supervisor" || part.kind == "node" || part.kind == "recorder";
    text += process_table(part.name, part.kind, file, part.overrides,
                          starts_again ? "role = \"expendable\"\nrestart = \"in_run\"\n" : "");
  }
  return text;
}

/// The card, the router of a chain, the readout. The control room sets names of processes and directories of files.
std::string system_text(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                        const std::string& file) {
  const auto of = [&](std::string_view table, std::vector<std::string> all) {
    for (const std::string& one : options.settings) {
      if (one.starts_with(table)) all.push_back(one);
    }
    return all;
  };
  std::string text = fmt::format(
      "# The system of `rodeo demo`.\n[control]\nname = \"{}\"\ndirectory = \".\"\ndisk_stop = \"0B\"\ndisk_warn = "
      "\"0B\"\nchoose_limit = \"3s\"\n",
      card.name);
  if (options.farm()) return text + chain_tables(options, card, directory, file);
  text += process_table("card", "emulator", file, card.emulator_overrides(options));
  const std::string bus = directory.bus().string();
  if (options.chain) {
    text += process_table(
        "router", "router", file,
        of("router.", {fmt::format("router.bus={}", bus), fmt::format("router.input.cards={}", card.address)}));
  }
  std::vector<std::string> readout{
      options.chain ? fmt::format("readout.input.bus={}", bus) : fmt::format("readout.input.cards={}", card.address),
      fmt::format("readout.consumer[2].fraction={}", written_fraction(options, directory.free_bytes())),
      fmt::format("readout.consumer[2].max_bytes={:.0f}", kMostDemoBytes)};
  for (const std::string& one : options.settings) {
    if (!one.starts_with("emulator.") && !one.starts_with("router.")) readout.push_back(one);
  }
  return text + process_table("readout", "readout", file, readout);
}

Result<Json> json_of(const std::filesystem::path& file) {
  const auto text = RODEO_TRY(settings::read_text_file(file));
  return Json::parse(text);
}

std::string text_at(const Json& object, std::string_view key) {
  const Json& found = member(object, key);
  return found.is_string() ? found.string() : "";
}

/// A dash for null, which means unknown.
std::string count_at(const Json& object, std::string_view key) {
  const Json& found = member(object, key);
  return found.is_number() ? fmt::format("{:.0f}", found.number()) : "-";
}

/// The report of the readout's run in the folder of the run.
Result<Json> report_in(const Json& told) {
  return json_of(std::filesystem::path(text_at(told, "directory")) / "readout.report.json");
}

/// The reports of room and readout on the run, as lines for people.
std::string summary_text(const Json& told, const Json& report) {
  const Json& summary = member(told, "summary");
  std::string lost;
  for (const auto& [name, value] : member(summary, "lost").members()) {
    if (value.number() > 0) lost += fmt::format("{} {} {:.0f}", lost.empty() ? "" : ",", name, value.number());
  }
  const auto number = [&](std::string_view group, std::string_view key) {
    return member(member(report, group), key).number();
  };
  const Json& offered = member(told, "offered");
  const Json& accepted = member(told, "accepted");
  const bool known = offered.is_number() && accepted.is_number() && offered.number() > 0;
  return fmt::format(
      "run {} {} after {:.1f} s\n"
      "  chunks      {} sent = {} in fragments + lost:{}\n"
      "  fragments   {:.0f}, {:.0f} incomplete\n"
      "  triggers    {}Hz{}\n"
      "  verified    {:.0f} chunks during the run, {:.0f} mismatches\n"
      "  written     {}B",
      count_at(told, "run"), text_at(told, "condition"), number("run", "seconds"), count_at(summary, "sent"),
      count_at(summary, "built"), lost.empty() ? " 0" : lost, number("fragments", "built"),
      number("fragments", "incomplete"), base::format_count(member(report, "trigger_rate_hz").number()),
      known ? fmt::format(" accepted, dead time {:.2f} %", (1 - accepted.number() / offered.number()) * 100) : "",
      number("verified", "chunks"), number("verified", "mismatches"), base::format_count(number("bytes", "written")));
}

/// The reports of the chain's processes: from the run's folder, else from `told`.
ChainRun chain_run(const Json& told, const std::vector<ChainPart>& parts, const DemoCard& card) {
  const std::filesystem::path folder = text_at(told, "directory");
  ChainRun run{.name = card.name,
               .processes = {},
               .decided = {},
               .failure = text_at(told, "failure"),
               .limited_by = text_at(told, "limited_by")};
  for (const ChainPart& part : parts) {
    Json report = member(member(told, "statuses"), part.name);
    if (auto left = json_of(folder / (part.name + ".report.json"))) report = std::move(*left);
    run.processes.push_back({part.name, part.kind, std::move(report)});
    // A restarted process has one report for each of its lives.
    for (int life = 2; const auto next = json_of(folder / fmt::format("{}#{}.report.json", part.name, life)); ++life)
      run.processes.push_back({fmt::format("{}#{}", part.name, life), part.kind, *next});
  }
  if (auto decided = farm::read_decisions(folder / "supervisor" / "decisions")) run.decided = *decided;
  return run;
}

/// Judges a run through the whole chain.
Result<ExitCode> judged_chain(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory,
                              const Json& told) {
  Json report = chain_report(chain_run(told, chain_parts(options, card, directory), card));
  Json files = Json::array();
  // The recorder's paths lead through a link that points to the run's folder only during the run.
  const std::filesystem::path folder = std::filesystem::path(text_at(told, "directory")) / "recorder";
  for (const Json& file : member(report, "files").elements())
    files.push_back((folder / std::filesystem::path(file.string()).filename()).string());
  report["files"] = std::move(files);
  if (const std::string reason = text_at(told, "reason"); !reason.empty()) std::fprintf(stderr, "%s\n", reason.c_str());
  return judge_chain(options, std::move(report));
}

/// Judges a run that has a report.
Result<ExitCode> judged(const Json& told, const Json& report) {
  std::fprintf(stderr, "%s\n", summary_text(told, report).c_str());
  std::vector<std::string> files;
  // The readout's paths lead through a link that points to the run's folder only during the run.
  const std::filesystem::path folder = std::filesystem::path(text_at(told, "directory")) / "readout";
  for (const Json& file : member(report, "files").elements())
    files.push_back(folder / std::filesystem::path(file.string()).filename());
  const auto written = static_cast<std::uint64_t>(member(member(report, "bytes"), "written").number());
  const FilesReadBack found = RODEO_TRY(read_back(files, written));
  const double in_passing = member(member(report, "verified"), "chunks").number();
  if (in_passing == 0) std::fprintf(stderr, "no chunk was verified during the run\n");
  const std::string reason = text_at(told, "reason");
  if (!reason.empty()) std::fprintf(stderr, "%s\n", reason.c_str());
  const std::string condition = text_at(told, "condition");
  if (condition == "ABORTED" || !text_at(told, "failure").empty()) return ExitCode::failed;
  if (member(member(report, "verified"), "mismatches").number() > 0) return ExitCode::not_verified;
  if (condition == "WRONG") return ExitCode::failed;
  if (!found.proved() || in_passing == 0) return ExitCode::not_verified;
  const Json& loss = member(report, "loss");
  return member(loss, "exceeded").is_boolean() && member(loss, "exceeded").boolean() ? ExitCode::partial : ExitCode::done;
}

}  // namespace

Result<std::optional<ExitCode>> run_in_control_room(const DemoOptions& options, const DemoCard& card,
                                                    const DemoDirectory& directory,
                                                    const std::filesystem::path& configuration) {
  process::outlive_listeners();
  const std::filesystem::path system = directory.path() / "system.toml";
  const std::filesystem::path result = directory.path() / "result.json";
  RODEO_TRY(write_text(system, system_text(options, card, directory, configuration.filename().string())));
  const ExitCode ended =
      RODEO_TRY(run_python("rodeo.control.cli.demo",
                           {system.string(), "--seconds", fmt::format("{}", options.seconds), "--result", result.string()}));
  if (ended == ExitCode::unreachable) {
    std::fprintf(stderr, "continuing without the control room and its page\n");
    return std::nullopt;
  }
  if (ended != ExitCode::done) return ended;
  const Json told = RODEO_TRY(json_of(result));
  if (options.farm())
    return text_at(told, "directory").empty() ? ExitCode::failed : RODEO_TRY(judged_chain(options, card, directory, told));
  const auto report = report_in(told);
  if (!report) return ExitCode::failed;  // there was no run; the reason is already printed
  return RODEO_TRY(judged(told, *report));
}

}  // namespace rodeo::cli
