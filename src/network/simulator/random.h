// The simulator's own random numbers: the same on every machine. Generators use integers; logarithm and exponential use the
// four basic operations and the square root, which IEEE 754 rounds in one way only (the files are compiled without
// contraction).
#pragma once

#include <cstdint>

namespace rodeo::network {

/// xoshiro256** of Blackman and Vigna, seeded by splitmix64. Streams of one seed are independent.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream);

  std::uint64_t next();
  /// A number in [0, 1), in steps of 2^-53.
  double uniform();
  /// A number in [0, bound) without bias.
  std::uint64_t below(std::uint64_t bound);
  /// A number with mean 1.
  double exponential();
  /// A number with mean 0 and deviation 1 (Marsaglia's polar method).
  double normal();

 private:
  std::uint64_t state_[4];
  double spare_ = 0;
  bool has_spare_ = false;
};

/// Natural logarithm of a positive normal number, to 2 units in the last place.
double portable_log(double value);
/// e to the power of a number within +-700, to 4 units in the last place.
double portable_exp(double value);
double portable_sqrt(double value);

}  // namespace rodeo::network
