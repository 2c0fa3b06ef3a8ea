// Errors of `rodeo card bench dma` in FELIX blocks: damage on the way, chunks flagged by the card, wrong payload.
#include "bench/card/data_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "formats/block_encoder.h"
#include "formats/fid.h"
#include "formats/provable.h"

namespace rodeo::bench {
namespace {

using formats::BlockFormat;
using formats::Provable;

constexpr BlockFormat kFormat{formats::BlockFamily::trailer32, 1024};
constexpr std::uint16_t kElink = 5;

class BlockCheckTest : public ::testing::Test {
 protected:
  static std::unique_ptr<DataCheck> check_of(CheckLevel level, std::optional<std::uint16_t> ttc = {}) {
    return make_block_check(kFormat.block_bytes, {kElink},
                            {.level = level, .pattern = formats::PagePattern::provable, .seed = 7}, ttc);
  }

  /// A chunk of this size for the next trigger; it is right until the test changes it.
  void add(std::size_t bytes, std::uint8_t status = chunk_status::kOk, std::size_t wrong_byte = SIZE_MAX) {
    const std::uint32_t link = formats::fid_of_card_elink(0, connector_, kElink).default_link_id();
    const Provable provable(7);
    const L1Id l1id{next_++};
    std::vector<std::byte> chunk(std::max<std::size_t>(bytes, Provable::kHeaderBytes));
    Provable::fill(chunk.data(), chunk.size(), provable.header(l1id), provable.key(link, l1id));
    chunk.resize(bytes);
    if (wrong_byte < bytes) chunk[wrong_byte] ^= std::byte{1};
    if (encoder_.full()) encoder_.begin(next_block());
    encoder_.append(chunk, status, [this] { return next_block(); });
  }

  std::span<std::byte> next_block() {
    const std::size_t at = used_;
    used_ += kFormat.block_bytes;
    return std::span(memory_).subspan(at, kFormat.block_bytes);
  }

  /// All chunks so far as one superpage, without its last `cut` bytes.
  void give_to(DataCheck& check, std::size_t cut = 0) {
    if (!encoder_.full()) encoder_.timeout();
    const card::Superpage superpage{
        .offset = 0, .bytes = static_cast<std::uint32_t>(used_), .received = static_cast<std::uint32_t>(used_)};
    check.check(superpage, std::span(memory_).first(used_ - cut));
  }

  static std::uint64_t count_of(const DataCheck& check, std::string_view name) {
    for (const NamedCount& one : check.counts()) {
      if (one.name == name) return one.count;
    }
    return 0;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(std::size_t{64} << 10);
  std::size_t used_ = 0;
  formats::BlockEncoder encoder_{kFormat, kElink};
  std::uint32_t next_ = 0;
  std::uint32_t connector_ = 0;
};

TEST_F(BlockCheckTest, WhatIsRightIsNoError) {
  const auto check = check_of(CheckLevel::full);
  for (int i = 0; i < 100; ++i) add(40);
  add(Provable::kHeaderBytes);
  add(40, chunk_status::kBusy);
  give_to(*check);
  EXPECT_EQ(check->errors(), 0U);
  EXPECT_EQ(count_of(*check, "chunks"), 102U);
}

TEST_F(BlockCheckTest, FlaggedChunksAreErrorsOnceEachAtBothLevels) {
  for (int i = 0; i < 10; ++i) add(40);
  add(40, chunk_status::kFirmwareTruncated);
  add(40, chunk_status::kFirmwareMalformed, 12);
  add(40, chunk_status::kFirmwareCrc, 20);
  add(3, chunk_status::kFirmwareTruncated);
  for (const CheckLevel level : {CheckLevel::full, CheckLevel::fast}) {
    const auto check = check_of(level);
    give_to(*check);
    EXPECT_EQ(check->errors(), 4U);
    EXPECT_EQ(count_of(*check, "firmware_truncated"), 2U);
    EXPECT_EQ(count_of(*check, "firmware_malformed"), 1U);
    EXPECT_EQ(count_of(*check, "firmware_crc"), 1U);
    EXPECT_EQ(count_of(*check, "payload"), 0U) << "the flag is the error";
  }
}

TEST_F(BlockCheckTest, WholeChunksWithoutTheirPayloadAreErrors) {
  const auto check = check_of(CheckLevel::full);
  add(40);
  add(3);  // shorter than a header, without a flag
  add(0);
  add(40, chunk_status::kOk, 39);
  give_to(*check);
  EXPECT_EQ(check->errors(), 3U);
  EXPECT_EQ(count_of(*check, "payload"), 3U);
}

TEST_F(BlockCheckTest, ChunksThatAreMissingAreGapsInL1IdsAndResetsAreNone) {
  for (const std::uint32_t turns : {1U, 4U}) {
    used_ = 0;
    next_ = 0;
    const auto check = check_of(CheckLevel::full);
    const auto add_some = [&] {
      for (int i = 0; i < 20; ++i) {
        add(40);
        next_ += turns - 1;
      }
    };
    add_some();
    next_ += 3 * turns;
    add_some();
    next_ = 1U << 24;  // a reset
    add_some();
    give_to(*check);
    check->finish();
    EXPECT_EQ(count_of(*check, "l1id_gaps"), 1U) << turns;
    EXPECT_EQ(check->errors(), 1U);
    encoder_ = formats::BlockEncoder(kFormat, kElink);
  }
}

TEST_F(BlockCheckTest, TheConnectorOfTheLinksIsFoundUnlessItIsSaid) {
  connector_ = 5;
  for (int i = 0; i < 50; ++i) add(40);
  add(40, chunk_status::kOk, 20);
  const auto found = check_of(CheckLevel::full);
  give_to(*found);
  EXPECT_EQ(found->errors(), 1U);
  const auto said =
      make_block_check(kFormat.block_bytes, {kElink},
                       {.level = CheckLevel::full, .pattern = formats::PagePattern::provable, .seed = 7, .connector = 4});
  give_to(*said);
  EXPECT_EQ(count_of(*said, "payload"), 51U);
}

TEST_F(BlockCheckTest, ALinkThatBringsNothingIsSilent) {
  const auto check =
      make_block_check(kFormat.block_bytes, {kElink, kElink + 1, kElink + 2},
                       {.level = CheckLevel::full, .pattern = formats::PagePattern::provable, .seed = 7}, kElink + 2);
  for (int i = 0; i < 800; ++i) add(40);
  give_to(*check);
  EXPECT_EQ(check->errors(), 0U) << "it may still come";
  check->finish();
  EXPECT_EQ(count_of(*check, "silent_links"), 1U) << "the trigger's own link does not count";
  EXPECT_EQ(check->errors(), 1U);
}

TEST_F(BlockCheckTest, TheTriggersOwnLinkHasAPayloadOfItsOwn) {
  const auto check = check_of(CheckLevel::full, kElink);
  add(3);
  add(40, chunk_status::kOk, 39);
  give_to(*check);
  EXPECT_EQ(check->errors(), 0U);
}

TEST_F(BlockCheckTest, APartOfABlockIsAnError) {
  const auto check = check_of(CheckLevel::full);
  for (int i = 0; i < 100; ++i) add(40);
  give_to(*check, 24);
  EXPECT_EQ(check->errors(), 1U);
  EXPECT_EQ(count_of(*check, "part_of_block"), 1U);
}

/// Superpages of one block, at two places of a buffer.
class LineCheckTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kBytes = 32768;

