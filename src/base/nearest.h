// "Did you mean": the known names nearest to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::base {

/// Edits (insert, delete, change, swap of neighbours) that turn one word into the other; upper and lower case, `-` and `_` count as equal.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Up to `most` of the known names that `name` was probably meant to be, nearest first; empty if nothing is near.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> known, std::size_t most = 3);

/// "did you mean `a` or `b`?", or nothing.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace rodeo::base
