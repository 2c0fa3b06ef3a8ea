#include "network/simulator/random.h"

#include <emmintrin.h>

#include <bit>

namespace rodeo::network {

namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits: its product with an exponent is exact
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t mixed = seed;
  mixed = splitmix(mixed) ^ stream;
  for (std::uint64_t& word : state_) word = splitmix(mixed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

std::uint64_t Random::below(std::uint64_t bound) {
  for (;;) {
    const std::uint64_t drawn = next();
    const auto product = static_cast<unsigned __int128>(drawn) * bound;
    if (static_cast<std::uint64_t>(product) >= -bound % bound) return static_cast<std::uint64_t>(product >> 64);
  }
}

double Random::exponential() { return -portable_log(1.0 - uniform()); }

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  for (;;) {
    const double x = 2 * uniform() - 1;
    const double y = 2 * uniform() - 1;
    const double square = x * x + y * y;
    if (square >= 1 || square == 0) continue;
    const double scale = portable_sqrt(-2 * portable_log(square) / square);
    spare_ = y * scale;
    has_spare_ = true;
    return x * scale;
  }
}

double portable_sqrt(double value) { return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(value))); }

double portable_log(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172: after eleven terms the error is 1e-19 of the sum.
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double series = 0;
  for (int n = 23; n >= 3; n -= 2) series = (series + 1.0 / n) * square;
  const double fraction = 2 * s + 2 * s * series;
  return exponent * kLn2High + (exponent * kLn2Low + fraction);
}

double portable_exp(double value) {
  const double scaled = value * 0x1.71547652b82fep+0;
  const auto exponent = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double rest = (value - exponent * kLn2High) - exponent * kLn2Low;  // the rest is within +-0.35
  double series = 1;
  for (int n = 16; n >= 1; --n) series = 1 + series * rest / n;
  return series * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace rodeo::network