  static std::vector<std::byte> superpage(unsigned first, unsigned last) {
    std::vector<std::byte> bytes(kBytes);
    const std::uint32_t header = 0xabce0000U;
    for (std::size_t at = 0; at < kBytes; at += kFormat.block_bytes) std::memcpy(bytes.data() + at, &header, sizeof header);
    std::memcpy(bytes.data() + 8, &first, sizeof first);
    std::memcpy(bytes.data() + kBytes - kFormat.block_bytes + 8, &last, sizeof last);
    return bytes;
  }
  void check(std::size_t place, unsigned first, unsigned last) {
    const auto bytes = superpage(first, last);
    check_->check({.offset = place * kBytes, .bytes = kBytes, .received = kBytes}, bytes);
  }
  std::unique_ptr<DataCheck> check_ = make_line_check(formats::PagePattern::provable, kBytes, 2, kFormat.block_bytes);
};

TEST_F(LineCheckTest, NewLinesAreFine) {
  for (unsigned round = 1; round < 5; ++round) {
    check(0, 2 * round, 2 * round);
    check(1, 2 * round + 1, 2 * round + 1);
  }
  EXPECT_EQ(check_->errors(), 0);
}

TEST_F(LineCheckTest, ASuperpageWhoseFirstLineIsTheOldOneIsStale) {
  check(0, 1, 1);
  check(1, 1, 1);  // the same line at another place is allowed
  EXPECT_EQ(check_->errors(), 0);
  check(0, 1, 2);
  EXPECT_EQ(check_->errors(), 1);
}

TEST_F(LineCheckTest, ASuperpageWhoseLastBlockIsTheOldOneIsStale) {
  check(0, 1, 1);
  check(0, 2, 1);
  EXPECT_EQ(check_->errors(), 1);
}

TEST_F(LineCheckTest, BlocksOfUnknownDataMayBeginAlike) {
  check_ = make_line_check(formats::PagePattern::unknown, kBytes, 2, kFormat.block_bytes);
  check(0, 1, 1);
  check(0, 1, 1);
  EXPECT_EQ(check_->errors(), 0);
}

TEST_F(BlockCheckTest, ChunksWithACrcAreRecognised) {
  const std::uint32_t link = formats::fid_of_card_elink(0, 0, kElink).default_link_id();
  const Provable provable(7, true);
  for (unsigned i = 0; i < 20; ++i) {
    std::vector<std::byte> chunk(40);
    provable.write(chunk, link, L1Id{next_++});
    if (i == 15) chunk[20] ^= std::byte{1};
    if (encoder_.full()) encoder_.begin(next_block());
    encoder_.append(chunk, chunk_status::kOk, [this] { return next_block(); });
  }
  const auto check = check_of(CheckLevel::full);
  give_to(*check);
  EXPECT_EQ(check->errors(), 1);
}

}  // namespace
}  // namespace rodeo::bench
