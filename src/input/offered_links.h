// The links of an input. Each is given to at most one stream.
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

  /// Takes links for a stream and returns their positions in all(). `input`: its name in messages, "the generator". Throws
  /// std::runtime_error for an empty list, an unknown link, or a link that another stream has taken.
  std::vector<std::size_t> select(std::span<const Fid> wanted, std::string_view input);

 private:
  std::vector<Fid> links_;
  std::vector<bool> taken_;
  std::unordered_map<Fid, std::size_t> positions_;
};

}  // namespace rodeo::input
