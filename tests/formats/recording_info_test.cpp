#include "formats/recording_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "formats/block_encoder.h"

namespace {

using namespace rodeo::formats;
using Bytes = std::vector<std::byte>;

/// `blocks` blocks of each E-link, interleaved, full of chunks of `chunk_bytes`.
Bytes recording(BlockFormat format, const std::vector<std::uint16_t>& elinks, std::size_t blocks, std::size_t chunk_bytes) {
  Bytes file(elinks.size() * blocks * format.block_bytes);
  Bytes payload(chunk_bytes, std::byte{0x33});
  std::vector<BlockEncoder> encoders;
  std::vector<std::span<const std::byte>> rests(elinks.size(), payload);
  for (const std::uint16_t elink : elinks) encoders.emplace_back(format, elink);
  for (std::size_t b = 0; b < elinks.size() * blocks; ++b) {
    BlockEncoder& encoder = encoders[b % elinks.size()];
    auto& rest = rests[b % elinks.size()];
    encoder.begin(std::span{file}.subspan(b * format.block_bytes, format.block_bytes));
    while (encoder.push(rest)) rest = payload;
  }
  return file;
}

TEST(RecordingInfo, FamilyAndSizeAreFoundForEveryFormat) {
  std::vector<BlockFormat> formats{{BlockFamily::trailer16, 1024}};
  for (const std::uint32_t n : {1U, 2U, 4U, 5U, 64U}) {
    formats.push_back({BlockFamily::trailer32, n * 1024});
    formats.push_back({BlockFamily::phase2, n * 1024});
  }
  for (const BlockFormat& format : formats) {
    const auto found = detect_block_format(recording(format, {1, 2, 3}, 4, 100));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, format) << format.block_bytes;
  }
}

TEST(RecordingInfo, SizeIsFoundWhereSomeMarkersAreDamaged) {
  const BlockFormat format{BlockFamily::trailer32, 2048};
  Bytes file = recording(format, {1, 2}, 20, 100);
  for (const std::size_t block : {1, 7, 21}) file[block * 2048 + 3] = std::byte{0};
  EXPECT_EQ(detect_block_format(file), format);
  EXPECT_EQ(inspect_recording(file)->counter(BlockCounter::bad_marker), 3U);
}

TEST(RecordingInfo, WhatIsWorkedThroughIsToldInPiecesAndComesToTheWholeFile) {
  const Bytes file = recording({BlockFamily::trailer32, 4096}, {1, 2}, 600, 100'000);
  std::uint64_t told = 0;
  std::uint64_t most = 0;
  ASSERT_TRUE(inspect_recording(file, [&](std::uint64_t bytes) {
    told += bytes;
    most = std::max(most, bytes);
  })) << "the chunks are so long that some E-links are read a second time";
  ASSERT_GT(file.size(), 4U << 20);
  EXPECT_EQ(told, file.size());
  EXPECT_LT(most, 2U << 20);
}

TEST(RecordingInfo, SoundRecordingIsDescribedByElink) {
  const auto info = inspect_recording(recording({BlockFamily::trailer16, 1024}, {0x7c3, 5, 70}, 42, 40));
  ASSERT_TRUE(info.has_value());
  EXPECT_TRUE(info->sound());
  EXPECT_EQ(info->blocks, 126U);
  ASSERT_EQ(info->elinks.size(), 3U);
  EXPECT_EQ(info->elinks[0].elink, 5);
  EXPECT_EQ(info->elinks[2].elink, 0x7c3);
  for (const auto& elink : info->elinks) {
    EXPECT_EQ(elink.blocks, 42U);
    EXPECT_EQ(elink.largest_chunk_bytes, 40U);
    EXPECT_GT(elink.chunks, 1000U);
    EXPECT_LE(elink.flagged_chunks, 1U);
  }
  EXPECT_LE(info->counter(BlockCounter::unfinished), 3U);
}

TEST(RecordingInfo, ChunksOfAnyLengthAreReadWhole) {
  for (const std::uint32_t size : {65'536U, 65'537U, 1'048'577U, 3'000'000U}) {
    const std::size_t blocks = 3 * size / 2000;
    Bytes file = recording({BlockFamily::trailer16, 1024}, {9}, blocks, size);
    const Bytes others = recording({BlockFamily::trailer16, 1024}, {1, 2, 10, 11}, 20, 40);
    file.insert(file.end(), others.begin(), others.end());
    const auto info = inspect_recording(file);
    ASSERT_TRUE(info.has_value());
    EXPECT_TRUE(info->sound()) << size;
    EXPECT_EQ(info->largest_chunk_bytes(), size);
    EXPECT_EQ(info->blocks, blocks + 80);
    EXPECT_EQ(info->counter(BlockCounter::blocks), info->blocks);
    ASSERT_EQ(info->elinks.size(), 5U);
    EXPECT_EQ(info->elinks[2].chunks, 2U);  // the second chunk is not whole
    EXPECT_LT(info->elinks[2].smallest_chunk_bytes, size);
    EXPECT_EQ(info->elinks[3].largest_chunk_bytes, 40U);
  }
}

TEST(RecordingInfo, WhatTheCardFlaggedIsCountedAndNotSound) {
  struct Case {
    std::uint8_t status;
    BlockCounter counter;
  };
  for (const Case flag : {Case{rodeo::chunk_status::kFirmwareTruncated, BlockCounter::firmware_truncated},
                          Case{rodeo::chunk_status::kFirmwareMalformed, BlockCounter::firmware_malformed},
                          Case{rodeo::chunk_status::kFirmwareCrc, BlockCounter::firmware_crc}}) {
    const BlockFormat format;
    Bytes file(format.block_bytes);
    BlockEncoder encoder(format, 5);
    encoder.begin(file);
    const Bytes payload(40);
    for (int i = 0; i < 5; ++i) {
      std::span<const std::byte> chunk = payload;
      ASSERT_TRUE(encoder.push(chunk, i % 2 == 1 ? flag.status : std::uint8_t{0}));
    }
    encoder.timeout();
    const auto info = inspect_recording(file);
    ASSERT_TRUE(info.has_value());
    EXPECT_TRUE(info->whole());
    EXPECT_FALSE(info->sound());
    EXPECT_EQ(info->counter(flag.counter), 2U);
    EXPECT_EQ(info->elinks.front().card_flagged_chunks, 2U);
  }
}

TEST(RecordingInfo, RecordingThatBeginsInsideAChunkIsSound) {
  const Bytes file = recording({BlockFamily::phase2, 2048}, {5}, 10, 10000);
  const auto info = inspect_recording(std::span{file}.subspan(2 * 2048));
  ASSERT_TRUE(info.has_value());
  EXPECT_TRUE(info->sound());
  EXPECT_EQ(info->counter(BlockCounter::before_join), 3U);
}

TEST(RecordingInfo, CutRecordingIsReadAsFarAsItIsWholeAndSaysWhatIsLeft) {
  Bytes file = recording({BlockFamily::trailer16, 1024}, {5}, 10, 40);
  file.resize(file.size() - 300);
  const auto info = inspect_recording(file);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->blocks, 9U);
  EXPECT_EQ(info->rest_bytes, 724U);
  EXPECT_FALSE(info->sound());
}

