#include "formats/recording_info.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "formats/block_decoder.h"
#include "formats/fid.h"
#include "formats/provable.h"

namespace rodeo::formats {
namespace {

constexpr std::size_t kToldBytes = 1 << 20;

constexpr std::size_t kProbedBlocks = 64;

/// The fraction of the first blocks that have the format's marker, for this block size.
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
    return std::unexpected(file_error(
        "formats.not_a_recording",
        fmt::format("bytes 2 and 3 are 0x{:04x}, not a marker (0xabcd, 0xabce, 0xc0ce, 0xc1ce and so on)", first.marker())));
  }
  if (file.size() < format->block_bytes) return too_short(format->block_bytes);
  if (format->family != BlockFamily::trailer32) return *format;

  // A wrong size finds a marker at every second place at best, unless it is a multiple of the right size. So the smallest
  // size that finds nearly all markers is right, even with a few damaged blocks.
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

namespace {

// Checks chunks of one seed, with or without a CRC.
class ChunkProof {
 public:
  explicit ChunkProof(std::uint64_t seed) : plain_(seed, false), sealed_(seed, true) {}
  bool holds(std::span<const std::byte> chunk, std::uint16_t elink) const {
    constexpr std::size_t kLeast = 12;  // shorter chunks do not depend on their link
    if (chunk.size() < kLeast) return false;
    std::uint32_t l1id = 0;
    std::memcpy(&l1id, chunk.data(), sizeof l1id);
    const std::uint32_t link = fid_of_card_elink(0, 0, elink).default_link_id();
    return plain_.matches(chunk, link, L1Id{l1id}) || sealed_.matches(chunk, link, L1Id{l1id});
  }

 private:
  Provable plain_;
  Provable sealed_;
};

void add_up(const DecodeBuffer& found, RecordingInfo::Elink& elink) {
  constexpr std::uint8_t kCardFlags =
      chunk_status::kFirmwareTruncated | chunk_status::kFirmwareMalformed | chunk_status::kFirmwareCrc;
  for (const ChunkRun& run : found.runs()) {
    elink.chunks += run.count;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto size = static_cast<std::uint32_t>(run.chunk(i).size());
      elink.chunk_bytes += size;
      elink.smallest_chunk_bytes = std::min(elink.smallest_chunk_bytes, size);
      elink.largest_chunk_bytes = std::max(elink.largest_chunk_bytes, size);
      elink.flagged_chunks += run.chunk_status(i) != chunk_status::kOk;
      elink.card_flagged_chunks += (run.chunk_status(i) & kCardFlags) != 0;
    }
  }
}

void add_finding(std::size_t at, const BlockFormat& format, const std::string& elink, BlockCounter counter,
                 std::uint64_t count, Findings& findings) {
  const base::CounterInfo& info = kBlockCounterInfo[static_cast<std::size_t>(counter)];
  findings.add(at, fmt::format("block {}{}: {} {}: {}", at / format.block_bytes, elink, count, info.name, info.help));
}

struct ElinkReader {
  ElinkReader(RecordingInfo::Elink& to, const BlockDecoder::Options& options)
      : elink(to), decoder(options, std::span(&to.elink, 1)) {}

  void prove(const DecodeBuffer& found, const ChunkProof& proof, const BlockFormat& format) {
    for (const ChunkRun& run : found.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        if (run.chunk_status(i) != chunk_status::kOk) continue;
        if (proof.holds(run.chunk(i), elink.elink)) {
          ++elink.proven_chunks;
          continue;
        }
        ++elink.wrong_chunks;
        wrong.add(at, fmt::format("block {} (E-link {:#05x}): a chunk of {} bytes does not match the seed",
                                  at / format.block_bytes, elink.elink, run.chunk(i).size()));
      }
    }
  }

  // Assigns new counts of the decoder to the block at `at`.
  void read_all() {
    for (std::size_t i = 0; i < kBlockCounters; ++i) {
      const auto counter = static_cast<BlockCounter>(i);
      const std::uint64_t before = std::exchange(counted[i], decoder.counters().read(counter));
      if (counted[i] != before && (is_anomaly(counter) || is_flag(counter)))
        add_finding(at, decoder.options().format, fmt::format(" (E-link {:#05x})", elink.elink), counter,
                    counted[i] - before, findings);
    }
  }

  RecordingInfo::Elink& elink;
  BlockDecoder decoder;
  std::size_t at = 0;
  std::array<std::uint64_t, kBlockCounters> counted{};
  Findings findings;
  Findings wrong;  // faults of the payload
};

