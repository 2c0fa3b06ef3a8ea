#include "formats/block_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "base/error.h"
#include "formats/block_encoder.h"
#include "formats/block_twins.h"

namespace {

using namespace rodeo::formats;
namespace chunk_status = rodeo::chunk_status;
using Bytes = std::vector<std::uint8_t>;

constexpr BlockFormat kNarrow{BlockFamily::trailer16, 1024};
constexpr BlockFormat kWide{BlockFamily::trailer32, 1024};
constexpr BlockFormat kPhase2{BlockFamily::phase2, 4096};

Bytes chunk_of(std::size_t size, std::uint64_t seed) {
  Bytes chunk(size);
  for (std::size_t i = 0; i < size; ++i) chunk[i] = static_cast<std::uint8_t>(seed * 31 + i * 7 + 1);
  return chunk;
}

/// Blocks of one E-link, collected in order.
class Stream {
 public:
  Stream(BlockFormat format, std::uint16_t elink, std::uint32_t first_sequence = 0)
      : format_(format), encoder_(format, elink, first_sequence) {}

  void add(const Bytes& chunk, std::uint8_t status = 0) {
    encoder_.append(std::as_bytes(std::span{chunk}), status, [this] { return next(); });
  }
  void timeout() {
    if (encoder_.full()) encoder_.begin(next());
    encoder_.timeout();
  }
  void out_of_band() {
    if (encoder_.full()) encoder_.begin(next());
    encoder_.out_of_band();
  }
  /// Pushes only the begin of a chunk, up to the end of its first block, then gives it up with `tail`.
  void give_up(const Bytes& begin, const Bytes& tail) {
    std::span<const std::byte> rest = std::as_bytes(std::span{begin});
    if (encoder_.full()) encoder_.begin(next());
    EXPECT_FALSE(encoder_.push(rest));
    encoder_.begin(next());
    encoder_.give_up(std::as_bytes(std::span{tail}));
  }
  void flush() {
    if (!encoder_.full()) encoder_.null_fill();
  }
  std::vector<Bytes> finish() {
    if (encoder_.in_chunk()) timeout();
    flush();
    std::vector<Bytes> blocks;
    for (const auto& buffer : buffers_) {
      const auto* const begin = reinterpret_cast<const std::uint8_t*>(buffer.get());
      blocks.emplace_back(begin, begin + format_.block_bytes);
    }
    return blocks;
  }

 private:
  std::span<std::byte> next() {
    buffers_.push_back(std::make_unique<std::byte[]>(format_.block_bytes));
    return {buffers_.back().get(), format_.block_bytes};
  }

