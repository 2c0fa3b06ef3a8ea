// FelixSource and its kernels: chunks written in place, piece by piece, equal those of the plain writer of provable chunks.
#include "emulator/felix_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "formats/block_decoder.h"
#include "formats/fid.h"

namespace rodeo::emulator {
namespace {

using formats::BlockFamily;
using formats::Provable;

constexpr std::array kLevels{base::CpuLevel::v2, base::CpuLevel::avx2, base::CpuLevel::avx512};

TEST(FelixKernels, KeysAreThoseOfTheFormatOnEveryLevel) {
  const Provable provable(77);
  std::mt19937 random(1);
  for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 31U, 100U}) {
    std::vector<std::uint32_t> l1ids(count);
    std::ranges::generate(l1ids, random);
    for (const base::CpuLevel level : kLevels) {
      if (level > base::cpu_level()) continue;
      std::vector<std::uint64_t> keys(count);
      felix_kernels(level).keys(provable, 0xfedcba98, l1ids, keys.data());
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(keys[i], provable.key(0xfedcba98, L1Id{l1ids[i]}));
    }
  }
}

TEST(FelixKernels, WordsCountInStepsAtAnyAddressAndNowhereElse) {
  for (const base::CpuLevel level : kLevels) {
    if (level > base::cpu_level()) continue;
    for (std::size_t count = 0; count < 40; ++count) {
      std::vector<std::byte> memory(8 * count + 3, std::byte{0xee});
      felix_kernels(level).words(memory.data() + 1, count, 12345);
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, memory.data() + 1 + 8 * i, 8);
        EXPECT_EQ(word, 12345 + i * Provable::kStep);
      }
      EXPECT_EQ(memory.front(), std::byte{0xee});
      EXPECT_EQ(memory[8 * count + 1], std::byte{0xee});
    }
  }
}

TEST(FelixKernels, BlocksAreCopiedWhole) {
  for (const base::CpuLevel level : kLevels) {
    if (level > base::cpu_level()) continue;
    struct alignas(64) Blocks {
      std::array<std::byte, 4096> bytes;
    };
    auto from = std::make_unique<Blocks>();
    auto to = std::make_unique<Blocks>();
    std::mt19937 random(2);
    for (std::byte& byte : from->bytes) byte = static_cast<std::byte>(random());
    felix_kernels(level).copy_block(to->bytes.data(), from->bytes.data(), from->bytes.size());
    EXPECT_EQ(to->bytes, from->bytes);
  }
}

/// All blocks of all E-links, concatenated.
struct Blocks final : BlockSink {
  BlockFate block(unsigned, std::span<const std::byte> block) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 64, 0);
    bytes.insert(bytes.end(), block.begin(), block.end());
    return BlockFate::sent;
  }
  void lost(unsigned) override { ADD_FAILURE() << "no fault was requested"; }
  std::vector<std::byte> bytes;
};

TEST(FelixSourceBooks, BalanceWithTheTriggersOwnLinkThatIsDown) {
  FelixSourceSettings settings;
  settings.links = 2;
  settings.elinks_per_link = 3;
  settings.ttc_link = true;
  FelixSource source(settings);
  Blocks blocks;
  const auto append = [&](std::uint32_t first, std::uint32_t count) {
    const trigger::TriggerRange range{.sequence = first, .l1id = first, .count = count};
    source.append(std::span(&range, 1), blocks, 0);
  };
  append(0, 700);
  source.set_up(0, false);
  append(700, 300);
  EXPECT_EQ(source.books().link_down, 4 * 300U) << "three E-links of the detector, and that of the trigger";
  EXPECT_GT(source.books().open(), 0U);
  const auto sent = [&] { return source.books().chunks[static_cast<std::size_t>(BlockFate::sent)]; };
  EXPECT_EQ(sent() + source.books().open() + source.books().link_down, 7 * 1000U);
  source.flush(blocks);
  EXPECT_EQ(source.books().open(), 0U);
  EXPECT_EQ(sent() + source.books().link_down, 7 * 1000U);
}

