// `rodeo doctor`: what this host lacks for full speed, and the remedies.
#include <fmt/format.h>

#include "cli/examine_host.h"
#include "cli/verbs.h"

namespace rodeo::cli {

namespace {

struct DoctorOptions {
  DoctorSettings settings;
  std::string directory = ".";
  std::chrono::nanoseconds disk_time = std::chrono::milliseconds{500};
  OutputFormat format = OutputFormat::table;
};

Style style_of(Health health) {
  if (health == Health::good) return Style::good;
  return health == Health::warning ? Style::warning : Style::faint;
}

Result<ExitCode> examine(DoctorOptions& options) {
  options.settings.data_directory = options.directory;
  options.settings.disk_time = std::chrono::duration_cast<std::chrono::milliseconds>(options.disk_time);
  const auto findings = examine_host(options.settings);
  Table table({{"what", "name"}, {"state", "state"}, {"found", "value"}, {"", "meaning"}, {"", "remedy"}});
  for (const Finding& finding : findings) {
    table.add_row({finding.name, Cell(health_name(finding.health), {}, style_of(finding.health)), finding.value,
                   finding.meaning, finding.remedy});
  }
  if (options.format != OutputFormat::table) {
    table.print(options.format);
    return ExitCode::done;
  }
  // Three lines for each finding: a table of sentences would be wider than a terminal.
  const bool colours = colours_on_stdout();
  for (const Finding& finding : findings) {
    const std::string state = fmt::format("{:7}", health_name(finding.health));
    print_folded(
        fmt::format("{}  {:24}  {}\n", styled(state, style_of(finding.health), colours), finding.name, finding.value));
    if (finding.health == Health::good) continue;
    print_folded(fmt::format("         {}\n", finding.meaning));
    if (!finding.remedy.empty()) print_folded(fmt::format("         {}\n", styled(finding.remedy, Style::strong, colours)));
  }
  return ExitCode::done;
}

}  // namespace

void add_doctor(Command& root) {
  auto options = std::make_shared<DoctorOptions>();
  Command& verb = root.verb("doctor", "Lists what this host lacks for full speed, with remedies");
  verb.example("rodeo doctor", "limits, huge pages, clocks, disk: findings and commands to type")
      .example("rodeo doctor --directory /data -o json", "with the disk of the data files; for programs");
  verb.option("--directory", options->directory, "Directory of data files, to measure its disk").value_name("DIR");
  verb.duration("--disk-time", options->disk_time, "Time to write to the disk; 0: do not write");
  verb.output(options->format);
  verb.run([options] { return examine(*options); });
}

}  // namespace rodeo::cli
