// Chunk sizes of Rodeo's own streams, in addition to the public interface.
#pragma once

#include <cstdint>

#include "rodeo/input.h"

namespace rodeo::input {

/// A second base class of a DataStream. Its values are constant.
class ChunkLimit {
 public:
  /// The longest chunk, in bytes. Longer chunks are cut and marked.
  virtual std::uint32_t max_chunk_bytes() const = 0;
  /// True if some runs have ChunkRun::more_follows. A builder joins their chunks, up to max_chunk_bytes().
  virtual bool delivers_parts() const { return false; }
  /// True if the stream plays a file; its clock is then the position in the file.
  virtual bool plays_file() const { return false; }
  /// For a stream that plays a file: the clock up to which the file had nothing for this stream, before the page that poll()
  /// returned last.
  virtual std::uint64_t quiet_until() const { return 0; }

 protected:
  ~ChunkLimit() = default;
};

/// The limit for a stream of a plug-in, which may deliver parts.
inline constexpr std::uint32_t kUnsaidMaxChunkBytes = 1U << 20;

inline std::uint32_t max_chunk_bytes(const DataStream& stream) {
  const auto* const limit = dynamic_cast<const ChunkLimit*>(&stream);
  return limit == nullptr ? kUnsaidMaxChunkBytes : limit->max_chunk_bytes();
}

inline bool delivers_parts(const DataStream& stream) {
  const auto* const limit = dynamic_cast<const ChunkLimit*>(&stream);
  return limit == nullptr || limit->delivers_parts();
}

/// The stream itself if it plays a file; else null.
inline const ChunkLimit* player_of(const DataStream& stream) {
  const auto* const limit = dynamic_cast<const ChunkLimit*>(&stream);
  return limit != nullptr && limit->plays_file() ? limit : nullptr;
}

}  // namespace rodeo::input
