// Fragments of RDH frames: the work extracts their trigger and checks every byte.
#include "readout/consumer/verify_rdh_work.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "formats/rdh_payload.h"
#include "formats/rod_data.h"
#include "readout/extractor/rdh_extractor.h"
#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kSeed = 3;

std::vector<std::byte> frame(std::uint32_t orbit, std::uint8_t link,
                             std::uint32_t trigger = formats::rdh_trigger::kHeartbeat) {
  std::vector<std::byte> bytes(128);
  const formats::Rdh header = formats::RdhFields{.fee_id = link,
                                                 .offset_next = 128,
                                                 .memory_size = 128,
                                                 .link_id = link,
                                                 .bc = 5,
                                                 .orbit = orbit,
                                                 .trigger_type = trigger,
                                                 .stop = true}
                                  .header();
  header.write(bytes.data());
  formats::write_rdh_payload(formats::Provable(kSeed), header, std::span(bytes).subspan(formats::kRdhBytes));
  return bytes;
}

std::uint32_t link_id(std::uint32_t link) { return Fid::of(0, 7, link, 0).default_link_id(); }

// A fragment to which the test adds frames.
class FragmentOfFrames : public FragmentOwner {
 public:
  void reclaim(Fragment&) noexcept override {}
  void add(std::uint32_t link, const std::vector<std::byte>& bytes, std::uint8_t status = 0) {
    formats::append_chunk_record(data, {.felix_status = status, .link_id = link_id(link)}, bytes);
    ++fragment.chunks;
    part = {data.data(), data.size()};
    fragment.parts = &part;
    fragment.part_count = 1;
    fragment.owner = this;
  }
  std::vector<std::byte> data;
  FragmentPart part;
  Fragment fragment;
};

std::uint64_t count(const VerifyRdhWork& work, std::string_view name) { return test::counter_of(work.counters(), name); }

TEST(VerifyRdh, ProvesAFragmentOfItsOrbit) {
  FragmentOfFrames of;
  for (std::uint8_t link = 0; link < 12; ++link) of.add(link, frame(0x12345678, link));
  of.fragment.l1id = L1Id{0x345678};
  VerifyRdhWork work({.seed = kSeed});
  work.process(of.fragment);
  EXPECT_EQ(count(work, "verified_chunks"), 12u);
  EXPECT_EQ(count(work, "mismatches"), 0u);
}

TEST(VerifyRdh, FindsWrongOrbitsLinksAndBytes) {
  FragmentOfFrames of;
  of.add(0, frame(10, 0));
  of.add(1, frame(11, 1));  // another orbit
  of.add(2, frame(10, 3));  // another link
  auto spoilt = frame(10, 4);
  spoilt[100] ^= std::byte{1};
  of.add(4, spoilt);
  of.add(0, frame(10, 0));  // the same frame a second time
  of.add(5, frame(10, 9), chunk_status::kSoftwareTruncated);
  of.fragment.l1id = L1Id{10};
  VerifyRdhWork work({.seed = kSeed});
  work.process(of.fragment);
  EXPECT_EQ(count(work, "wrong_triggers"), 1u);
  EXPECT_EQ(count(work, "wrong_chunks"), 2u);
  EXPECT_EQ(count(work, "duplicate_links"), 1u);
  EXPECT_EQ(count(work, "flagged_chunks"), 1u);
  EXPECT_EQ(count(work, "mismatches"), 4u);
}

TEST(VerifyRdh, APartThatEndsWithinAChunkIsABrokenFragment) {
  FragmentOfFrames of;
  of.add(0, frame(10, 0));
  of.part.size -= 4;
  VerifyRdhWork work({.seed = kSeed});
  work.process(of.fragment);
  EXPECT_EQ(count(work, "broken_fragments"), 1u);
}

TEST(RdhExtractor, GivesOrbitBcidAndTriggerTypeOfTheFirstPage) {
  auto extractor = make_rdh_extractor(1);
  EXPECT_EQ(extractor->fields().l1id_bits, 24);
  const auto bytes = frame(0x12345678, 0);
  const ChunkRun run{.data = bytes.data(), .size = 128, .stride = 128, .count = 1};
  std::uint32_t l1id = 0;
  std::uint16_t bcid = 0;
  ASSERT_EQ(extractor->extract(run, 0, 1, &l1id, &bcid), 1u);
  EXPECT_EQ(l1id, 0x345678u);
  EXPECT_EQ(bcid, 5);
  EXPECT_EQ(extractor->trigger_type(bytes), formats::rdh_trigger::kHeartbeat);
}

