// Text for people, in lines that fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rodeo::cli {

/// The width of text for people: that of the terminal on stdout, at most 100.
std::size_t columns_on_stdout();

/// The text in lines of at most `columns` characters, broken at blanks or, without blanks, behind a `|`. The first line
/// begins at column `first`, the others after `indent` blanks; `joint` ends all lines but the last. Line ends of the text
/// stay.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent, std::size_t first = 0,
                    std::string_view joint = {});

}  // namespace rodeo::cli
