// Runs BlockDecoder and its slow twin on the same bytes, so that tests and the fuzzer can compare what they found.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "formats/block_decoder.h"
#include "formats/slow_block_decoder.h"

namespace twins {

using namespace rodeo::formats;

/// Decodes `data` in pages of `page_blocks` blocks, each from memory that is scribbled over afterwards, so that a decoder
/// which keeps a pointer into an old page is found out.
inline slow::Decoded fast(const BlockDecoder::Options& options, std::span<const std::uint16_t> elinks,
                          std::span<const std::uint8_t> data, std::size_t page_blocks, bool roomy = true) {
  BlockDecoder decoder(options, elinks);
  DecodeBuffer out(decoder.capacity_for(roomy ? page_blocks : 1));
  DecodeBuffer last(decoder.capacity_for(0));
  slow::Decoded found;
  const auto collect = [&](const DecodeBuffer& buffer) {
    for (const rodeo::ChunkRun& run : buffer.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto chunk = run.chunk(i);
        const auto* const begin = reinterpret_cast<const std::uint8_t*>(chunk.data());
        found.chunks[elinks[run.link]].push_back({{begin, begin + chunk.size()}, run.chunk_status(i)});
      }
    }
  };
  const std::size_t page_bytes = page_blocks * options.format.block_bytes;
  std::vector<std::byte> page;
  for (std::size_t at = 0; at < data.size(); at += page_bytes) {
    const auto source = data.subspan(at, std::min(page_bytes, data.size() - at));
    page.resize(source.size());
    std::memcpy(page.data(), source.data(), source.size());
    std::span<const std::byte> rest = page;
    while (rest.size() >= options.format.block_bytes) {
      out.clear();
      const std::size_t taken = decoder.decode(rest, out);
      if (taken == 0) return {};
      collect(out);
      rest = rest.subspan(taken);
    }
    std::fill(page.begin(), page.end(), std::byte{0xee});
  }
  decoder.finish(last);
  collect(last);
  for (std::size_t i = 0; i < kBlockCounters; ++i) {
    const std::uint64_t value = decoder.counters().read(static_cast<BlockCounter>(i));
    if (value != 0) found.counters[std::string(kBlockCounterInfo[i].name)] = value;
  }
  return found;
}

inline slow::Decoded slow_twin(const BlockDecoder::Options& options, std::span<const std::uint16_t> elinks,
                               std::span<const std::uint8_t> data) {
  slow::Decoder decoder({options.format.family != BlockFamily::trailer16,
                         options.format.marker(),
                         options.format.block_bytes,
                         options.max_chunk_bytes,
                         {elinks.begin(), elinks.end()}});
  return decoder.decode(data.data(), data.size());
}

}  // namespace twins
