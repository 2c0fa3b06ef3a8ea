#include "formats/stream_tags.h"

#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace rodeo::formats {
namespace {

std::string_view attribute(std::string_view element, std::string_view name) {
  const std::string key = fmt::format(" {}=\"", name);
  const std::size_t at = element.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = element.substr(at + key.size());
  return rest.substr(0, rest.find('"'));
}

template <typename T>
std::string id_element(std::string_view name, const std::vector<T>& ids) {
  std::string list;
  for (const T id : ids) list += fmt::format("{}{:#x}", list.empty() ? "" : ",", id);
  return list.empty() ? list : fmt::format("<{0}>{1}</{0}>", name, list);
}

template <typename T>
std::vector<T> id_list(std::string_view body, std::string_view element) {
  const std::string open = fmt::format("<{}>", element);
  const std::string close = fmt::format("</{}>", element);
  const std::size_t from = body.find(open);
  const std::size_t to = body.find(close);
  std::vector<T> ids;
  if (from == std::string_view::npos || to == std::string_view::npos || to < from) return ids;
  std::string_view list = body.substr(from + open.size(), to - from - open.size());
  while (!list.empty()) {
    const std::size_t end = list.find(',');
    std::string_view item = list.substr(0, end);
    if (item.starts_with("0x")) item.remove_prefix(2);
    T id = 0;
    if (std::from_chars(item.data(), item.data() + item.size(), id, 16).ec == std::errc{}) ids.push_back(id);
    list = end == std::string_view::npos ? std::string_view{} : list.substr(end + 1);
  }
  return ids;
}

}  // namespace

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

std::vector<StreamTag> decode_stream_tags(std::string_view text) {
  std::vector<StreamTag> tags;
  for (std::size_t at = text.find("<Tag "); at != std::string_view::npos; at = text.find("<Tag ")) {
    text.remove_prefix(at);
    const std::size_t end = text.find('>');
    if (end == std::string_view::npos) break;
    const std::string_view element = text.substr(0, end);
    StreamTag tag{.name = std::string(attribute(element, "name")),
                  .type = std::string(attribute(element, "type")),
                  .obeys_lumi_block = attribute(element, "lumi") == "1"};
    text.remove_prefix(end + 1);
    if (!element.ends_with('/')) {
      const std::string_view body = text.substr(0, text.find("</Tag>"));
      tag.robs = id_list<std::uint32_t>(body, "robs");
      tag.dets = id_list<std::uint8_t>(body, "dets");
    }
    if (!tag.name.empty()) tags.push_back(std::move(tag));
  }
  return tags;
}

}  // namespace rodeo::formats
