// Leftovers of a killed laboratory: nothing in the kernel (see README.md), but perhaps a process that was just starting.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rodeo::network::laboratory {

/// In the environment of every process that a laboratory starts: "PID.STARTTIME" of the laboratory.
inline constexpr std::string_view kRunVariable = "RODEO_LABORATORY";

/// The value for this process.
std::string run_mark();

/// Ends processes of dead laboratories, as far as this user may; returns their number.
std::size_t end_leftovers();

}  // namespace rodeo::network::laboratory
