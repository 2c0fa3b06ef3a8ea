// The faults of a file, with places: the first ones as text, and the number of all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace rodeo::formats {

struct Finding {
  std::uint64_t offset = 0;  ///< bytes from the start of the file
  std::string what;          ///< "event 3: event checksum is ..., the data give ..."
};

class Findings {
 public:
  static constexpr std::size_t kListed = 20;

  void add(std::uint64_t offset, std::string what) {
    ++total_;
    if (listed_.size() < kListed) listed_.push_back({offset, std::move(what)});
  }

  /// Adds the findings of another part of the same file, and keeps the first ones by offset.
  void add(const Findings& more) {
    total_ += more.total_;
    listed_.insert(listed_.end(), more.listed_.begin(), more.listed_.end());
    std::ranges::stable_sort(listed_, {}, &Finding::offset);
    listed_.resize(std::min(listed_.size(), kListed));
  }

  /// Adds findings at later offsets.
  void append(const Findings& behind) {
    for (const Finding& finding : behind.listed_) {
      if (listed_.size() < kListed) listed_.push_back(finding);
    }
    total_ += behind.total_;
  }

  /// Adds findings that were counted elsewhere.
  void add_unlisted(std::uint64_t count) { total_ += count; }

  std::uint64_t total() const { return total_; }
  const std::vector<Finding>& listed() const { return listed_; }

 private:
  std::uint64_t total_ = 0;
  std::vector<Finding> listed_;
};

}  // namespace rodeo::formats
