#include "formats/file_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/checksum.h"

namespace rodeo::formats {

std::string open_crc_string() { return fmt::format("{}=00000000", kCrcKey); }

std::array<char, kCrcDigits> crc_digits(std::uint32_t crc) {
  std::array<char, kCrcDigits> digits;
  fmt::format_to_n(digits.data(), digits.size(), "{:08x}", crc);
  return digits;
}

std::optional<std::uint32_t> read_crc_digits(std::string_view digits) {
  if (digits.size() != kCrcDigits || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::string ProvableMark::text() const {
  return fmt::format("{}=provable seed={} crc={}{}", kProvableKey, seed, crc ? 1 : 0, full_trigger ? "" : " trigger=l1id");
}

std::optional<ProvableMark> ProvableMark::parse(std::string_view value) {
  constexpr std::string_view kStart = "provable seed=";
  if (!value.starts_with(kStart)) return std::nullopt;
  ProvableMark mark;
  const std::string_view rest = value.substr(kStart.size());
  if (std::from_chars(rest.data(), rest.data() + rest.size(), mark.seed).ec != std::errc{}) return std::nullopt;
  mark.crc = value.ends_with(" crc=1") || value.find(" crc=1 ") != std::string_view::npos;
  mark.full_trigger = !value.ends_with(" trigger=l1id");
  if (fmt::format("{}={}", kProvableKey, value) != mark.text()) return std::nullopt;
  return mark;
}

void FileDigest::update(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  crc_ = formats::crc32(bytes, crc_);
  adler_ = adler32(bytes, adler_);
}

std::uint32_t FileDigest::adler32_when_sealed(std::size_t crc_offset) const {
  // A byte that grows by d adds d to the first sum, and to the second once for itself and every byte behind it.
  constexpr std::uint64_t kModulus = 65521;
  const std::array<char, kCrcDigits> digits = crc_digits(crc_);
  std::uint64_t a = adler_ & 0xffff;
  std::uint64_t b = adler_ >> 16;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto grown = static_cast<std::uint64_t>(digits[i] - '0');
    a = (a + grown) % kModulus;
    b = (b + grown * ((bytes_ - crc_offset - i) % kModulus)) % kModulus;
  }
  return static_cast<std::uint32_t>(b << 16 | a);
}

}  // namespace rodeo::formats
