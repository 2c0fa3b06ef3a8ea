#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace rodeo::base {
namespace {

constexpr std::size_t kBlock = 64;

// The constants are the first 32 fractional bits of the square (cube) roots of the first primes: exact in a long double of
// 64 bits.
std::uint32_t fraction_bits(long double root) { return static_cast<std::uint32_t>((root - std::floor(root)) * 0x1p32L); }

struct Constants {
  std::array<std::uint32_t, 8> start{};
  std::array<std::uint32_t, 64> rounds{};

  Constants() {
    std::size_t n = 0;
    for (unsigned candidate = 2; n < rounds.size(); ++candidate) {
      bool prime = true;
      for (unsigned d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
      if (!prime) continue;
      if (n < start.size()) start[n] = fraction_bits(std::sqrt(static_cast<long double>(candidate)));
      rounds[n++] = fraction_bits(std::cbrt(static_cast<long double>(candidate)));
    }
  }
};

void add_block(std::array<std::uint32_t, 8>& hash, std::span<const std::byte> block, const Constants& constants) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t k = 0; k < 4; ++k) w[i] = w[i] << 8 | std::to_integer<std::uint32_t>(block[4 * i + k]);
  }
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants.rounds[i] + w[i];
    const std::uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  const std::array<std::uint32_t, 8> sum{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] += sum[i];
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  static const Constants constants;
  std::array<std::uint32_t, 8> hash = constants.start;
  const std::size_t whole = bytes.size() / kBlock * kBlock;
  for (std::size_t at = 0; at < whole; at += kBlock) add_block(hash, bytes.subspan(at, kBlock), constants);
  // After the rest: one bit, zeros, and the length in bits as the last eight bytes of a block.
  std::vector<std::byte> rest(bytes.begin() + static_cast<std::ptrdiff_t>(whole), bytes.end());
  rest.push_back(std::byte{0x80});
  rest.resize((rest.size() + 8 + kBlock - 1) / kBlock * kBlock);
  for (std::size_t i = 0; i < 8; ++i) rest[rest.size() - 1 - i] = static_cast<std::byte>(bytes.size() * 8 >> 8 * i);
  for (std::size_t at = 0; at < rest.size(); at += kBlock) add_block(hash, std::span(rest).subspan(at, kBlock), constants);
  Sha256 result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::byte>(hash[i / 4] >> (24 - 8 * (i % 4)));
  return result;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : sha256(bytes)) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

Sha256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlock> block{};
  if (key.size() <= kBlock) {
    std::ranges::copy(key, block.begin());
  } else {
    std::ranges::copy(sha256(key), block.begin());
  }
  const auto hashed = [&](std::byte pad, std::span<const std::byte> text) {
    std::vector<std::byte> bytes;
    for (const std::byte byte : block) bytes.push_back(byte ^ pad);
    bytes.insert(bytes.end(), text.begin(), text.end());
    return sha256(bytes);
  };
  return hashed(std::byte{0x5c}, hashed(std::byte{0x36}, message));
}

}  // namespace rodeo::base
