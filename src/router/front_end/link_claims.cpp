#include "router/front_end/link_claims.h"

#include <fmt/format.h>

#include "formats/link_names.h"

namespace rodeo::router {

LinkClaims::LinkClaims(std::span<const Fid> links) : owners_(links.size()) {
  for (std::size_t i = 0; i < links.size(); ++i) positions_.emplace(links[i], i);
}

Result<std::vector<std::size_t>> LinkClaims::claim(Owner owner, const std::string& name, std::span<const Fid> links) {
  std::vector<std::size_t> positions;
  for (const Fid link : links) {
    const auto found = positions_.find(link);
    if (found == positions_.end())
      return std::unexpected(Error{"transport.unknown_link",
                                   fmt::format("this router has no link {} to a front-end", formats::named_link(link)), "",
                                   "`rodeo route list` shows all links; those to front-ends have bit 15 set"});
    if (const Owner has = owners_[found->second]; has != 0)
      return std::unexpected(Error{"transport.link_owned",
                                   fmt::format("link {} belongs to {}", formats::named_link(link), names_.at(has)), "",
                                   "wait until that process has ended; a link has one owner"});
    positions.push_back(found->second);
  }
  for (const std::size_t position : positions) owners_[position] = owner;
  names_[owner] = name;
  return positions;
}

void LinkClaims::release(Owner owner) {
  for (Owner& one : owners_) {
    if (one == owner) one = 0;
  }
  names_.erase(owner);
}

}  // namespace rodeo::router
