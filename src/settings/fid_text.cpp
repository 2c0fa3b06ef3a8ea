#include "settings/fid_text.h"

#include <charconv>

#include <fmt/format.h>

namespace rodeo::settings {
namespace {

constexpr std::uint32_t kElinkCounterBits = 13 + 6;

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error bad_fid(std::string what) {
  return {"formats.fid",
          std::move(what),
          {},
          "a FID is written like 0x1000000000540000, a range of 24 like 0x1000000000540000+24"};
}

}  // namespace

Result<Fid> parse_fid(std::string_view text) {
  const auto value = parse_number(text);
  if (!value) return std::unexpected(bad_fid(fmt::format("`{}` is not a 64-bit number", text)));
  const Fid fid{*value};
  if (fid.version() != Fid::kVersion) {
    return std::unexpected(
        bad_fid(fmt::format("`{}` has version {} in bits 63..60; only version 1 is known", text, fid.version())));
  }
  return fid;
}

std::optional<Fid> advance(Fid first, std::uint32_t n) {
  const std::uint64_t position = (std::uint64_t{first.link()} << 6 | first.elink()) + n;
  if (position >> kElinkCounterBits != 0) return std::nullopt;
  constexpr std::uint64_t kMask = ((std::uint64_t{1} << kElinkCounterBits) - 1) << 16;
  return Fid{(first.value & ~kMask) | position << 16};
}

Result<std::vector<Fid>> parse_fid_range(std::string_view text) {
  const std::size_t plus = text.find('+');
  const auto first = RODEO_TRY(parse_fid(text.substr(0, plus)));
  if (plus == std::string_view::npos) return std::vector<Fid>{first};

  const auto count = parse_number(text.substr(plus + 1));
  if (!count || *count == 0)
    return std::unexpected(bad_fid(fmt::format("`{}` needs a count of 1 or more after the +", text)));
  if (*count > std::uint64_t{1} << kElinkCounterBits || !advance(first, static_cast<std::uint32_t>(*count - 1))) {
    return std::unexpected(bad_fid(fmt::format("`{}` runs past e-link 63 of link 8191", text)));
  }
  std::vector<Fid> fids(*count);
  for (std::uint32_t i = 0; i < fids.size(); ++i) fids[i] = *advance(first, i);
  return fids;
}

}  // namespace rodeo::settings
