#include "input/offered_links.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/sentence.h"
#include "formats/link_names.h"

namespace rodeo::input {

void OfferedLinks::add(Fid link) {
  positions_.emplace(link, links_.size());
  links_.push_back(link);
  taken_.push_back(false);
}

std::vector<std::size_t> OfferedLinks::select(std::span<const Fid> wanted, std::string_view input) {
  if (wanted.empty()) throw std::runtime_error("A stream needs at least one link.");
  std::vector<bool> taken = taken_;
  std::vector<std::size_t> positions;
  for (const Fid link : wanted) {
    const auto found = positions_.find(link);
    if (found == positions_.end()) {
      std::string has = base::counted(links_.size(), "link");
      if (!links_.empty())
        has += fmt::format(", {} to {}", formats::to_text(links_.front()), formats::to_text(links_.back()));
      throw std::runtime_error(fmt::format("There is no link {} in {}: it has {}.", formats::named_link(link), input, has));
    }
    if (taken[found->second])
      throw std::runtime_error(fmt::format("Link {} of {} is already taken.", formats::named_link(link), input));
    taken[found->second] = true;
    positions.push_back(found->second);
  }
  taken_ = std::move(taken);
  return positions;
}

}  // namespace rodeo::input
