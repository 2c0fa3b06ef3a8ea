// Texts for a terminal: those of other processes have control characters that could act on it.
#pragma once

#include <string>
#include <string_view>

namespace rodeo::base {

/// The text with `?` for each control character (C0 and C1) that is no line break or tab.
std::string without_control_characters(std::string_view text);

}  // namespace rodeo::base
