#include "base/cpu.h"

#include <algorithm>
#include <cstdlib>

namespace rodeo::base {
namespace {

CpuLevel detect() {
  CpuLevel best = CpuLevel::v2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) best = CpuLevel::avx2;
  if (best == CpuLevel::avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    best = CpuLevel::avx512;
  }
  const char* wanted = std::getenv("RODEO_CPU_LEVEL");
  if (wanted == nullptr) return best;
  for (const CpuLevel level : {CpuLevel::v2, CpuLevel::avx2}) {
    if (cpu_level_name(level) == wanted) return std::min(best, level);
  }
  return best;
}

}  // namespace

CpuLevel cpu_level() {
  static const CpuLevel level = detect();
  return level;
}

std::string_view cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::v2: return "v2";
    case CpuLevel::avx2: return "avx2";
    case CpuLevel::avx512: return "avx512";
  }
  return "v2";
}

}  // namespace rodeo::base
