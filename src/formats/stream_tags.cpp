#include "formats/stream_tags.h"

#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace rodeo::formats {
namespace {

template <typename T>
std::string id_element(std::string_view name, const std::vector<T>& ids) {
  std::string list;
  for (const T id : ids) list += fmt::format("{}{:#x}", list.empty() ? "" : ",", id);
  return list.empty() ? list : fmt::format("<{0}>{1}</{0}>", name, list);
}

/// The text after name=" up to the next quote; nothing if the attribute is missing.
std::optional<std::string_view> attribute(std::string_view element, std::string_view name) {
  const std::string begin = fmt::format(" {}=\"", name);
  const std::size_t at = element.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t from = at + begin.size();
  const std::size_t to = element.find('"', from);
  if (to == std::string_view::npos) return std::nullopt;
  return element.substr(from, to - from);
}

/// The hex numbers of <name>0x1,0x2</name>.
template <typename T>
std::vector<T> ids_in(std::string_view inside, std::string_view name) {
  std::vector<T> ids;
  const std::string begin = fmt::format("<{}>", name);
  std::size_t at = inside.find(begin);
  if (at == std::string_view::npos) return ids;
  at += begin.size();
  while (inside.substr(at).starts_with("0x")) {
    T id = 0;
    const char* const end = inside.data() + inside.size();
    const auto [behind, error] = std::from_chars(inside.data() + at + 2, end, id, 16);
    if (error != std::errc{}) break;
    ids.push_back(id);
    at = static_cast<std::size_t>(behind - inside.data());
    if (behind == end || *behind != ',') break;
    ++at;
  }
  return ids;
}

}  // namespace

std::vector<StreamTag> decode_stream_tags(std::string_view text) {
  constexpr std::string_view kBegin = "<Tag ";
  std::vector<StreamTag> tags;
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos;) {
    const std::size_t next = text.find(kBegin, at + kBegin.size());
    const std::string_view element = text.substr(at, next == std::string_view::npos ? next : next - at);
    const auto name = attribute(element, "name");
    const auto type = attribute(element, "type");
    if (name && type) {
      tags.push_back({.name = std::string(*name),
                      .type = std::string(*type),
                      .obeys_lumi_block = attribute(element, "lumi").value_or("1") != "0",
                      .robs = ids_in<std::uint32_t>(element, "robs"),
                      .dets = ids_in<std::uint8_t>(element, "dets")});
    }
    at = next;
  }
  return tags;
}

std::vector<std::uint32_t> encode_stream_tags(std::span<const StreamTag> tags) {
  std::string text;
  for (const StreamTag& tag : tags) {
    text += fmt::format("<Tag name=\"{}\" type=\"{}\" lumi=\"{}\"", tag.name, tag.type, tag.obeys_lumi_block ? 1 : 0);
    if (tag.robs.empty() && tag.dets.empty()) {
      text += "/>";
      continue;
    }
    text += '>' + id_element("robs", tag.robs) + id_element("dets", tag.dets) + "</Tag>";
  }
  std::vector<std::uint32_t> words(padded_to_word(text.size()) / kWordBytes);
  if (!text.empty()) std::memcpy(words.data(), text.data(), text.size());
  return words;
}

std::string stream_tag_text(WordView words) {
  std::string text(words.size() * kWordBytes, '\0');
  if (!text.empty()) std::memcpy(text.data(), words.bytes().data(), text.size());
  text.resize(text.find_last_not_of('\0') + 1);
  return text;
}

}  // namespace rodeo::formats
