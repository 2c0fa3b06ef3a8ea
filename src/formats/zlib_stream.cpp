#include "formats/zlib_stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace rodeo::formats {
namespace {

// zlib lengths are unsigned int.
uInt piece_of(std::size_t size) { return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max())); }

Bytef* input_of(std::span<const std::byte> bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

}  // namespace

ZlibResult zlib_decompress(std::span<const std::byte> stream, std::span<std::byte> out) {
  z_stream z{};
  if (inflateInit(&z) != Z_OK) throw std::runtime_error("no memory for decompression");
  ZlibResult result;
  int status = Z_OK;
  while (status == Z_OK) {
    z.next_in = input_of(stream.subspan(result.consumed));
    z.avail_in = piece_of(stream.size() - result.consumed);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + result.written);
    z.avail_out = piece_of(out.size() - result.written);
    const uInt in_before = z.avail_in;
    const uInt out_before = z.avail_out;
    status = inflate(&z, Z_NO_FLUSH);
    result.consumed += in_before - z.avail_in;
    result.written += out_before - z.avail_out;
  }
  result.complete = status == Z_STREAM_END;
  inflateEnd(&z);
  return result;
}

std::vector<std::byte> zlib_decompress_all(std::span<const std::byte> stream, std::size_t limit) {
  std::vector<std::byte> out;
  for (std::size_t size = std::min(limit, std::max<std::size_t>(4096, stream.size() * 4));;
       size = std::min(limit, size * 4)) {
    out.resize(size);
    const ZlibResult result = zlib_decompress(stream, out);
    if (result.complete) {
      out.resize(result.written);
      return out;
    }
    if (result.written < size || size == limit) return {};
  }
}

struct ZlibCompressor::State {
  z_stream z{};
  bool fits = true;
};

ZlibCompressor::ZlibCompressor(int level) : state_(std::make_unique<State>()) {
  if (deflateInit(&state_->z, level) != Z_OK) throw std::runtime_error("cannot start zlib compression at this level");
}

ZlibCompressor::~ZlibCompressor() {
  if (state_) deflateEnd(&state_->z);
}
ZlibCompressor::ZlibCompressor(ZlibCompressor&&) noexcept = default;
ZlibCompressor& ZlibCompressor::operator=(ZlibCompressor&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

std::size_t ZlibCompressor::bound(std::size_t bytes) const { return deflateBound(&state_->z, static_cast<uLong>(bytes)); }

void ZlibCompressor::start(std::span<std::byte> out) {
  deflateReset(&state_->z);
  state_->fits = true;
  state_->z.next_out = reinterpret_cast<Bytef*>(out.data());
  state_->z.avail_out = piece_of(out.size());
}

void ZlibCompressor::add(std::span<const std::byte> piece) {
  while (!piece.empty() && state_->fits) {
    state_->z.next_in = input_of(piece);
    state_->z.avail_in = piece_of(piece.size());
    const std::size_t offered = state_->z.avail_in;
    deflate(&state_->z, Z_NO_FLUSH);
    state_->fits = state_->z.avail_in == 0;
    piece = piece.subspan(offered);
  }
}

std::size_t ZlibCompressor::finish() {
  state_->z.next_in = nullptr;
  state_->z.avail_in = 0;
  if (!state_->fits || deflate(&state_->z, Z_FINISH) != Z_STREAM_END) return 0;
  return state_->z.total_out;
}

std::vector<std::byte> zlib_compress(std::span<const std::byte> bytes, int level) {
  ZlibCompressor compressor(level);
  std::vector<std::byte> out(compressor.bound(bytes.size()));
  compressor.start(out);
  compressor.add(bytes);
  out.resize(compressor.finish());
  return out;
}

}  // namespace rodeo::formats
