// FragmentReply: several ROBs in a row as a list of parts. Headers and trailers have their own memory; data stay in the
// fragments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/rob_frame.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// One reply until it is sent. A reused object allocates only for a larger reply than before. One thread at a time.
class FragmentReply {
 public:
  /// `l1id`: the L1 id of the fragment, or that id corrected to the farm's rounds.
  void add(FragmentPtr fragment, L1Id l1id, const formats::RobFrame& frame);
  void add_absent(SourceId rob, L1Id id, std::uint32_t status, const formats::RobFrame& frame) {
    formats::append_absent_rob(around_, frame, rob, id, status);
  }

  /// All parts in order, valid until the next add or clear; `list` is the memory of the list.
  std::span<const std::span<const std::byte>> parts(std::vector<std::span<const std::byte>>& list) const;

  std::size_t fragments() const { return fragments_.size(); }

  /// Releases the fragments.
  void clear();

 private:
  struct Data {
    std::size_t at = 0;  ///< number of bytes of `around_` before this fragment
    std::span<const std::byte> bytes;
  };

  std::vector<std::byte> around_;  // the bytes before, between and behind the data
  std::vector<Data> data_;
  std::vector<FragmentPtr> fragments_;
};

}  // namespace rodeo::readout