  BlockFormat format_;
  BlockEncoder encoder_;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;
};

Bytes join(const std::vector<Bytes>& blocks) {
  Bytes all;
  for (const Bytes& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return all;
}

slow::Decoded decode(BlockFormat format, const Bytes& data, std::vector<std::uint16_t> elinks = {5},
                     std::uint32_t max_chunk = 65536, std::size_t page_blocks = 3) {
  return twins::fast({format, max_chunk}, elinks, data, page_blocks);
}

class EveryFamily : public ::testing::TestWithParam<BlockFormat> {};

TEST_P(EveryFamily, ChunksOfAnySizeComeBackWhole) {
  Stream stream(GetParam(), 5);
  std::vector<slow::Chunk> sent;
  for (std::size_t size = 0; size < 40000; size += 1 + size / 10) {
    sent.push_back({chunk_of(size, static_cast<std::uint32_t>(size)), 0});
    stream.add(sent.back().bytes);
  }
  const Bytes data = join(stream.finish());
  for (const std::size_t page_blocks : {1, 3, 100}) {
    const auto found = decode(GetParam(), data, {5}, 65536, page_blocks);
    EXPECT_EQ(found.chunks.at(5), sent) << page_blocks << " blocks a page";
    EXPECT_EQ(found.counters.at("chunks"), sent.size());
  }
}

TEST_P(EveryFamily, ChunksAroundTheLongestAndTheBlockAreWholeOrCutByWhatIsBeyond) {
  constexpr std::uint32_t kLongest = 3000;
  Stream stream(GetParam(), 5);
  std::vector<std::size_t> sizes;
  const std::size_t block = GetParam().block_bytes;
  for (const std::size_t limit : {block / 2, block, 2 * block, std::size_t{kLongest}}) {
    for (std::size_t size = limit - 6; size <= limit + 6; ++size) sizes.push_back(size);
  }
  for (const std::size_t size : sizes) stream.add(chunk_of(size, static_cast<std::uint32_t>(size)));
  const auto found = decode(GetParam(), join(stream.finish()), {5}, kLongest);
  ASSERT_EQ(found.chunks.at(5).size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto& chunk = found.chunks.at(5)[i];
    EXPECT_EQ(chunk.bytes.size(), std::min<std::size_t>(sizes[i], kLongest));
    EXPECT_EQ(chunk.status, sizes[i] > kLongest ? chunk_status::kSoftwareTruncated : 0) << sizes[i];
  }
}

TEST_P(EveryFamily, AChunkOf64MiBIsWhole) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  Stream stream(GetParam(), 5);
  const std::vector<slow::Chunk> sent{{chunk_of(kSize, 7), 0}};
  stream.add(sent[0].bytes);
  const auto found = decode(GetParam(), join(stream.finish()), {5}, kSize, 1000);
  EXPECT_TRUE(found.chunks.at(5) == sent);
}

TEST_P(EveryFamily, StatusFlagsOfTheFirmwareReachTheirChunk) {
  std::uint8_t flags = chunk_status::kFirmwareTruncated | chunk_status::kFirmwareMalformed | chunk_status::kFirmwareCrc;
  if (GetParam().family != BlockFamily::trailer16) flags |= chunk_status::kBusy;
  Stream stream(GetParam(), 5);
  stream.add(chunk_of(40, 1));
  stream.add(chunk_of(40, 2), flags);
  stream.add(chunk_of(5000, 3), flags);
  stream.add(chunk_of(40, 4));
  const auto found = decode(GetParam(), join(stream.finish()));
  ASSERT_EQ(found.chunks.at(5).size(), 4U);
  EXPECT_EQ(found.chunks.at(5)[0].status, 0U);
  EXPECT_EQ(found.chunks.at(5)[1].status, flags);
  EXPECT_EQ(found.chunks.at(5)[2].status, flags);
  EXPECT_EQ(found.chunks.at(5)[3].status, 0U);
  EXPECT_EQ(found.counters.at("firmware_truncated"), 2U);
  EXPECT_EQ(found.counters.at("firmware_malformed"), 2U);
  EXPECT_EQ(found.counters.at("firmware_crc"), 2U);
}

TEST_P(EveryFamily, AMissingBlockCutsTheOpenChunkAndIsCounted) {
  Stream stream(GetParam(), 5, 30);
  const Bytes whole = chunk_of(10 * GetParam().block_bytes, 1);
  stream.add(whole);
  stream.add(chunk_of(40, 2));
  auto blocks = stream.finish();
  blocks.erase(blocks.begin() + 4, blocks.begin() + 7);
  const auto found = decode(GetParam(), join(blocks));
  ASSERT_EQ(found.chunks.at(5).size(), 2U);
  EXPECT_EQ(found.chunks.at(5)[0].status, chunk_status::kSoftwareTruncated);
  const std::size_t kept = 4 * (GetParam().block_bytes - 4 - GetParam().trailer_bytes());
  EXPECT_EQ(found.chunks.at(5)[0].bytes, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(kept)));
  EXPECT_EQ(found.counters.at("sequence_gaps"), 1U);
  EXPECT_EQ(found.counters.at("lost_blocks"), 3U);
  EXPECT_EQ(found.counters.at("cut_by_gap"), 1U);
  EXPECT_GE(found.counters.at("orphan_middle"), 3U);
  EXPECT_EQ(found.counters.at("orphan_last"), 1U);
  EXPECT_EQ(found.chunks.at(5)[1].bytes, chunk_of(40, 2));
}

TEST_P(EveryFamily, ATruncatingTimeoutEndsTheChunkWithItsLastBytes) {
  Stream stream(GetParam(), 5);
  const Bytes begin = chunk_of(70000, 1);
  stream.give_up(begin, {1, 2, 3});
  stream.timeout();
  stream.add(chunk_of(40, 2));
  const auto found = decode(GetParam(), join(stream.finish()));
  ASSERT_EQ(found.chunks.at(5).size(), 2U);
  EXPECT_EQ(found.chunks.at(5)[0].status, chunk_status::kTimeout | chunk_status::kFirmwareTruncated);
  EXPECT_EQ(found.chunks.at(5)[0].bytes.size(), GetParam().block_bytes - 4 - GetParam().trailer_bytes() + 3);
  EXPECT_EQ(found.counters.at("given_up"), 1U);
  EXPECT_EQ(found.counters.at("timeouts"), 1U);
}