// Decodes the blocks of some E-links with memory for chunks of `longest` bytes. Returns the E-links with a longer chunk,
// without results.
std::vector<std::uint16_t> inspect_elinks(std::span<const std::byte> blocks, std::vector<std::uint16_t> elinks,
                                          std::uint32_t longest, RecordingInfo& info,
                                          const std::function<void(std::uint64_t)>& worked, const ChunkProof* proof) {
  std::vector<std::unique_ptr<ElinkReader>> readers(kCardElinks);
  BlockDecoder::Options options{.format = info.format, .max_chunk_bytes = 1};
  DecodeBuffer::Capacity room;
  for (RecordingInfo::Elink& elink : info.elinks) {
    if (!std::ranges::binary_search(elinks, elink.elink)) continue;
    options.max_chunk_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(longest, elink.blocks * info.format.block_bytes));
    readers[elink.elink] = std::make_unique<ElinkReader>(elink, options);
    const DecodeBuffer::Capacity needed = readers[elink.elink]->decoder.capacity_for(1);
    if (needed.carry_bytes > room.carry_bytes) room = needed;
  }
  DecodeBuffer found(room);
  std::size_t told = 0;
  for (std::size_t at = 0; at < blocks.size(); at += info.format.block_bytes) {
    if (worked && at - told >= kToldBytes) worked(at - std::exchange(told, at));
    const BlockHeader header = BlockHeader::read(blocks.data() + at);
    ElinkReader* const reader = header.marker() == info.format.marker() ? readers[header.elink()].get() : nullptr;
    if (reader == nullptr) continue;
    found.clear();
    reader->decoder.decode(blocks.subspan(at, info.format.block_bytes), found);
    reader->at = at;
    reader->read_all();
    add_up(found, reader->elink);
    if (proof != nullptr) reader->prove(found, *proof, info.format);
  }
  if (worked) worked(blocks.size() - told);
  std::erase_if(elinks, [&](std::uint16_t number) {
    ElinkReader& reader = *readers[number];
    if (reader.decoder.counters().read(BlockCounter::oversize) != 0 && longest != UINT32_MAX) {
      reader.elink = {.elink = number, .blocks = reader.elink.blocks};
      return false;
    }
    found.clear();
    reader.decoder.finish(found);
    reader.read_all();
    add_up(found, reader.elink);
    if (proof != nullptr) reader.prove(found, *proof, info.format);
    if (reader.elink.proven_chunks > 0) reader.findings.add(reader.wrong);
    for (std::size_t i = 0; i < kBlockCounters; ++i) info.counters[i] += reader.counted[i];
    info.findings.add(reader.findings);
    return true;
  });
  return elinks;
}

}  // namespace

Result<RecordingInfo> inspect_recording(std::span<const std::byte> file, const std::function<void(std::uint64_t)>& worked,
                                        std::optional<std::uint64_t> seed) {
  const auto format = RODEO_TRY(detect_block_format(file));
  RecordingInfo info;
  info.format = format;
  info.blocks = file.size() / format.block_bytes;
  info.rest_bytes = file.size() % format.block_bytes;
  const auto blocks = file.first(info.blocks * format.block_bytes);
  std::vector<std::uint64_t> blocks_of(kCardElinks);
  for (std::size_t at = 0; at < blocks.size(); at += format.block_bytes) {
    const BlockHeader header = BlockHeader::read(blocks.data() + at);
    if (header.marker() == format.marker()) {
      ++blocks_of[header.elink()];
    } else {
      add_finding(at, format, "", BlockCounter::bad_marker, 1, info.findings);
    }
  }
  const std::uint64_t bad_markers = info.findings.total();
  std::vector<std::uint16_t> unread;
  for (std::uint32_t elink = 0; elink < kCardElinks; ++elink) {
    if (blocks_of[elink] == 0) continue;
    unread.push_back(static_cast<std::uint16_t>(elink));
    info.elinks.push_back({.elink = unread.back(), .blocks = blocks_of[elink]});
  }
  const std::optional<ChunkProof> proof = seed ? std::optional<ChunkProof>(*seed) : std::nullopt;
  // The length of chunks is not known in advance: an E-link with a chunk that is too long for the memory is read again with
  // more memory.
  constexpr std::uint32_t kUsuallyLongest = 64 * 1024;
  constexpr std::uint32_t kMore = 16;
  for (std::uint32_t longest = kUsuallyLongest; !unread.empty();
       longest = longest > UINT32_MAX / kMore ? UINT32_MAX : longest * kMore) {
    const bool first = longest == kUsuallyLongest;
    unread = inspect_elinks(blocks, std::move(unread), longest, info, first ? worked : std::function<void(std::uint64_t)>{},
                            proof ? &*proof : nullptr);
  }
  info.counters[static_cast<std::size_t>(BlockCounter::blocks)] = info.blocks;
  info.counters[static_cast<std::size_t>(BlockCounter::bad_marker)] = bad_markers;
  if (info.rest_bytes > 0)
    info.findings.add(blocks.size(), fmt::format("{} bytes behind the last whole block", info.rest_bytes));
  for (RecordingInfo::Elink& elink : info.elinks) {
    if (elink.chunks == 0) elink.smallest_chunk_bytes = 0;
  }
  return info;
}

bool RecordingInfo::whole() const {
  if (rest_bytes != 0) return false;
  for (std::size_t i = 0; i < kBlockCounters; ++i) {
    if (is_anomaly(static_cast<BlockCounter>(i)) && counters[i] != 0) return false;
  }
  return true;
}

std::uint64_t RecordingInfo::proven_chunks() const {
  std::uint64_t proven = 0;
  for (const Elink& elink : elinks) proven += elink.proven_chunks;
  return proven;
}

std::uint32_t RecordingInfo::largest_chunk_bytes() const {
  std::uint32_t largest = 0;
  for (const Elink& elink : elinks) largest = std::max(largest, elink.largest_chunk_bytes);
  return largest;
}

}  // namespace rodeo::formats
