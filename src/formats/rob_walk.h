// Finds the ROBs in a message that lies in pieces, without copying them (docs/reference/formats/fragment-requests.md,
// FETCH).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/rod.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// Bytes in pieces, readable as if contiguous. Refers to the list of pieces and to their memory.
class Pieces {
 public:
  explicit Pieces(std::span<const std::span<const std::byte>> pieces);

  std::size_t bytes() const { return bytes_; }
  /// Copies the bytes at `offset`, which must exist.
  void copy(std::size_t offset, std::span<std::byte> to) const;
  /// Appends the memory of the bytes at `offset`, as one or more pieces.
  void append(std::size_t offset, std::size_t bytes, std::vector<std::span<const std::byte>>& to) const;

 private:
  std::span<const std::span<const std::byte>> pieces_;
  std::size_t bytes_ = 0;
};

struct FoundRob {
  SourceId source_id = {};
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::uint32_t status = 0;  ///< first status word; 0 if there is none
  bool sound = false;        ///< the ROD is valid and has the source id of the ROB
  RodHeader rod = {};        ///< valid if `sound`
};

/// Appends each ROB. Ends at the first error; the bytes from there on are not a ROB. Accepts any bytes. Does not check
/// checksums and data.
Decoded<void> walk_robs(const Pieces& pieces, std::vector<FoundRob>& robs);

}  // namespace rodeo::formats
