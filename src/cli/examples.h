// The configurations of examples/, built into the command: what runs without a file is the same as what the files say.
#pragma once

#include <string_view>

namespace rodeo::cli {

/// The text of an example by its file name; empty if there is none.
std::string_view example_text(std::string_view file_name);

}  // namespace rodeo::cli
