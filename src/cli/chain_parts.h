// The processes of `rodeo demo --chain`, from card to recorder, and the overrides of each over examples/farm/chain.toml.
#pragma once

#include <string>
#include <vector>

#include "cli/demo_parts.h"

namespace rodeo::cli {

struct ChainPart {
  std::string name;  ///< "readout-1"
  std::string kind;  ///< the control room's name for it: emulator, router, readout, supervisor, node, recorder
  std::vector<std::string> overrides;  ///< KEY=VALUE, those of the options last
};

/// All processes, in the order of the data path. The control room sets their names and directories.
std::vector<ChainPart> chain_parts(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory);

}  // namespace rodeo::cli
