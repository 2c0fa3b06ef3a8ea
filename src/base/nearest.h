// "Did you mean": the known names nearest to an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::base {

/// Number of edits (insert, delete, change, swap of neighbours) from one word to the other; upper and lower case, `-` and
/// `_` count as equal.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Up to `most` known names that `name` probably stands for, nearest first; empty if none is near.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> known, std::size_t most = 3);

/// "did you mean `a` or `b`?", or nothing.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace rodeo::base
