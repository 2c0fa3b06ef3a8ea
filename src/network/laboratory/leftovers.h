// Leftovers of a killed laboratory. The kernel keeps nothing (see README.md), but a process that was just starting may be
// left.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rodeo::network::laboratory {

/// A variable in the environment of every process that a laboratory starts: "PID.STARTTIME" of the laboratory.
inline constexpr std::string_view kRunVariable = "RODEO_LABORATORY";

/// The value of kRunVariable for this process.
std::string run_mark();

/// Ends processes of dead laboratories, if this user may end them; returns their number.
std::size_t end_leftovers();

}  // namespace rodeo::network::laboratory
