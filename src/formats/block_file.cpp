#include "formats/block_file.h"

#include <algorithm>
#include <bitset>

#include <fmt/format.h>

#include "formats/block_decoder.h"
#include "formats/fid.h"

namespace rodeo::formats {
namespace {

constexpr std::size_t kPageBlocks = 64;
constexpr std::size_t kProbedBlocks = 64;

/// How many of the first blocks have the format's marker, if they had this size.
double matching_share(std::span<const std::byte> file, const BlockFormat& format) {
  const std::size_t blocks = std::min(file.size() / format.block_bytes, kProbedBlocks);
  std::size_t matching = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    matching += BlockHeader::read(file.data() + i * format.block_bytes).marker() == format.marker();
  }
  return blocks == 0 ? 0 : static_cast<double>(matching) / static_cast<double>(blocks);
}

Error file_error(const char* code, std::string what) {
  return {code, std::move(what), {}, "a recording of FELIX blocks is expected"};
}

}  // namespace

Result<BlockFormat> detect_block_format(std::span<const std::byte> file) {
  if (file.empty()) return std::unexpected(file_error("formats.empty_recording", "the file is empty"));
  const auto too_short = [&](std::uint32_t needed) {
    return std::unexpected(file_error("formats.short_recording",
                                      fmt::format("the file has {} bytes, less than one block of {}", file.size(), needed)));
  };
  if (file.size() < kBlockHeaderBytes) return too_short(kBlockUnitBytes);

  const BlockHeader first = BlockHeader::read(file.data());
  const auto format = BlockFormat::of_marker(first.marker());
  if (!format) {
    const std::size_t probed = std::min<std::size_t>(file.size(), kMaxBlockBytes);
    if (std::all_of(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(probed),
                    [](std::byte b) { return b == std::byte{0}; })) {
      return std::unexpected(file_error("formats.zero_recording", fmt::format("the first {} bytes are all zero", probed)));
    }
    return std::unexpected(
        file_error("formats.not_a_recording",
                   fmt::format("bytes 2 and 3 are 0x{:04x}, which is no marker (0xabcd, 0xabce, 0xc0ce, 0xc1ce and so on)",
                               first.marker())));
  }
  if (file.size() < format->block_bytes) return too_short(format->block_bytes);
  if (format->family != BlockFamily::trailer32) return *format;

  // A wrong size finds markers at every second place at best, unless it is a multiple of the right one: the smallest size
  // that finds nearly all is right, a few damaged blocks or not.
  constexpr double kNearlyAll = 0.75;
  BlockFormat best = *format;
  double best_share = 0;
  const std::size_t largest = std::min<std::size_t>(kMaxBlockBytes, file.size());
  for (std::uint32_t bytes = kBlockUnitBytes; bytes <= largest && best_share < kNearlyAll; bytes += kBlockUnitBytes) {
    const BlockFormat candidate{BlockFamily::trailer32, bytes};
    const double share = matching_share(file, candidate);
    if (share > best_share) {
      best = candidate;
      best_share = share;
    }
  }
  return best;
}

std::vector<std::uint16_t> elinks_of(std::span<const std::byte> file, const BlockFormat& format) {
  std::bitset<kCardElinks> seen;
  for (std::size_t at = 0; at + format.block_bytes <= file.size(); at += format.block_bytes) {
    const BlockHeader header = BlockHeader::read(file.data() + at);
    if (header.marker() == format.marker()) seen.set(header.elink());
  }
  std::vector<std::uint16_t> elinks;
  for (std::uint32_t elink = 0; elink < kCardElinks; ++elink) {
    if (seen.test(elink)) elinks.push_back(static_cast<std::uint16_t>(elink));
  }
  return elinks;
}

Result<BlockFileInfo> inspect_block_file(std::span<const std::byte> file) {
  const auto format = detect_block_format(file);
  if (!format) return std::unexpected(format.error());
  const std::vector<std::uint16_t> elinks = elinks_of(file, *format);

  BlockFileInfo info;
  info.format = *format;
  info.blocks = file.size() / format->block_bytes;
  info.rest_bytes = file.size() % format->block_bytes;
  std::vector<BlockFileInfo::Elink> by_number(kCardElinks);
  for (const std::uint16_t elink : elinks) {
    info.elinks.push_back({.elink = elink, .smallest_chunk_bytes = UINT32_MAX});
  }

  BlockDecoder decoder({*format}, elinks);
  const auto add_up = [&](const DecodeBuffer& found) {
    for (const ChunkRun& run : found.runs()) {
      BlockFileInfo::Elink& elink = info.elinks[run.link];
      elink.chunks += run.count;
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto size = static_cast<std::uint32_t>(run.chunk(i).size());
        elink.chunk_bytes += size;
        elink.smallest_chunk_bytes = std::min(elink.smallest_chunk_bytes, size);
        elink.largest_chunk_bytes = std::max(elink.largest_chunk_bytes, size);
        elink.flagged_chunks += run.chunk_status(i) != chunk_status::kOk;
      }
    }
  };
  const std::size_t page_blocks = std::min<std::size_t>(kPageBlocks, info.blocks);
  DecodeBuffer found(decoder.capacity_for(page_blocks));
  const std::size_t page_bytes = page_blocks * format->block_bytes;
  for (std::size_t at = 0; at < file.size(); at += page_bytes) {
    const auto page = file.subspan(at, std::min(page_bytes, file.size() - at));
    for (std::size_t block = 0; block + format->block_bytes <= page.size(); block += format->block_bytes) {
      const BlockHeader header = BlockHeader::read(page.data() + block);
      if (header.marker() == format->marker()) ++by_number[header.elink()].blocks;
    }
    found.clear();
    decoder.decode(page, found);
    add_up(found);
  }
  DecodeBuffer open(decoder.capacity_for(0));
  decoder.finish(open);
  add_up(open);

  for (BlockFileInfo::Elink& elink : info.elinks) {
    elink.blocks = by_number[elink.elink].blocks;
    if (elink.chunks == 0) elink.smallest_chunk_bytes = 0;
  }
  for (std::size_t i = 0; i < kBlockCounters; ++i) info.counters[i] = decoder.counters().read(static_cast<BlockCounter>(i));
  return info;
}

bool BlockFileInfo::sound() const {
  if (rest_bytes != 0) return false;
  for (std::size_t i = 0; i < kBlockCounters; ++i) {
    if (is_anomaly(static_cast<BlockCounter>(i)) && counters[i] != 0) return false;
  }
  return true;
}

}  // namespace rodeo::formats
