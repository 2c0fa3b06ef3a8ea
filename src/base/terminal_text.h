// Text on a terminal: without control characters of other processes, and in lines that fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rodeo::base {

/// The text with `?` for each control character (C0, and C1 in UTF-8) except line breaks and tabs.
std::string without_control_characters(std::string_view text);

/// The width of the terminal behind this descriptor; 0 if it is not a terminal, or too narrow for a text (20).
std::size_t terminal_columns(int descriptor);

/// The columns that a text takes. Colour sequences take none.
std::size_t shown_width(std::string_view text);

/// Breaks lines that are wider than `columns` at blanks; 0 breaks none. A continued line begins below the text behind a
/// label ("label   text"), else two columns further than its line. Words are not broken.
std::string folded(std::string_view text, std::size_t columns);

/// Writes a text to stderr, folded for its terminal. Errors of stderr are ignored.
void say_folded(std::string_view text);

}  // namespace rodeo::base
