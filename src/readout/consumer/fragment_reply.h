// FragmentReply: ROBs one behind the other as parts that lie where they are: headers and trailers in memory of its own, data in the fragments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/rob_frame.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// What one reply holds until it is sent. Used again, it needs no memory once it has had the largest. One thread at a time.
class FragmentReply {
 public:
  void add(FragmentPtr fragment, const formats::RobFrame& frame);
  void add_absent(SourceId rob, L1Id id, std::uint32_t status, const formats::RobFrame& frame) {
    formats::append_absent_rob(around_, frame, rob, id, status);
  }

  /// All of it, in order, until something is added or let go; `list` is where the list of them lies.
  std::span<const std::span<const std::byte>> parts(std::vector<std::span<const std::byte>>& list) const;

  std::size_t fragments() const { return fragments_.size(); }

  /// Lets go of the fragments.
  void clear();

 private:
  struct Data {
    std::size_t at = 0;  ///< so much of `around_` stands before it
    std::span<const std::byte> bytes;
  };

  std::vector<std::byte> around_;  // what stands before, between and behind the data
  std::vector<Data> data_;
  std::vector<FragmentPtr> fragments_;
};

}  // namespace rodeo::readout
