#include "cli/readout_action.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/build_text.h"

namespace rodeo::cli {

Result<ExitCode> run_readout(readout::ReadoutPlan& plan, const RunOptions& options, readout::ReadoutService::Options more) {
  if (options.hold) plan.settings.run.run_number = 0;
  more.build = build_text();
  try {
    return run_process(std::make_unique<readout::ReadoutService>(plan, more), options);
  } catch (const SetupError& refused) {
    if (!plan.another_name_will_do || refused.error().code != "process.name_taken") throw;
  }
  // Another readout has the name.
  plan.settings.name += fmt::format("-{}", ::getpid());
  plan.settings.run.readout_name = plan.settings.name;
  return run_process(std::make_unique<readout::ReadoutService>(plan, std::move(more)), options);
}

}  // namespace rodeo::cli
