// Files of the source tree that are built into the command.
#pragma once

#include <string_view>

namespace rodeo::cli {

/// The text of "demo.toml", "chain.toml", "farm/chain.toml" (examples/), "error_codes.md" or "words.md" (explain/),
/// "rodeo.bash", "rodeo.zsh" or "rodeo.fish" (completion/); empty if there is none of this name.
std::string_view built_in_text(std::string_view file_name);

}  // namespace rodeo::cli
