// Finds silent links of a channel from the data of the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rodeo::bench {

/// Finds links without data in the last eighth of the data and in the last four rounds over all links.
class SilentLinks {
 public:
  SilentLinks(std::size_t links, std::uint64_t bytes_at_a_time)
      : last_(links), round_(links * bytes_at_a_time), known_(links) {}

  void expect(std::size_t link) { known_[link] = true; }
  void has_data(std::size_t link) {
    last_[link] = bytes_;
    known_[link] = true;
  }
  void passed(std::size_t bytes) { bytes_ += bytes; }
  std::uint64_t count() const {
    const std::uint64_t longest = std::max(bytes_ / 8, 4 * round_);
    std::uint64_t silent = 0;
    for (std::size_t link = 0; link < last_.size(); ++link) silent += known_[link] && bytes_ - last_[link] > longest ? 1 : 0;
    return silent;
  }

 private:
  std::vector<std::uint64_t> last_;
  std::uint64_t round_;
  std::vector<bool> known_;
  std::uint64_t bytes_ = 0;
};

}  // namespace rodeo::bench
