// zlib streams: compressed event payloads and compressed data blocks of files. The only user of zlib's deflate and inflate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rodeo::formats {

/// deflate compresses at most 1032 : 1; used to refuse impossible sizes.
inline constexpr std::uint64_t kZlibLargestRatio = 1040;

struct ZlibResult {
  bool complete = false;     ///< the stream ended properly, and the output had room
  std::size_t consumed = 0;  ///< bytes of the stream
  std::size_t written = 0;   ///< bytes decompressed
};

/// Decompresses the stream at the start of `stream` into `out`.
ZlibResult zlib_decompress(std::span<const std::byte> stream, std::span<std::byte> out);

/// Decompresses a stream of unknown length, up to `limit` bytes; empty if it is damaged or longer.
std::vector<std::byte> zlib_decompress_all(std::span<const std::byte> stream, std::size_t limit);

std::vector<std::byte> zlib_compress(std::span<const std::byte> bytes, int level);

/// Compresses payloads one after the other, each from pieces, without allocating after construction. One thread at a time.
class ZlibCompressor {
 public:
  explicit ZlibCompressor(int level);
  ~ZlibCompressor();
  ZlibCompressor(ZlibCompressor&&) noexcept;
  ZlibCompressor& operator=(ZlibCompressor&&) noexcept;

  /// The highest possible compressed size of a payload of this size.
  std::size_t bound(std::size_t bytes) const;

  /// Starts a new stream in `out`.
  void start(std::span<std::byte> out);
  void add(std::span<const std::byte> piece);

  /// Ends the stream; returns its size in bytes, or 0 if `out` was too small.
  std::size_t finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rodeo::formats