TEST_P(EveryFamily, LongerThanTheMaximumIsCutAndMarked) {
  Stream stream(GetParam(), 5);
  const Bytes whole = chunk_of(10000, 1);
  stream.add(whole);
  stream.add(chunk_of(600, 2));
  stream.add(chunk_of(500, 3));
  const auto found = decode(GetParam(), join(stream.finish()), {5}, 500);
  ASSERT_EQ(found.chunks.at(5).size(), 3U);
  EXPECT_EQ(found.chunks.at(5)[0].bytes, Bytes(whole.begin(), whole.begin() + 500));
  EXPECT_EQ(found.chunks.at(5)[0].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(found.chunks.at(5)[1].bytes.size(), 500U);
  EXPECT_EQ(found.chunks.at(5)[1].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(found.chunks.at(5)[2].status, 0U);
  EXPECT_EQ(found.counters.at("oversize"), 2U);
  EXPECT_EQ(found.counters.at("cut_bytes"), 9500U + 100U);
}

TEST_P(EveryFamily, TheStreamsEndHandsOverWhatIsOpen) {
  Stream stream(GetParam(), 5);
  stream.add(chunk_of(3 * GetParam().block_bytes, 1));
  auto blocks = stream.finish();
  blocks.resize(2);
  const auto found = decode(GetParam(), join(blocks));
  ASSERT_EQ(found.chunks.at(5).size(), 1U);
  EXPECT_EQ(found.chunks.at(5)[0].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(found.counters.at("unfinished"), 1U);
}

// Blocks of two links in turn. The first link has no subscriber for a third of the blocks; chunks cross their borders.
TEST_P(EveryFamily, ALinkThatIsNotWantedIsSkippedAndJoinsAgainAtAChunksBegin) {
  constexpr std::size_t kChunks = 300;
  std::vector<std::vector<Bytes>> blocks;
  for (const std::uint16_t elink : std::array<std::uint16_t, 2>{5, 6}) {
    Stream stream(GetParam(), elink);
    for (std::size_t i = 0; i < kChunks; ++i) stream.add(chunk_of(700, i));
    blocks.push_back(stream.finish());
  }
  BlockDecoder decoder({GetParam(), 65536}, std::array<std::uint16_t, 2>{5, 6});
  std::array<std::vector<Bytes>, 2> came;
  const std::size_t third = blocks[0].size() / 3;
  for (std::size_t i = 0; i < blocks[0].size(); ++i) {
    if (i == third || i == 2 * third) decoder.want(0, i != third);
    for (const auto& of : blocks) {
      DecodeBuffer out(decoder.capacity_for(1));
      decoder.decode(std::as_bytes(std::span{of[i]}), out);
      for (const rodeo::ChunkRun& run : out.runs()) {
        EXPECT_FALSE(run.link == 0 && i >= third && i < 2 * third);
        for (std::uint32_t n = 0; n < run.count; ++n) {
          const auto* const begin = reinterpret_cast<const std::uint8_t*>(run.chunk(n).data());
          came[run.link].emplace_back(begin, begin + run.chunk(n).size());
        }
      }
    }
  }
  ASSERT_EQ(came[1].size(), kChunks);
  EXPECT_LT(came[0].size(), kChunks);
  EXPECT_GT(came[0].size(), kChunks / 3);
  // Whole chunks, in order.
  auto sent = came[1].begin();
  for (const Bytes& chunk : came[0]) {
    sent = std::find(sent, came[1].end(), chunk);
    ASSERT_NE(sent, came[1].end());
    ++sent;
  }
  EXPECT_EQ(came[0].back(), came[1].back());
  for (const auto counter : {BlockCounter::sequence_gaps, BlockCounter::lost_blocks, BlockCounter::unterminated})
    EXPECT_EQ(decoder.counters().read(counter), 0U);
}

TEST_P(EveryFamily, OutOfBandAndFillersBetweenChunksChangeNothing) {
  Stream stream(GetParam(), 5);
  std::vector<slow::Chunk> sent;
  for (std::uint32_t i = 0; i < 300; ++i) {
    sent.push_back({chunk_of(40, i), 0});
    stream.add(sent.back().bytes);
    if (i % 3 == 0) stream.out_of_band();
    if (i % 70 == 0) stream.timeout();
  }
  const auto found = decode(GetParam(), join(stream.finish()));
  EXPECT_EQ(found.chunks.at(5), sent);
  EXPECT_EQ(found.counters.at("out_of_band"), 100U);
  EXPECT_EQ(found.counters.at("timeouts"), 5U);
}

const char* name_of(const ::testing::TestParamInfo<BlockFormat>& family) {
  constexpr const char* kNames[] = {"Trailer16", "Trailer32", "Phase2"};
  return kNames[family.index];
}

INSTANTIATE_TEST_SUITE_P(Blocks, EveryFamily, ::testing::Values(kNarrow, kWide, kPhase2), name_of);

TEST(BlockDecoder, ReadsTheWorkedExampleOfTheSpecification) {
  Bytes before(1024), block(1024);
  const Bytes head{0x54, 0x10, 0xcd, 0xab};
  std::copy(head.begin(), head.end(), before.begin());
  before[1022] = 0xfa;
  before[1023] = 0x23;
  const Bytes text{0x54, 0x18, 0xcd, 0xab, 0x11, 0x22, 0x33, 0x00, 0x03, 0x40, 0xaa, 0xbb, 0xcc, 0xdd, 0x04, 0x60};
  std::copy(text.begin(), text.end(), block.begin());
  block[1022] = 0xee;
  block[1023] = 0xa3;
  const auto found = decode(kNarrow, join({before, block}), {0x054});
  ASSERT_EQ(found.chunks.at(0x054).size(), 2U);
  EXPECT_EQ(found.chunks.at(0x054)[0].bytes.size(), 1021U);
  EXPECT_EQ(found.chunks.at(0x054)[0].bytes.back(), 0x33);
  EXPECT_EQ(found.chunks.at(0x054)[1].bytes, (Bytes{0xaa, 0xbb, 0xcc, 0xdd}));
  EXPECT_EQ(found.counters.at("timeouts"), 1U);
}

TEST(BlockDecoder, ABusyLinkOfEqualChunksGivesOneRunABlockAndOneASplitChunk) {
  Stream stream(kNarrow, 5);
  for (std::uint32_t i = 0; i < 1000; ++i) stream.add(chunk_of(40, i));
  const Bytes data = join(stream.finish());
  const std::vector<std::uint16_t> elinks{5};
  BlockDecoder decoder({kNarrow}, elinks);
  DecodeBuffer out(decoder.capacity_for(data.size() / 1024));
  EXPECT_EQ(decoder.decode(std::as_bytes(std::span{data}), out), data.size());
  EXPECT_LE(out.runs().size(), 2 * data.size() / 1024);
  for (const rodeo::ChunkRun& run : out.runs()) {
    EXPECT_EQ(run.entries, nullptr);
    EXPECT_EQ(run.size, 40U);
    if (run.count > 1) {
      EXPECT_EQ(run.stride, 42U);
    }
  }
}

TEST(BlockDecoder, OtherMarkersAndUnknownLinksAreSkippedAndCounted) {
  Stream wanted(kNarrow, 5), unknown(kNarrow, 6), other(kWide, 5);
  wanted.add(chunk_of(40, 1));
  unknown.add(chunk_of(40, 2));
  other.add(chunk_of(40, 3));
  const auto found = decode(kNarrow, join({unknown.finish()[0], other.finish()[0], wanted.finish()[0]}));
  ASSERT_EQ(found.chunks.size(), 1U);
  EXPECT_EQ(found.chunks.at(5)[0].bytes, chunk_of(40, 1));
  EXPECT_EQ(found.counters.at("bad_marker"), 1U);
  EXPECT_EQ(found.counters.at("unmapped_blocks"), 1U);
  EXPECT_EQ(found.counters.at("blocks"), 3U);
}

TEST(BlockDecoder, TrailersThatDoNotAddUpMarkTheWholeBlock) {
  Stream stream(kNarrow, 5);
  for (std::uint32_t i = 0; i < 60; ++i) stream.add(chunk_of(40, i));
  auto blocks = stream.finish();
  blocks[1][4 + 30 + 20 * 42] ^= 0x01;  // one bit of a length
  const auto found = decode(kNarrow, join(blocks));
  EXPECT_EQ(found.counters.at("bad_trailer"), 1U);
  std::size_t marked = 0;
  for (const slow::Chunk& chunk : found.chunks.at(5)) marked += (chunk.status & chunk_status::kSoftwareMalformed) != 0;
  EXPECT_GT(marked, 0U);
}

TEST(BlockDecoder, AFullBufferStopsTheDecoderWithoutLosingAnything) {
  Stream stream(kNarrow, 5);
  std::vector<slow::Chunk> sent;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    sent.push_back({chunk_of(1 + i % 90, i), 0});
    stream.add(sent.back().bytes);
  }
  const std::vector<std::uint16_t> elinks{5};
  EXPECT_EQ(twins::fast({kNarrow, 65536}, elinks, join(stream.finish()), 50, false).chunks.at(5), sent);
}

TEST(BlockDecoder, ImpossibleSetupsAreRefused) {
  const std::vector<std::uint16_t> good{5}, twice{5, 6, 5}, large{2048};
  EXPECT_THROW(BlockDecoder({kNarrow}, twice), rodeo::SetupError);
  EXPECT_THROW(BlockDecoder({kNarrow}, large), rodeo::SetupError);
  EXPECT_THROW(BlockDecoder({{BlockFamily::trailer16, 2048}}, good), rodeo::SetupError);
  EXPECT_THROW(BlockDecoder({kNarrow, 0}, good), rodeo::SetupError);
}

/// Interleaved blocks of several links with everything that a card can send.
Bytes random_recording(std::mt19937& random, BlockFormat format, std::span<const std::uint16_t> elinks) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::vector<std::vector<Bytes>> links;
  for (const std::uint16_t elink : elinks) {
    Stream stream(format, elink, below(32));
    const std::uint32_t fixed = below(200);
    const bool varied = below(2) == 0;
    for (std::uint32_t i = below(200); i > 0; --i) {
      const std::uint32_t size = !varied ? fixed : below(20) == 0 ? below(3 * format.block_bytes) : below(100);
      stream.add(chunk_of(size, random()), below(30) == 0 ? static_cast<std::uint8_t>(random() & 0x55) : std::uint8_t{0});
      if (below(60) == 0) stream.timeout();
      if (below(60) == 0) stream.out_of_band();
      if (below(90) == 0) stream.give_up(chunk_of(2 * kMaxBlockBytes, random()), chunk_of(below(50), random()));
    }
    links.push_back(stream.finish());
  }
  Bytes all;
  std::vector<std::size_t> at(links.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < links.size(); ++i) {
      for (std::uint32_t burst = below(4); burst > 0 && at[i] < links[i].size(); --burst, ++at[i]) {
        all.insert(all.end(), links[i][at[i]].begin(), links[i][at[i]].end());
      }
      more |= at[i] < links[i].size();
    }
  }
  return all;
}

