#include "cli/readout_action.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/runtime_dir.h"
#include "cli/build_text.h"
#include "process/line_socket.h"

namespace rodeo::cli {
namespace {

/// Appends the process id to the name of the readout if another one has the name.
void find_free_name(readout::ReadoutPlan& plan) {
  const auto socket = base::runtime_socket(process::kReadout.socket_of(plan.settings.name));
  if (!socket || !process::somebody_listens(*socket)) return;
  plan.settings.name += fmt::format("-{}", ::getpid());
  plan.settings.run.readout_name = plan.settings.name;
}

}  // namespace

Result<ExitCode> run_readout(readout::ReadoutPlan& plan, const RunOptions& options, readout::ReadoutService::Options more) {
  if (options.hold) plan.settings.run.run_number = 0;
  if (plan.another_name_will_do) find_free_name(plan);
  more.build = build_text();
  return run_process(std::make_unique<readout::ReadoutService>(plan, std::move(more)), options);
}

}  // namespace rodeo::cli
