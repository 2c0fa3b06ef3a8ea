#include "cli/demo_room.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/runtime_dir.h"
#include "cli/chain_parts.h"
#include "cli/output.h"
#include "cli/python.h"
#include "cli/verbs.h"
#include "process/line_socket.h"
#include "process/stop_signals.h"

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
      "\"0B\"\ndisk_time = \"0s\"\nchoose_limit = \"3s\"\n",
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

/// Removes sockets that killed processes of this demo left behind: a check for a listener removes a dead socket.
void remove_dead_sockets(const std::string& demo) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator entry(base::runtime_directory_name(), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_socket(ignored) && entry->path().filename().native().starts_with(demo)) left.push_back(entry->path());
  }
  for (const auto& path : left) (void)process::is_listening(path);
}

}  // namespace

Result<std::optional<ExitCode>> run_in_control_room(const DemoOptions& options, const DemoCard& card,
                                                    const DemoDirectory& directory,
                                                    const std::filesystem::path& configuration) {
  process::ignore_write_signals();
  const std::filesystem::path system = directory.path() / "system.toml";
  RODEO_TRY(write_text(system, system_text(options, card, directory, configuration.filename().string())));
  std::vector<std::string> arguments{system.string(), "--seconds", fmt::format("{}", options.seconds)};
  if (!options.json_file.empty()) arguments.push_back("--json=" + options.json_file);
  if (options.no_page) arguments.emplace_back("--no-page");
  const ExitCode ended = RODEO_TRY(run_python("rodeo.control.cli.demo", arguments));
  remove_dead_sockets(card.name);
  if (ended != ExitCode::unreachable) return ended;
  if (options.chain) return ExitCode::failed;
  say("continuing without the control room and its page\n");
  return std::nullopt;
}

}  // namespace rodeo::cli
