// The processes of `rodeo demo --chain`, from card to recorder: which there are, and what each is told over examples/farm/chain.toml.
#pragma once

#include <string>
#include <vector>

#include "cli/demo_parts.h"

namespace rodeo::cli {

struct ChainPart {
  std::string name;  ///< "readout-1"
  std::string kind;  ///< as the control room calls it: emulator, router, readout, supervisor, node, recorder
  std::vector<std::string> overrides;  ///< KEY=VALUE, those of the options last
};

/// All of them, on the way of the data. Names of processes and directories of files are not among what they are told.
std::vector<ChainPart> chain_parts(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory);

/// The name that a part has for this host: the control room gives it the same.
std::string full_name(const DemoCard& card, const ChainPart& part);

/// Where no control room does: the name of a part, and of those it talks with, and where its files go.
std::vector<std::string> names_for(const ChainPart& part, const std::vector<ChainPart>& parts, const DemoCard& card,
                                   const DemoDirectory& directory);

}  // namespace rodeo::cli
