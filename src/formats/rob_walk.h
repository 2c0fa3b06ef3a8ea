// ROBs in a message that lies in pieces: found and looked at without copying them (docs/formats/fragment-requests.md, FETCH).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/rod.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// Bytes in pieces, read as if they were in one. Refers to the list of pieces and to what they refer to.
class Pieces {
 public:
  explicit Pieces(std::span<const std::span<const std::byte>> pieces);

  std::size_t bytes() const { return bytes_; }
  /// Copies what lies at `offset`; it is there.
  void copy(std::size_t offset, std::span<std::byte> to) const;
  /// Appends the memory of what lies at `offset`, in as many pieces as it is in.
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
  bool sound = false;        ///< its ROD is one, with the same source id
  RodHeader rod = {};        ///< of a sound one
};

/// Appends each ROB. An error ends it: what stands from there on is no ROB. Survives any bytes. Checksums and data are not looked at.
Decoded<void> walk_robs(const Pieces& pieces, std::vector<FoundRob>& robs);

}  // namespace rodeo::formats