void damage(std::mt19937& random, BlockFormat format, Bytes& data) {
  const std::size_t block = format.block_bytes;
  for (std::uint32_t faults = static_cast<std::uint32_t>(random() % 20); faults > 0 && data.size() > 2 * block; --faults) {
    const auto at = static_cast<std::ptrdiff_t>(random() % (data.size() / block) * block);
    switch (random() % 6) {
      case 0: data.erase(data.begin() + at, data.begin() + at + static_cast<std::ptrdiff_t>(block)); break;
      case 1: data[random() % data.size()] ^= static_cast<std::uint8_t>(1U << random() % 8); break;
      case 2:
        data[static_cast<std::size_t>(at) + block - 1 - random() % 8] ^= static_cast<std::uint8_t>(1U << random() % 8);
        break;
      case 3: data[static_cast<std::size_t>(at) + random() % 4] ^= static_cast<std::uint8_t>(1U << random() % 8); break;
      case 4: {
        const Bytes copy(data.begin() + at, data.begin() + at + static_cast<std::ptrdiff_t>(block));
        data.insert(data.begin() + at, copy.begin(), copy.end());
        break;
      }
      default:
        std::fill_n(data.begin() + at + static_cast<std::ptrdiff_t>(random() % block / 2), block / 4, std::uint8_t{0});
    }
  }
  if (random() % 4 == 0) data.resize(data.size() - random() % block);
}

