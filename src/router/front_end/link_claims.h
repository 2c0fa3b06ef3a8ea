// The owners of links: one for each link. Only the owner may send.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::router {

/// No thread, clock or socket. A link is identified by its position in the list given to the constructor.
class LinkClaims {
 public:
  using Owner = std::uint64_t;  ///< 0 means no owner

  explicit LinkClaims(std::span<const Fid> links);

  /// Claims all of the links or none, and returns their positions. Errors transport.unknown_link, transport.link_owned
  /// (names the owner).
  Result<std::vector<std::size_t>> claim(Owner owner, const std::string& name, std::span<const Fid> links);

  /// Frees all links of an owner.
  void release(Owner owner);

  Owner owner(std::size_t link) const { return owners_[link]; }

 private:
  std::unordered_map<Fid, std::size_t> positions_;
  std::vector<Owner> owners_;
  std::unordered_map<Owner, std::string> names_;
};

}  // namespace rodeo::router
