// Virtual time in integer picoseconds: a byte at 25, 100, 200, 400 and 800 Gb/s takes a whole number of picoseconds.
#pragma once

#include <cstdint>
#include <limits>

namespace rodeo::network {

using Picoseconds = std::uint64_t;

inline constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
inline constexpr Picoseconds kPicosecondsPerNanosecond = 1000;
inline constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;

/// The time that bytes take on a link. It is exact if a byte takes a whole number of 2^-20 ps, else rounded to the nearest
/// picosecond.
class LinkTime {
 public:
  LinkTime() = default;
  explicit LinkTime(std::uint64_t bits_per_second)
      : scaled_((static_cast<unsigned __int128>(8 * kPicosecondsPerSecond) << kFraction) / bits_per_second) {}

  Picoseconds of(std::uint64_t bytes) const {
    return static_cast<Picoseconds>(
        (static_cast<unsigned __int128>(bytes) * scaled_ + (std::uint64_t{1} << (kFraction - 1))) >> kFraction);
  }

  /// The number of whole bytes in a sum of times.
  std::uint64_t bytes_in(unsigned __int128 time) const { return static_cast<std::uint64_t>((time << kFraction) / scaled_); }

 private:
  static constexpr unsigned kFraction = 20;
  std::uint64_t scaled_ = 0;
};

}  // namespace rodeo::network
