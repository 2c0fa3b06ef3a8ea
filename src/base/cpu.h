// The instruction sets of this CPU, so that one binary uses the best one.
#pragma once

#include <string_view>

namespace rodeo::base {

enum class CpuLevel : unsigned char { v2, avx2, avx512 };

/// The level that kernels are dispatched to; RODEO_CPU_LEVEL=v2|avx2|avx512 lowers it (never above what the CPU has).
/// Constant after the first call; any thread.
CpuLevel cpu_level();

std::string_view cpu_level_name(CpuLevel level);

}  // namespace rodeo::base
