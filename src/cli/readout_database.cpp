#include "cli/readout_database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "cli/output.h"
#include "cli/python.h"

namespace rodeo::cli {
namespace {

constexpr const char* kVerbs = "rodeo.control.cli.runs_verbs";

}  // namespace

Result<std::uint32_t> number_of_database(const std::string& database, std::uint32_t least) {
  const base::UniqueFd said = RODEO_TRY(text_in_memory(""));
  auto take =
      RODEO_TRY(start_python(kVerbs, {"take", "--database", database, "--least", std::to_string(least)}, -1, said.get()));
  const bool taken = take.wait() == 0;
  std::array<char, 32> text{};
  const ssize_t n = ::pread(said.get(), text.data(), text.size(), 0);
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + std::max<ssize_t>(n, 0), number);
  constexpr std::uint32_t kLargest = 0x7fffffff;  // 31 bits, as in ROD headers
  if (!taken || number == 0 || number > kLargest) {
    return std::unexpected(Error{
        "control.database", "the run database gave no valid run number", database,
        taken ? "run numbers are 1 to 2147483647; name another database" : "see its message above; name another database"});
  }
  return number;
}

Result<ExitCode> report_to_database(const std::string& database, const std::string& readout, std::uint32_t run,
                                    const Json& report) {
  const std::string text = report.dump(2) + "\n";
  const base::UniqueFd memory = RODEO_TRY(text_in_memory(text));
  const base::UniqueFd said = RODEO_TRY(text_in_memory(""));
  auto import =
      RODEO_TRY(start_python(kVerbs, {"import", "-", "--of", readout, "--database", database}, memory.get(), said.get()));
  if (import.wait() == 0) {
    say("run {} is in {}\n", run, database);
    return ExitCode::done;
  }
  const std::string file = fmt::format("run-{:06}-report.json", run);
  RODEO_TRY(write_json(file, report));
  say("run {} is not in {}; its report is in {}\n  rodeo runs import {} --of {} --database {}\n", run, database, file, file,
      readout, database);
  return ExitCode::failed;
}

}  // namespace rodeo::cli
