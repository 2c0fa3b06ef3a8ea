#include "formats/stream_tags.h"

#include <cstring>

#include <fmt/format.h>

namespace rodeo::formats {
namespace {

template <typename T>
std::string id_element(std::string_view name, const std::vector<T>& ids) {
  std::string list;
  for (const T id : ids) list += fmt::format("{}{:#x}", list.empty() ? "" : ",", id);
  return list.empty() ? list : fmt::format("<{0}>{1}</{0}>", name, list);
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

}  // namespace rodeo::formats
