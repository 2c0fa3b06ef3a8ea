// FelixSource and its kernels: what is written in place, piece by piece, is what the plain writer of provable chunks writes.
#include "emulator/felix_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
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

/// All blocks of all E-links, behind each other.
struct Blocks final : BlockSink {
  BlockFate block(unsigned, std::span<const std::byte> block) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 64, 0);
    bytes.insert(bytes.end(), block.begin(), block.end());
    return BlockFate::sent;
  }
  void lost(unsigned) override { ADD_FAILURE() << "no fault was asked for"; }
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
    const TriggerRange range{.sequence = first, .l1id = first, .count = count};
    source.append(std::span(&range, 1), blocks, 0);
  };
  append(0, 700);
  source.set_up(0, false);
  append(700, 300);
  EXPECT_EQ(source.books().link_down, 4 * 300U) << "three E-links of the detector, and the trigger's";
  EXPECT_GT(source.books().open(), 0U);
  const auto sent = [&] { return source.books().chunks[static_cast<std::size_t>(BlockFate::sent)]; };
  EXPECT_EQ(sent() + source.books().open() + source.books().link_down, 7 * 1000U);
  (void)source.flush(blocks);
  EXPECT_EQ(source.books().open(), 0U);
  EXPECT_EQ(sent() + source.books().link_down, 7 * 1000U);
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
  const TriggerRange first{.sequence = 0, .l1id = 0, .count = triggers / 2};
  const TriggerRange second{.sequence = triggers / 2, .l1id = triggers / 2, .count = triggers - triggers / 2};
  source.append(std::span(&first, 1), blocks, 0);
  source.append(std::span(&second, 1), blocks, 0);
  (void)source.flush(blocks);

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