TEST(BlockDecoderTwins, AgreeOnSoundAndDamagedRecordings) {
  const std::vector<std::uint16_t> all{5, 0x7c0, 64, 63}, listed{63, 5, 64};
  std::map<std::string, std::uint64_t> seen;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const BlockFormat format = std::array{kNarrow, kWide, kPhase2, BlockFormat{BlockFamily::trailer32, 2048}}[seed % 4];
    Bytes data = random_recording(random, format, all);
    if (seed % 3 != 0) damage(random, format, data);
    const BlockDecoder::Options options{format, std::array{65536U, 1000U, 37U}[seed % 7 % 3]};
    const auto& elinks = seed % 5 == 0 ? all : listed;
    const auto fast = twins::fast(options, elinks, data, 1 + seed % 9, seed % 2 == 0);
    const auto slow = twins::slow_twin(options, elinks, data);
    ASSERT_EQ(fast.counters, slow.counters) << "seed " << seed;
    ASSERT_EQ(fast.chunks, slow.chunks) << "seed " << seed;
    ASSERT_TRUE(twins::parts_are_the_chunks(options, elinks, data, 1 + seed % 9)) << "seed " << seed;
    for (const auto& [name, value] : fast.counters) seen[name] += value;
  }
  for (const auto& info : kBlockCounterInfo)
    EXPECT_TRUE(seen.contains(std::string(info.name))) << info.name << " never occurred";
}