TEST(FelixSource, BeginsWithSoManyElinksEnabledAsItIsTold) {
  FelixSourceSettings settings;
  settings.links = 3;
  settings.elinks_per_link = 4;
  EXPECT_EQ(FelixSource(settings).enabled(2), 0xfU) << "all";
  settings.elinks = 6;
  const FelixSource source(settings);
  EXPECT_EQ(source.enabled(0), 0xfU);
  EXPECT_EQ(source.enabled(1), 0x3U);
  EXPECT_EQ(source.enabled(2), 0U);
}

using Chunk = std::vector<std::byte>;

std::map<std::uint16_t, std::vector<Chunk>> chunks_by_elink(const Blocks& blocks, const std::vector<std::uint16_t>& elinks) {
  std::map<std::uint16_t, std::vector<Chunk>> found;
  formats::BlockDecoder decoder({.format = {}, .max_chunk_bytes = 1 << 20}, elinks);
  formats::DecodeBuffer buffer(decoder.capacity_for(64));
  for (std::span<const std::byte> rest = blocks.bytes; !rest.empty();) {
    buffer.clear();
    const std::size_t taken = decoder.decode(rest, buffer);
    if (taken == 0) break;
    rest = rest.subspan(taken);
    for (const ChunkRun& run : buffer.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i)
        found[elinks[run.link]].emplace_back(run.chunk(i).begin(), run.chunk(i).end());
    }
  }
  return found;
}

std::map<std::uint16_t, std::vector<std::uint32_t>> l1ids_by_elink(const Blocks& blocks,
                                                                   const std::vector<std::uint16_t>& elinks) {
  std::map<std::uint16_t, std::vector<std::uint32_t>> found;
  for (const auto& [elink, chunks] : chunks_by_elink(blocks, elinks)) {
    for (const Chunk& chunk : chunks) {
      std::uint32_t l1id = 0;
      std::memcpy(&l1id, chunk.data(), sizeof l1id);
      found[elink].push_back(l1id);
    }
  }
  return found;
}

TEST(FelixSource, WrongNumbersAreThoseOfTheNextChunkOrOfAllUntilToldOtherwise) {
  for (const bool crc : {false, true}) {
    FelixSourceSettings settings;
    settings.links = 2;
    settings.elinks_per_link = 1;
    settings.crc = crc;
    settings.l1id_bits = 16;
    FelixSource source(settings);
    Blocks blocks;
    const auto append = [&](std::uint32_t l1id, std::uint32_t count) {
      const trigger::TriggerRange range{.sequence = l1id, .l1id = l1id, .count = count};
      source.append(std::span(&range, 1), blocks, 0);
    };
    append(0, 10);
    source.flip_l1id(0);
    append(10, 10);
    source.shift_bcid(0);
    append(20, 10);
    source.shift_bcids(0, true);
    append(30, 10);
    source.shift_bcids(0, false);
    append(40, 10);
    source.flush(blocks);
    EXPECT_EQ(source.l1ids_flipped(), 1U);
    EXPECT_EQ(source.bcids_shifted(), 11U);

    const Provable plain(settings.seed, crc, 16);
    const auto found = chunks_by_elink(blocks, {0, 1 << 6});
    for (const auto& [elink, chunks] : found) {
      ASSERT_EQ(chunks.size(), 50U);
      for (std::uint32_t i = 0; i < chunks.size(); ++i) {
        Chunk wanted(chunks[i].size());
        plain.write(wanted, formats::fid_of_card_elink(0, 0, elink).default_link_id(), L1Id{i});
        const auto number = [](const Chunk& chunk, std::size_t at) {
          std::uint16_t value = 0;
          std::memcpy(&value, chunk.data() + at, sizeof value);
          return value;
        };
        const bool flipped = elink == 0 && i == 10;
        const bool shifted = elink == 0 && (i == 20 || (i >= 30 && i < 40));
        EXPECT_EQ(std::popcount(static_cast<unsigned>(number(chunks[i], 0) ^ i)), flipped ? 1 : 0) << i;
        EXPECT_EQ(number(chunks[i], 4), (number(wanted, 4) + (shifted ? 1 : 0)) % 3564) << i;
        std::memcpy(wanted.data(), chunks[i].data(), 6);
        plain.seal(wanted);
        EXPECT_EQ(chunks[i], wanted) << "all other bytes and the CRC are right";
      }
    }
  }
}

