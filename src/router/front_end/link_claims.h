// Who may send to which link: one owner each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "rodeo/ids.h"

namespace rodeo::router {

/// No thread, clock or socket. Links are told by their position in the list that it is made from.
class LinkClaims {
 public:
  using Owner = std::uint64_t;  ///< 0: nobody

  explicit LinkClaims(std::span<const Fid> links);

  /// All of them or none; their positions. Errors transport.unknown_link, transport.link_owned (names who has it).
  Result<std::vector<std::size_t>> claim(Owner owner, const std::string& name, std::span<const Fid> links);

  /// All that it has are free.
  void release(Owner owner);

  Owner owner(std::size_t link) const { return owners_[link]; }

 private:
  std::unordered_map<Fid, std::size_t> positions_;
  std::vector<Owner> owners_;
  std::unordered_map<Owner, std::string> names_;
};

}  // namespace rodeo::router
