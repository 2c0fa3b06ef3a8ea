// Reproducible random numbers: each draw is a pure function of its arguments, so that a run can be repeated and every part
// of it predicted.
#pragma once

#include <cstdint>

namespace rodeo::formats::draw {

/// Scatters 64 bits (the finaliser of splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// The common part of all draws of one link; `purpose` separates sizes, faults and occupancy.
constexpr std::uint64_t base(std::uint64_t seed, std::uint64_t purpose, std::uint32_t link_id) {
  return mix(seed ^ purpose << 56 ^ link_id);
}

constexpr std::uint64_t at(std::uint64_t base, std::uint64_t trigger) { return mix(base + trigger * 0xd1342543de82ef95); }

/// The draw for one chunk.
constexpr std::uint64_t chunk(std::uint64_t seed, std::uint64_t purpose, std::uint32_t link_id, std::uint64_t trigger) {
  return at(base(seed, purpose, link_id), trigger);
}

/// A number in (0, 1].
constexpr double unit(std::uint64_t bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

/// A number in [0, n); n > 0.
constexpr std::uint64_t below(std::uint64_t bits, std::uint64_t n) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

}  // namespace rodeo::formats::draw
