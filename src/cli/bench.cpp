// `rodeo bench`: starts the program rodeo-bench, which stands beside this one and has the measurements.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/child_process.h"
#include "base/fd_socket.h"
#include "base/log.h"
#include "cli/described_verbs.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "settings/text_file.h"

namespace rodeo::cli {
namespace {

Result<std::string> bench_program() {
  if (const auto found = find_beside({"rodeo-bench"})) return found->string();
  const std::string directory = command_directory().string();
  return std::unexpected(Error{"cli.program", "the measurements are not built", directory + "/rodeo-bench",
                               fmt::format("build them: ninja -C {} rodeo_bench_program", directory)});
}

/// Replaces this process by rodeo-bench. Returns only on an error.
Error become_bench(const std::vector<std::string>& arguments) {
  auto program = bench_program();
  if (!program) return program.error();
  std::vector<std::string> words{*program, "bench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  if (base::log_level() == base::LogLevel::debug) ::setenv("RODEO_LOG", "debug", 1);
  std::fflush(nullptr);
  ::execv(pointers[0], pointers.data());
  return {"cli.program", fmt::format("cannot run {}: {}", *program, std::strerror(errno))};
}

/// Adds the verbs that rodeo-bench has; none if it is not built.
void describe_bench(Command& bench) {
  const auto program = bench_program();
  const base::UniqueFd text(::memfd_create("verbs", MFD_CLOEXEC));
  if (!program || !text) return;
  auto child = base::ChildProcess::start({.command = {*program, "describe"}, .out = text.get()});
  if (!child || child->wait() != 0) return;
  const auto written = settings::read_text_file(fmt::format("/proc/self/fd/{}", text.get()));
  if (!written) return;
  if (const auto json = settings::Json::parse(*written)) describe_as(bench, *json);
}

}  // namespace

void add_bench(Command& root) {
  auto rest = std::make_shared<std::vector<std::string>>();
  Command& bench = root.verb("bench", "Measures the product on this machine");
  bench.passes_on(*rest);
  bench.described_by(describe_bench);
  bench.run([rest]() -> Result<ExitCode> { return std::unexpected(become_bench(*rest)); });
}

}  // namespace rodeo::cli
