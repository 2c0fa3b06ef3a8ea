// The text of a proof's result in a bench.
#pragma once

#include <cstdint>
#include <string>

namespace rodeo::bench {

/// "0 mismatches": the number of wrong bytes, or of other wrong units that were compared.
inline std::string mismatches(std::uint64_t count) {
  return count == 1 ? "1 mismatch" : std::to_string(count) + " mismatches";
}

}  // namespace rodeo::bench
