// zlib streams: compressed event payloads and compressed data blocks of files. The only user of zlib's deflate and inflate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rodeo::formats {

/// deflate reaches at most 1032 : 1; used to refuse sizes that cannot be true.
inline constexpr std::uint64_t kZlibLargestRatio = 1040;

struct ZlibResult {
  bool complete = false;     ///< the stream ended properly and fitted
  std::size_t consumed = 0;  ///< bytes of the stream
  std::size_t written = 0;   ///< bytes made
};

/// Decompresses one stream at the start of `stream` into `out`.
ZlibResult zlib_decompress(std::span<const std::byte> stream, std::span<std::byte> out);

/// Decompresses a stream of unknown length, up to `limit` bytes; empty if it is damaged or longer.
std::vector<std::byte> zlib_decompress_all(std::span<const std::byte> stream, std::size_t limit);

std::vector<std::byte> zlib_compress(std::span<const std::byte> bytes, int level);

/// Compresses one payload after the other from pieces, without allocating after construction. One thread at a time.
class ZlibCompressor {
 public:
  explicit ZlibCompressor(int level);
  ~ZlibCompressor();
  ZlibCompressor(ZlibCompressor&&) noexcept;
  ZlibCompressor& operator=(ZlibCompressor&&) noexcept;

  /// The most bytes that a payload of this size can become.
  std::size_t bound(std::size_t bytes) const;

  /// Starts a new stream that is written to `out`.
  void start(std::span<std::byte> out);
  void add(std::span<const std::byte> piece);

  /// Ends the stream; returns its size in bytes, or 0 if `out` was too small.
  std::size_t finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rodeo::formats
