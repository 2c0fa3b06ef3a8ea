#include "cli/readout_action.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/build_text.h"

namespace rodeo::cli {

Result<ExitCode> run_readout(readout::ReadoutConfiguration& configuration, const RunOptions& options,
                             readout::ReadoutService::Options more) {
  if (options.hold) configuration.settings.run.run_number = 0;
  more.build = build_text();
  try {
    return run_process(std::make_unique<readout::ReadoutService>(configuration, more), options);
  } catch (const SetupError& refused) {
    if (!configuration.may_change_name || refused.error().code != "process.name_taken") throw;
  }
  // Another readout has the name.
  configuration.settings.name += fmt::format("-{}", ::getpid());
  configuration.settings.run.readout_name = configuration.settings.name;
  return run_process(std::make_unique<readout::ReadoutService>(configuration, std::move(more)), options);
}

}  // namespace rodeo::cli
