#include "formats/link_names.h"

#include <fmt/format.h>

#include <utility>

namespace rodeo::formats {
namespace {

std::map<std::uint64_t, std::string>& all_names() {
  static std::map<std::uint64_t, std::string> names;
  return names;
}

}  // namespace

void set_link_names(std::map<std::uint64_t, std::string> names) { all_names() = std::move(names); }

const std::string& link_name(Fid fid) {
  static const std::string kNone;
  const auto found = all_names().find(fid.value);
  return found == all_names().end() ? kNone : found->second;
}

std::string named_link(Fid fid) {
  const std::string& name = link_name(fid);
  return name.empty() ? to_text(fid) : fmt::format("{} ({})", to_text(fid), name);
}

}  // namespace rodeo::formats
