// Runs BlockDecoder and its slow twin on the same bytes, so that tests and the fuzzer can compare the results.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "formats/block_decoder.h"
#include "formats/slow_block_decoder.h"

namespace twins {

using namespace rodeo::formats;

/// Decodes `data` in pages of `page_blocks` blocks. The memory of each page is overwritten afterwards, to reveal a decoder
/// that keeps a pointer into an old page.
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

/// Whether the pieces of joined chunks in `data` equal the joined chunks.
inline bool parts_are_the_chunks(BlockDecoder::Options options, std::span<const std::uint16_t> elinks,
                                 std::span<const std::uint8_t> data, std::size_t page_blocks) {
  JoinedParts parts;
  options.parts = &parts;
  BlockDecoder decoder(options, elinks);
  DecodeBuffer out(decoder.capacity_for(page_blocks) + decoder.capacity_for(0));
  const std::span<const std::byte> file = std::as_bytes(data);
  const auto within = [&](std::span<const std::byte> bytes) {
    return bytes.data() >= file.data() && bytes.data() + bytes.size() <= file.data() + file.size();
  };
  const auto same = [&] {
    std::size_t part = 0;
    for (const rodeo::ChunkRun& run : out.runs()) {
      if (run.chunk(0).empty() || within(run.chunk(0))) continue;
      for (auto left = run.chunk(0); !left.empty(); ++part) {
        if (part == parts.size() || parts[part].empty() || parts[part].size() > left.size() || !within(parts[part]) ||
            !std::ranges::equal(parts[part], left.first(parts[part].size())))
          return false;
        left = left.subspan(parts[part].size());
      }
    }
    const bool all = part == parts.size();
    parts.clear();
    out.clear();
    return all;
  };
  const std::size_t page_bytes = page_blocks * options.format.block_bytes;
  for (std::size_t at = 0; file.size() - at >= options.format.block_bytes;) {
    const std::size_t taken = decoder.decode(file.subspan(at, std::min(page_bytes, file.size() - at)), out);
    if (taken == 0 || !same()) return false;
    at += taken;
  }
  decoder.finish(out);
  return same();
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
