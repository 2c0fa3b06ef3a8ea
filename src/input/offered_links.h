// The links that an input has, each given to one stream at most.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::input {

class OfferedLinks {
 public:
  OfferedLinks() = default;
  explicit OfferedLinks(std::span<const Fid> links) {
    for (const Fid link : links) add(link);
  }

  void add(Fid link);
  std::span<const Fid> all() const { return links_; }

  /// Where these stand among all. `input` is what messages call it: "the generator". Throws std::runtime_error for none, for one that is not
  /// there, and for one that a stream has already.
  std::vector<std::size_t> take(std::span<const Fid> wanted, std::string_view input);

 private:
  std::vector<Fid> links_;
  std::vector<bool> taken_;
  std::unordered_map<Fid, std::size_t> positions_;
};

}  // namespace rodeo::input