TEST(RecordingInfo, ARemovedBlockIsCountedAsAGap) {
  Bytes file = recording({BlockFamily::trailer32, 2048}, {5}, 10, 40);
  file.erase(file.begin() + 3 * 2048, file.begin() + 4 * 2048);
  const auto info = inspect_recording(file);
  ASSERT_TRUE(info.has_value());
  EXPECT_FALSE(info->sound());
  EXPECT_EQ(info->counter(BlockCounter::sequence_gaps), 1U);
  EXPECT_EQ(info->counter(BlockCounter::lost_blocks), 1U);
}

TEST(RecordingInfo, DamageIsNamedWithItsBlockAndItsPlaceInTheFile) {
  const BlockFormat format{BlockFamily::trailer32, 2048};
  Bytes file = recording(format, {5, 9}, 20, 40);  // the blocks of both E-links alternate
  file[12 * 2048 + 3] = std::byte{0};              // the number of a block of E-link 5, whose right number is 14
  file[31 * 2048 + 2045] ^= std::byte{0x40};       // the length of a chunk of E-link 9
  file.resize(file.size() - 100);
  const auto info = inspect_recording(file);
  ASSERT_TRUE(info.has_value());
  std::set<std::uint64_t> blocks;
  for (const Finding& finding : info->findings.listed()) {
    blocks.insert(finding.offset / 2048);
    EXPECT_EQ(finding.offset % 2048, 0U) << finding.what;
    if (finding.offset / 2048 < 39) {
      EXPECT_EQ(finding.what.find("block " + std::to_string(finding.offset / 2048)), 0U) << finding.what;
    }
  }
  EXPECT_EQ(blocks, (std::set<std::uint64_t>{12, 14, 31, 39}));
  EXPECT_NE(info->findings.listed()[1].what.find("(E-link 0x005)"), std::string::npos);
  EXPECT_FALSE(info->sound());
}

TEST(RecordingInfo, TheFirstOfManyDamagedBlocksAreListedInTheirOrder) {
  Bytes file = recording({BlockFamily::trailer16, 1024}, {1, 2}, 100, 40);
  for (std::size_t block = 60; block < 160; block += 2) file[block * 1024 + 3] = std::byte{0};
  const auto info = inspect_recording(file);
  ASSERT_TRUE(info.has_value());
  EXPECT_GE(info->findings.total(), 50U);
  ASSERT_EQ(info->findings.listed().size(), Findings::kListed);
  EXPECT_EQ(info->findings.listed().front().offset, 60U * 1024);
  EXPECT_TRUE(std::ranges::is_sorted(info->findings.listed(), {}, &Finding::offset));
}

TEST(RecordingInfo, WhatIsNoRecordingIsRefusedWithTheReason) {
  const auto code = [](const Bytes& file) { return inspect_recording(file).error().code; };
  EXPECT_EQ(code({}), "formats.empty_recording");
  EXPECT_EQ(code(Bytes(1 << 20)), "formats.zero_recording");
  EXPECT_EQ(code(Bytes(3)), "formats.short_recording");
  EXPECT_EQ(code(Bytes(5000, std::byte{0x20})), "formats.not_a_recording");
  Bytes cut = recording({BlockFamily::phase2, 8192}, {5}, 1, 40);
  cut.resize(8191);
  EXPECT_EQ(code(cut), "formats.short_recording");
}

TEST(RecordingInfo, ZerosBehindTheFirstBlockAreBadBlocks) {
  Bytes file = recording({BlockFamily::trailer16, 1024}, {5}, 1, 40);
  file.resize(10 * 1024);
  const auto info = inspect_recording(file);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->counter(BlockCounter::bad_marker), 9U);
  EXPECT_FALSE(info->sound());
}

}  // namespace
