#include "formats/file_marks.h"

#include <fmt/format.h>

#include <charconv>

#include "formats/checksum.h"
#include "formats/event_file_records.h"

namespace rodeo::formats {

std::string open_crc_string() { return fmt::format("{}=00000000", kCrcKey); }

std::array<char, kCrcDigits> crc_digits(std::uint32_t crc) {
  std::array<char, kCrcDigits> digits;
  fmt::format_to_n(digits.data(), digits.size(), "{:08x}", crc);
  return digits;
}

std::optional<std::uint32_t> read_crc_digits(std::string_view digits) {
  if (digits.size() != kCrcDigits || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::string ProvableMark::text() const {
  std::string text = fmt::format("{}=provable seed={} crc={}", kProvableKey, seed, crc ? 1 : 0);
  if (l1id_counter != 0) text += fmt::format(" l1id_counter={}", l1id_counter);
  if (l1id_bits != 32) text += fmt::format(" l1id_bits={}", l1id_bits);
  if (!full_trigger) text += " trigger=l1id";
  return text;
}

std::optional<ProvableMark> ProvableMark::parse(std::string_view value) {
  // Reads the number after a key; true if the key is absent or a number follows it.
  const auto read = [&](std::string_view key, auto& number) {
    const std::size_t at = value.find(key);
    if (at == std::string_view::npos) return true;
    const char* const from = value.data() + at + key.size();
    return std::from_chars(from, value.data() + value.size(), number).ec == std::errc{};
  };
  ProvableMark mark;
  int crc = 0;
  if (!read("provable seed=", mark.seed) || !read(" crc=", crc) || !read(" l1id_bits=", mark.l1id_bits) ||
      !read(" l1id_counter=", mark.l1id_counter))
    return std::nullopt;
  mark.crc = crc == 1;
  mark.full_trigger = !value.ends_with(" trigger=l1id");
  const bool sensible = mark.l1id_bits >= 1 && mark.l1id_bits <= 32 &&
                        (mark.l1id_counter == 0 || (mark.l1id_counter == 32 && mark.l1id_bits == 32));
  if (!sensible || fmt::format("{}={}", kProvableKey, value) != mark.text()) return std::nullopt;
  return mark;
}

std::string IdsMark::text() const {
  return layout ? fmt::format("{}={} {}", kIdsKey, kGlobalIds, layout->text()) : fmt::format("{}={}", kIdsKey, kGlobalIds);
}

std::optional<IdsMark> IdsMark::parse(std::string_view value) {
  if (!value.starts_with(kGlobalIds)) return std::nullopt;
  value.remove_prefix(kGlobalIds.size());
  if (value.empty()) return IdsMark{};
  if (value.front() != ' ') return std::nullopt;
  const auto layout = IdLayout::parse(value.substr(1));
  return layout ? std::optional(IdsMark{layout}) : std::nullopt;
}

std::optional<IdLayout> layout_of(const DecodedFileHeader& header) {
  const auto mark = IdsMark::parse(header.free_string(kIdsKey));
  return mark ? mark->layout : std::nullopt;
}

void FileDigest::update(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  crc_ = formats::crc32(bytes, crc_);
  adler_ = adler32(bytes, adler_);
}

std::uint32_t FileDigest::adler32_when_sealed(std::size_t crc_offset) const {
  // A byte increased by d adds d to the first sum. It adds d to the second sum once for itself and once for every later
  // byte.
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
