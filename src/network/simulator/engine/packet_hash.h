// A hash over the time and fate of every packet: runs with equal hashes are equal.
#pragma once

#include <bit>
#include <cstdint>

namespace rodeo::network {

inline void mix(std::uint64_t& hash, std::uint64_t value) {
  constexpr std::uint64_t kMixer = 0x9e3779b97f4a7c15;
  hash = (std::rotl(hash, 23) ^ value) * kMixer;
}

}  // namespace rodeo::network