TEST(FelixSource, ABlockIsFlushedByItsAgeHoweverMuchCameSince) {
  FelixSourceSettings settings;
  settings.links = 2;
  settings.elinks_per_link = 1;
  FelixSource source(settings);
  Blocks blocks;
  const auto append = [&](std::uint32_t l1id, std::uint64_t now_ns) {
    const trigger::TriggerRange range{.sequence = l1id, .l1id = l1id, .count = 1};
    source.append(std::span(&range, 1), blocks, now_ns);
  };
  const auto sent = [&](std::uint16_t elink) { return l1ids_by_elink(blocks, {0, 1 << 6})[elink]; };
  using Ids = std::vector<std::uint32_t>;
  source.set_up(1, false);
  append(0, 100);
  source.set_up(1, true);
  append(1, 200);
  EXPECT_EQ(source.oldest_ns(), 100U);
  source.flush(blocks, 99);
  EXPECT_TRUE(blocks.bytes.empty());
  source.flush(blocks, 100);
  EXPECT_EQ(sent(0), (Ids{0, 1})) << "begun with the first trigger; the second does not change its age";
  EXPECT_TRUE(sent(1 << 6).empty()) << "begun with the second";
  EXPECT_EQ(source.oldest_ns(), 200U);
  append(2, 300);
  source.flush(blocks, 299);
  EXPECT_EQ(sent(1 << 6), (Ids{1, 2}));
  EXPECT_EQ(sent(0), (Ids{0, 1})) << "its second block begins at 300";
  source.flush(blocks);
  EXPECT_EQ(sent(0), (Ids{0, 1, 2}));
  EXPECT_EQ(source.oldest_ns(), FelixSource::kNone);
}

TEST(FelixSource, LinksOfAGroupCarryTheTriggersInTurn) {
  FelixSourceSettings settings;
  settings.full_mode = true;
  settings.links = 6;
  settings.links_per_group = 3;
  settings.chunk_bytes = 600;
  FelixSource source(settings);
  Blocks blocks;
  // Across a reset of the event counter.
  const std::array ranges{trigger::TriggerRange{.sequence = 0, .l1id = 5, .count = 100},
                          trigger::TriggerRange{.sequence = 100, .l1id = 1U << 24, .count = 50}};
  source.append(ranges, blocks, 0);
  source.flush(blocks);
  std::vector<std::uint16_t> elinks;
  for (std::uint16_t link = 0; link < 6; ++link) elinks.push_back(static_cast<std::uint16_t>(link << 6));
  const auto found = l1ids_by_elink(blocks, elinks);
  for (std::uint16_t group = 0; group < 2; ++group) {
    std::set<std::uint32_t> all;
    for (std::uint16_t turn = 0; turn < 3; ++turn) {
      for (const std::uint32_t l1id : found.at(static_cast<std::uint16_t>((3 * group + turn) << 6))) {
        EXPECT_EQ((l1id & 0xffffff) % 3, turn);
        EXPECT_TRUE(all.insert(l1id).second);
      }
    }
    EXPECT_EQ(all.size(), 150U);
  }
  EXPECT_EQ(source.books().begun, 300U);
}

struct Shape {
  BlockFamily family;
  std::uint32_t block_bytes;
  std::size_t chunk_bytes;
  std::size_t chunk_bytes_max;
  bool crc;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.chunk_bytes << " to " << shape.chunk_bytes_max << " bytes";
}

class FelixSourceChunks : public testing::TestWithParam<Shape> {};

