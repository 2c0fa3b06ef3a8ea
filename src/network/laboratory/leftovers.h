// What a killed laboratory may leave: nothing in the kernel (see README.md), but perhaps a process that was just being started.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rodeo::network::laboratory {

/// In the environment of every process that a laboratory starts: "PID.STARTTIME" of the laboratory.
inline constexpr std::string_view kRunVariable = "RODEO_LABORATORY";

/// Of this process.
std::string run_mark();

/// Ends processes of laboratories that are dead, as far as this user may, and says how many there were.
std::size_t end_leftovers();

}  // namespace rodeo::network::laboratory