/// A block with pieces of any type in any order, most of them plain; their sizes add up.
Bytes block_of_pieces(std::mt19937& random, BlockFormat format, std::uint16_t elink, std::uint32_t sequence) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Bytes block(format.block_bytes);
  for (std::uint8_t& byte : block) byte = static_cast<std::uint8_t>(random());
  const BlockHeader header = BlockHeader::of(elink, sequence, format.marker());
  std::memcpy(block.data(), &header.word, sizeof header.word);
  const std::uint32_t width = format.trailer_bytes();
  const std::uint32_t usual_size = below(60);
  const std::uint32_t oddity = 1 + below(12);
  for (std::uint32_t end = format.block_bytes; end != kBlockHeaderBytes;) {
    const std::uint32_t type = below(oddity) == 0 ? below(8) : 3;
    const std::uint32_t most = end - kBlockHeaderBytes - width;
    const std::uint32_t size = std::min(most, below(4) == 0 ? below(most + 1) : usual_size);
    const std::uint32_t flags = below(3 * oddity) == 0 ? below(8) : 0;
    const std::uint32_t wide = type << 29 | flags << 26 | size;
    const auto narrow = static_cast<std::uint16_t>(type << 13 | flags << 10 | size);
    std::memcpy(block.data() + end - width, width == 2 ? static_cast<const void*>(&narrow) : &wide, width);
    end -= width;
    if (type != 0 && type != 7) end -= (size + width - 1) / width * width;
  }
  return block;
}

TEST(BlockDecoderTwins, AgreeOnPiecesInAnyOrder) {
  const std::vector<std::uint16_t> elinks{5, 6};
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const BlockFormat format = std::array{kNarrow, kWide, kNarrow, BlockFormat{BlockFamily::phase2, 2048}}[seed % 4];
    Bytes data;
    for (std::uint32_t i = 0; i < 12; ++i) {
      const Bytes block = block_of_pieces(random, format, static_cast<std::uint16_t>(5 + i % 2), i / 2);
      data.insert(data.end(), block.begin(), block.end());
    }
    const BlockDecoder::Options options{format, seed % 3 == 0 ? 50U : 9000U};
    const auto fast = twins::fast(options, elinks, data, 1 + seed % 13, seed % 5 != 0);
    const auto slow = twins::slow_twin(options, elinks, data);
    ASSERT_EQ(fast.counters, slow.counters) << "seed " << seed;
    ASSERT_EQ(fast.chunks, slow.chunks) << "seed " << seed;
    ASSERT_TRUE(twins::parts_are_the_chunks(options, elinks, data, 1 + seed % 13)) << "seed " << seed;
  }
}

TEST(BlockDecoderTwins, AgreeOnRandomBytesBehindGoodHeaders) {
  const std::vector<std::uint16_t> elinks{5};
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const BlockFormat format = seed % 2 == 0 ? kNarrow : kWide;
    Bytes data(5 * 1024);
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::uint8_t>(random() & (seed % 3 == 0 ? 0xff : 0x21 << seed % 3));
    for (std::uint32_t block = 0; block < 5; ++block) {
      const BlockHeader header = BlockHeader::of(5, block, format.marker());
      std::memcpy(data.data() + block * 1024, &header.word, 4);
    }
    const BlockDecoder::Options options{format, 4096};
    const auto fast = twins::fast(options, elinks, data, 2);
    const auto slow = twins::slow_twin(options, elinks, data);
    ASSERT_EQ(fast.counters, slow.counters) << "seed " << seed;
    ASSERT_EQ(fast.chunks, slow.chunks) << "seed " << seed;
    ASSERT_TRUE(twins::parts_are_the_chunks(options, elinks, data, 2)) << "seed " << seed;
  }
}

}  // namespace
