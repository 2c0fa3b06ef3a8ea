// Texts from other processes may contain control characters that act on the terminal.
#pragma once

#include <string>
#include <string_view>

namespace rodeo::base {

/// The text with `?` for each control character (C0, and C1 in UTF-8) except line breaks and tabs.
std::string without_control_characters(std::string_view text);

}  // namespace rodeo::base
