// `rodeo top`: shows all Rodeo processes of this user on this host, live.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/top_view.h"
#include "cli/verbs.h"
#include "cli/watch.h"
#include "process/stop_signals.h"

namespace rodeo::cli {
namespace {

struct TopOptions {
  std::chrono::nanoseconds interval{std::chrono::seconds{1}};
  bool once = false;
  std::uint64_t links = 10;
  OutputFormat format = OutputFormat::table;
};

constexpr std::chrono::milliseconds kPatience{1000};

void print_view(const TopView& view, const std::vector<std::string>& rooms) {
  if (view.rows.empty()) {
    print_folded("no process of Rodeo runs here as this user\n");
  } else {
    top_table(view).print(OutputFormat::table);
  }
  if (!view.links.empty()) {
    print("\n");
    top_links_table(view).print(OutputFormat::table);
    if (view.more_links > 0) print_folded(fmt::format("and {} more\n", view.more_links));
  }
  std::string named;
  for (const std::string& room : rooms) named += (named.empty() ? "" : ", ") + room;
  if (!rooms.empty()) print_folded(fmt::format("\ncontrol rooms: {}   (rodeo control status)\n", named));
}

Result<ExitCode> top(const TopOptions& options) {
  RODEO_TRY(check_interval(options.interval, "--interval"));
  const bool live = !options.once && options.format == OutputFormat::table && ::isatty(STDOUT_FILENO) != 0;
  std::vector<process::ListedProcess> before = process::list_processes(kPatience);
  if (!live) {
    // Rates and CPU need two samples.
    const process::StopSignals signals;
    const auto until = std::chrono::steady_clock::now() + options.interval;
    while (!before.empty() && !signals.stop_requested() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    const auto view = top_view(before, process::list_processes(kPatience), options.links);
    const auto rooms = process::list_control_rooms();
    if (options.format == OutputFormat::json) {
      print(top_json(view, rooms).dump(2) + "\n");
    } else if (options.format == OutputFormat::csv) {
      top_table(view).print(options.format);
    } else {
      print_view(view, rooms);
    }
    return ExitCode::done;
  }
  return watch(options.interval, options.format, [&](bool) -> Result<ExitCode> {
    auto now = process::list_processes(kPatience);
    print_view(top_view(before, now, options.links), process::list_control_rooms());
    before = std::move(now);
    return ExitCode::done;
  });
}

}  // namespace

void add_top(Command& root) {
  auto options = std::make_shared<TopOptions>();
  Command& verb = root.verb("top", "Shows all Rodeo processes of this user on this host, live");
  verb.example("rodeo top", "repeats each second, until Ctrl-C; once if the output is not a terminal")
      .example("rodeo top -o json", "for programs: processes, losses by reason, the worst links");
  verb.duration("--interval", options->interval, "Time between two samples, for rates and CPU").value_name("TIME");
  verb.flag("--once", options->once, "Print once, also on a terminal");
  verb.option("--links", options->links, "Show at most N links that are removed, missing or bad").value_name("N");
  verb.output(options->format);
  verb.paragraph(
      "The verdict of a readout or router is the condition of its run so far. An emulator is GOOD as long as its cards have "
      "lost nothing. SILENT: the process lives and does not answer. Rates are events of a readout, triggers of an emulator, "
      "chunks of each link of a router.");
  verb.run([options] { return top(*options); });
}

}  // namespace rodeo::cli
