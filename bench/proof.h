// How a bench says what its proof has found.
#pragma once

#include <cstdint>
#include <string>

namespace rodeo::bench {

/// "0 mismatches": bytes, or whatever the proof compares, that are not as they should be.
inline std::string mismatches(std::uint64_t count) {
  return count == 1 ? "1 mismatch" : std::to_string(count) + " mismatches";
}

}  // namespace rodeo::bench
