#include "formats/links_string.h"

#include <charconv>

#include "formats/file_marks.h"

namespace rodeo::formats {
namespace {

constexpr std::size_t kMostLinks = 65536;

// Takes a number off the front of a text, after the expected prefix.
std::optional<std::uint32_t> read_number(std::string_view& text, std::string_view before, int base) {
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::optional<NamedLinks> read_links_string(std::string_view text) {
  if (!text.starts_with(kLinksKey)) return std::nullopt;
  text.remove_prefix(kLinksKey.size());
  const auto rob = read_number(text, "=0x", 16);
  if (!rob || !text.starts_with(':')) return std::nullopt;
  text.remove_prefix(1);
  NamedLinks links{.source_id = {*rob}, .link_ids = {}};
  while (!text.empty()) {
    const auto first = read_number(text, " 0x", 16);
    const auto count = first && text.starts_with('+') ? read_number(text, "+", 10) : std::optional(1U);
    if (!first || !count || *count > kMostLinks - links.link_ids.size()) return std::nullopt;
    for (std::uint32_t i = 0; i < *count; ++i) links.link_ids.push_back(*first + i);
  }
  return links;
}

}  // namespace rodeo::formats
