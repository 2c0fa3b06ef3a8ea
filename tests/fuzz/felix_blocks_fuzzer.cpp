// FELIX blocks: BlockDecoder must agree with its slow twin on any blocks, in chunks, status and counters. Input: 1 byte
// format, 1 byte page size, 1 byte maximum chunk size, then (top bit of the first byte clear) the blocks themselves, or
// (set) recipes of blocks, so that few bytes make many blocks: 2 bytes of sequence number and E-link, 1 byte
// number of trailers, then that many trailers of 2 bytes each, from the end of the block to its begin.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "formats/block_twins.h"
#include "fuzz/check.h"

namespace {

using namespace rodeo::formats;

std::vector<std::uint8_t> blocks_of_recipes(const BlockFormat& format, const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kRecipeBytes = 3;
  std::vector<std::uint8_t> blocks;
  while (size >= kRecipeBytes && blocks.size() < 24 * kBlockUnitBytes) {
    const std::size_t begin = blocks.size();
    blocks.resize(begin + format.block_bytes);
    std::uint8_t* const block = blocks.data() + begin;
    for (std::size_t i = 0; i < format.block_bytes; ++i) block[i] = static_cast<std::uint8_t>(i * 5 + begin / 1024);
    const BlockHeader header{static_cast<std::uint32_t>(data[0] | data[1] << 8) | std::uint32_t{format.marker()} << 16};
    std::memcpy(block, &header.word, sizeof header.word);
    const std::size_t trailers = std::min<std::size_t>(data[2], (size - kRecipeBytes) / 2);
    data += kRecipeBytes;
    size -= kRecipeBytes;
    std::size_t end = format.block_bytes;
    for (std::size_t i = 0; i < trailers; ++i, data += 2, size -= 2) {
      const std::uint32_t narrow = data[0] | static_cast<std::uint32_t>(data[1]) << 8;
      const std::uint32_t length = narrow & Trailer16::kLengthMask;
      const std::uint32_t wide = (narrow >> 10) << 26 | length;
      const std::size_t width = format.trailer_bytes();
      if (end < kBlockHeaderBytes + width) continue;
      std::memcpy(block + end - width, width == 2 ? static_cast<const void*>(&narrow) : &wide, width);
      const bool empty = narrow >> 13 == 0 || narrow >> 13 == 7;
      const std::size_t taken = width + (empty ? 0 : (length + width - 1) / width * width);
      end = taken > end ? 0 : end - taken;
    }
  }
  return blocks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kParameterBytes = 3;
  if (size < kParameterBytes) return 0;
  constexpr std::array kFormats{BlockFormat{BlockFamily::trailer16, 1024}, BlockFormat{BlockFamily::trailer32, 1024},
                                BlockFormat{BlockFamily::phase2, 2048}, BlockFormat{BlockFamily::trailer32, 2048}};
  const BlockDecoder::Options options{kFormats[data[0] & 3], std::array{9000U, 1500U, 1U, 40U}[data[2] & 3]};
  const std::size_t page_blocks = 1 + (data[1] & 7);
  const bool roomy = (data[1] & 8) == 0;
  const bool recipes = (data[0] & 0x80) != 0;
  const std::vector<std::uint16_t> elinks{5, 0x054, 0, 2047};

  const std::vector<std::uint8_t> blocks =
      recipes ? blocks_of_recipes(options.format, data + kParameterBytes, size - kParameterBytes)
              : std::vector<std::uint8_t>(data + kParameterBytes, data + size);
  const slow::Decoded fast = twins::fast(options, elinks, blocks, page_blocks, roomy);
  const slow::Decoded slow = twins::slow_twin(options, elinks, blocks);
  FUZZ_CHECK(fast.counters == slow.counters);
  FUZZ_CHECK(fast.chunks == slow.chunks);
  FUZZ_CHECK(twins::parts_are_the_chunks(options, elinks, blocks, page_blocks));
  return 0;
}