TEST_P(FelixSourceChunks, AreThoseOfThePlainWriter) {
  const Shape& shape = GetParam();
  FelixSourceSettings settings;
  settings.links = 2;
  settings.elinks_per_link = 3;
  settings.chunk_bytes = shape.chunk_bytes;
  settings.chunk_bytes_max = shape.chunk_bytes_max;
  settings.format = {.family = shape.family, .block_bytes = shape.block_bytes};
  settings.crc = shape.crc;
  settings.seed = 5;
  FelixSource source(settings);
  Blocks blocks;
  const std::uint32_t triggers = 700;
  const trigger::TriggerRange first{.sequence = 0, .l1id = 0, .count = triggers / 2};
  const trigger::TriggerRange second{.sequence = triggers / 2, .l1id = triggers / 2, .count = triggers - triggers / 2};
  source.append(std::span(&first, 1), blocks, 0);
  source.append(std::span(&second, 1), blocks, 0);
  source.flush(blocks);

  std::vector<std::uint16_t> elinks;
  for (std::uint16_t link = 0; link < 2; ++link) {
    for (std::uint16_t elink = 0; elink < 3; ++elink) elinks.push_back(static_cast<std::uint16_t>(link << 6 | elink));
  }
  formats::BlockDecoder decoder({.format = settings.format, .max_chunk_bytes = 1 << 20}, elinks);
  formats::DecodeBuffer buffer(decoder.capacity_for(64));
  const Provable plain(5, shape.crc);
  std::vector<std::uint32_t> seen(elinks.size(), 0);
  std::span<const std::byte> rest = blocks.bytes;
  while (!rest.empty()) {
    buffer.clear();
    const std::size_t taken = decoder.decode(rest, buffer);
    ASSERT_GT(taken, 0);
    rest = rest.subspan(taken);
    for (const ChunkRun& run : buffer.runs()) {
      const std::uint32_t link_id = formats::fid_of_card_elink(0, 0, elinks[run.link]).default_link_id();
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const L1Id l1id{seen[run.link]++};
        const auto chunk = run.chunk(i);
        std::vector<std::byte> wanted(chunk.size());
        plain.write(wanted, link_id, l1id);
        ASSERT_TRUE(std::ranges::equal(chunk, wanted)) << "chunk of " << chunk.size() << " bytes, trigger " << l1id.value;
        ASSERT_GE(chunk.size(), shape.chunk_bytes);
        ASSERT_LE(chunk.size(), std::max(shape.chunk_bytes, shape.chunk_bytes_max));
        ASSERT_EQ(run.chunk_status(i), chunk_status::kOk);
      }
    }
  }
  for (const std::uint32_t count : seen) EXPECT_EQ(count, triggers);
}

INSTANTIATE_TEST_SUITE_P(
    All, FelixSourceChunks,
    testing::Values(Shape{BlockFamily::trailer16, 1024, 40, 0, false}, Shape{BlockFamily::trailer16, 1024, 1, 0, false},
                    Shape{BlockFamily::trailer16, 1024, 1, 70, false}, Shape{BlockFamily::trailer16, 1024, 5000, 0, false},
                    Shape{BlockFamily::trailer16, 1024, 900, 3001, false},
                    Shape{BlockFamily::trailer16, 1024, 12, 3001, true}, Shape{BlockFamily::trailer32, 1024, 1, 2100, false},
                    Shape{BlockFamily::phase2, 4096, 1, 9001, false}, Shape{BlockFamily::phase2, 4096, 40, 0, false}),
    [](const auto& one) {
      return std::string(one.param.family == BlockFamily::trailer16 ? "Short" : "Wide") +
             std::to_string(one.param.chunk_bytes) + "To" + std::to_string(one.param.chunk_bytes_max) + "Of" +
             std::to_string(one.param.block_bytes) + (one.param.crc ? "Crc" : "") +
             (one.param.family == BlockFamily::phase2 ? "Phase2" : "");
    });

}  // namespace
}  // namespace rodeo::emulator