constexpr std::uint32_t kBegin = formats::rdh_trigger::kHeartbeat | formats::rdh_trigger::kTimeFrame;

// The number of the time frame that begins with this page; nullopt if none begins.
std::optional<std::uint32_t> number_of(TriggerExtractor& extractor, std::uint32_t orbit, std::uint32_t trigger) {
  const auto bytes = frame(orbit, 0, trigger);
  const ChunkRun run{.data = bytes.data(), .size = 128, .stride = 128, .count = 1};
  std::uint32_t l1id = 0;
  std::uint16_t bcid = 0;
  return extractor.extract(run, 0, 1, &l1id, &bcid) == 1 ? std::optional(l1id) : std::nullopt;
}

TEST(RdhExtractor, TimeFramesAreCountedOneByOneFromTheRunsPhase) {
  for (const std::uint32_t phase : {0U, 3U, 255U}) {
    auto extractor = make_rdh_extractor(256);
    for (std::uint32_t n = 77; n < 80; ++n) EXPECT_EQ(number_of(*extractor, 256 * n + phase, kBegin), n);
  }
}

TEST(RdhExtractor, AFrameThatHasLostItsBeginKeepsItsNumber) {
  for (const std::uint32_t first : {96U, 100U, 103U}) {  // time frames have 8 orbits
    auto extractor = make_rdh_extractor(8);
    EXPECT_EQ(number_of(*extractor, first, kBegin), 12U);
    for (std::uint32_t orbit = 1; orbit < 8; ++orbit)
      EXPECT_EQ(number_of(*extractor, first + 8 + orbit, formats::rdh_trigger::kHeartbeat), 13U)
          << first << ", orbit " << orbit;
    EXPECT_EQ(number_of(*extractor, first + 16, kBegin), 14U);
  }
}

TEST(RdhExtractor, BeforeTheFirstBeginThereIsNoNumber) {
  auto extractor = make_rdh_extractor(8);
  EXPECT_EQ(number_of(*extractor, 103, formats::rdh_trigger::kHeartbeat), std::nullopt);
  EXPECT_EQ(number_of(*extractor, 108, kBegin), 13U);
}

TEST(VerifyRdh, CountsTimeFramesFromTheRunsPhaseAndProvesNoneThatIsShort) {
  std::vector<std::byte> two = frame(101, 0, kBegin);
  const std::vector<std::byte> second = frame(102, 0);
  two.insert(two.end(), second.begin(), second.end());
  FragmentOfFrames whole;
  whole.add(0, two);
  whole.fragment.l1id = L1Id{50};
  VerifyRdhWork work({.seed = kSeed, .orbits_per_frame = 2});
  work.process(whole.fragment);
  EXPECT_EQ(count(work, "verified_chunks"), 1u);
  FragmentOfFrames cut;
  cut.add(0, frame(103, 0, kBegin));
  cut.fragment.l1id = L1Id{51};
  work.process(cut.fragment);
  EXPECT_EQ(count(work, "verified_chunks"), 1u);
  EXPECT_EQ(count(work, "unfinished_frames"), 1u);
  EXPECT_EQ(count(work, "mismatches"), 0u);
}

TEST(RdhExtractor, WhatIsNoHeaderIsMalformed) {
  auto extractor = make_rdh_extractor(1);
  std::vector<std::byte> bytes(128);
  const ChunkRun run{.data = bytes.data(), .size = 128, .stride = 128, .count = 1};
  std::uint32_t l1id = 0;
  std::uint16_t bcid = 0;
  EXPECT_EQ(extractor->extract(run, 0, 1, &l1id, &bcid), 0u);
  const ChunkRun short_run{.data = bytes.data(), .size = 63, .stride = 63, .count = 1};
  EXPECT_EQ(extractor->extract(short_run, 0, 1, &l1id, &bcid), 0u);
}

}  // namespace
}  // namespace rodeo::readout
