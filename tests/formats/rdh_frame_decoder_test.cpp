// RDH pages to frames: the fast decoder against a simple twin.
#include "formats/rdh_frame_decoder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "formats/rdh.h"
#include "formats/rdh_twin.h"

namespace rodeo::formats {
namespace {

using testing::Frame;
using testing::RdhTwin;

// Writes the frames of one link into superpages of a few pages.
class LinkWriter {
 public:
  LinkWriter(std::uint8_t link, std::size_t superpage_bytes) : link_(link), superpage_bytes_(superpage_bytes) {}

  void page(std::uint32_t orbit, std::uint16_t number, bool stop, std::uint16_t payload, std::uint32_t trigger = 0,
            std::uint16_t padding = 0) {
    RdhFields fields{.offset_next = static_cast<std::uint16_t>(kRdhBytes + payload + padding),
                     .memory_size = static_cast<std::uint16_t>(kRdhBytes + payload),
                     .link_id = link_,
                     .packet_counter = packet_++,
                     .orbit = orbit,
                     .trigger_type = trigger,
                     .page_number = number,
                     .stop = stop};
    append(fields, std::size_t{payload} + padding);
  }
  void append(const RdhFields& fields, std::size_t payload) {
    if (superpages.empty() || superpages.back().size() + kRdhBytes + payload > superpage_bytes_) superpages.emplace_back();
    auto& to = superpages.back();
    const std::size_t at = to.size();
    to.resize(at + kRdhBytes + payload, static_cast<std::byte>(fields.orbit));
    fields.header().write(to.data() + at);
  }
  void skip_packet() { ++packet_; }

  std::vector<std::vector<std::byte>> superpages;

 private:
  std::uint8_t link_;
  std::size_t superpage_bytes_;
  std::uint8_t packet_ = 0;
};

std::vector<Frame> decode(RdhFrameDecoder& decoder, std::uint8_t link, const std::vector<std::vector<std::byte>>& superpages,
                          bool finish = true, JoinedParts* parts = nullptr) {
  std::vector<Frame> frames;
  DecodeBuffer buffer(decoder.room());
  const auto take = [&](DecodeBuffer& from) {
    for (const ChunkRun& run : from.runs()) {
      EXPECT_EQ(run.count, 1u);
      frames.push_back({run.status, {run.data, run.data + run.size}});
    }
    if (parts != nullptr) {
      EXPECT_TRUE(testing::parts_are_the_frames(from.runs(), *parts, [&](std::span<const std::byte> one) {
        return std::ranges::any_of(superpages, [&](const auto& superpage) {
          return one.data() >= superpage.data() && one.data() + one.size() <= superpage.data() + superpage.size();
        });
      }));
      parts->clear();
    }
    from.clear();
  };
  for (const auto& superpage : superpages) {
    for (std::size_t at = 0; at < superpage.size();) {
      const std::size_t taken = decoder.decode(link, superpage, at, buffer);
      EXPECT_GT(taken, 0u);
      if (taken == 0) return frames;
      at += taken;
      take(buffer);
    }
  }
  if (finish) {
    DecodeBuffer last(decoder.finish_room());
    decoder.finish(last);
    take(last);
  }
  return frames;
}

std::uint64_t count(const RdhFrameDecoder& decoder, RdhFrameCounter counter) { return decoder.counters().read(counter); }

constexpr std::uint8_t kLink[] = {3};

TEST(RdhFrames, AHeartbeatFrameIsOneChunkFromItsFirstHeaderToItsLastPayload) {
  LinkWriter writer(3, 1 << 20);
  for (std::uint32_t orbit = 10; orbit < 14; ++orbit) {
    writer.page(orbit, 0, false, 100);
    writer.page(orbit, 1, true, 40);
  }
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(frames[i].status, 0);
    EXPECT_EQ(frames[i].bytes.size(), 64u + 100 + 64 + 40);
    EXPECT_EQ(Rdh::read(frames[i].bytes.data()).orbit(), 10 + i);
  }
  EXPECT_EQ(count(decoder, RdhFrameCounter::joined_frames), 0u);
}

TEST(RdhFrames, AFrameOverSuperpagesIsJoined) {
  LinkWriter writer(3, 200);
  writer.page(1, 0, false, 100);
  writer.page(1, 1, false, 100);
  writer.page(1, 2, true, 100);
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].bytes.size(), 3u * 164);
  EXPECT_EQ(frames[0].status, 0);
  EXPECT_EQ(count(decoder, RdhFrameCounter::joined_frames), 1u);
}

TEST(RdhFrames, ATimeFrameIsOneChunkAndIsJoinedAtItsBeginOnly) {
  LinkWriter writer(3, 1 << 20);
  for (std::uint32_t orbit = 98; orbit < 116; ++orbit)
    writer.page(orbit, 0, true, 32, orbit % 8 == 4 ? rdh_trigger::kTimeFrame : 0);
  RdhFrameDecoder decoder({.orbits_per_frame = 8}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages, false);
  ASSERT_EQ(frames.size(), 2u);  // 100-107, 108-115
  EXPECT_EQ(Rdh::read(frames[0].bytes.data()).orbit(), 100u);
  EXPECT_EQ(Rdh::read(frames[1].bytes.data()).orbit(), 108u);
  EXPECT_EQ(frames[0].bytes.size(), 8u * 96);
  EXPECT_EQ(count(decoder, RdhFrameCounter::before_join), 2u);
}

TEST(RdhFrames, ATimeFrameThatTheEndCutsBetweenOrbitsIsShortAndSound) {
  LinkWriter writer(3, 1 << 20);
  for (std::uint32_t orbit = 0; orbit < 10; ++orbit)
    writer.page(orbit, 0, true, 32, orbit % 8 == 0 ? rdh_trigger::kTimeFrame : 0);
  RdhFrameDecoder decoder({.orbits_per_frame = 8}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].bytes.size(), 2u * 96);
  EXPECT_EQ(frames[1].status, 0);
  EXPECT_EQ(count(decoder, RdhFrameCounter::short_frames), 1u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::unfinished), 0u);
}

TEST(RdhFrames, TheLastTimeFrameEndsAtItsPayloadsEndWhereverItsSuperpageEnds) {
  for (const std::size_t superpage : {std::size_t{112}, std::size_t{224}, std::size_t{1} << 20}) {
    LinkWriter writer(3, superpage);
    for (std::uint32_t orbit = 0; orbit < 3; ++orbit)
      writer.page(orbit, 0, true, 32, orbit == 0 ? rdh_trigger::kTimeFrame : 0, 16);
    RdhFrameDecoder decoder({.orbits_per_frame = 8}, kLink);
    const auto frames = decode(decoder, 3, writer.superpages);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].bytes.size(), 2u * 112 + 96) << superpage;
    EXPECT_EQ(frames[0].status, 0);
  }
}

TEST(RdhFrames, PaddingBeyondTheMaximumIsNoLoss) {
  LinkWriter writer(3, 112);
  for (std::uint32_t orbit = 0; orbit < 3; ++orbit)
    writer.page(orbit, 0, true, 32, orbit == 0 ? rdh_trigger::kTimeFrame : 0, 16);
  RdhFrameDecoder decoder({.orbits_per_frame = 8, .max_chunk_bytes = 2 * 112 + 96}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].status, 0);
  EXPECT_EQ(count(decoder, RdhFrameCounter::oversize), 0u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::cut_bytes), 0u);
}

TEST(RdhFrames, AMissingPageMarksItsFrame) {
  LinkWriter writer(3, 1 << 20);
  writer.page(1, 0, false, 10);
  writer.skip_packet();
  writer.page(1, 2, true, 10);
  writer.page(2, 0, true, 10);
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(frames[1].status, 0);
  EXPECT_EQ(count(decoder, RdhFrameCounter::page_gaps), 1u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::packet_gaps), 0u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::lost_pages), 1u);
}

TEST(RdhFrames, AFrameWithoutStopEndsWhereTheNextBegins) {
  LinkWriter writer(3, 1 << 20);
  writer.page(1, 0, false, 10);
  writer.page(2, 0, true, 10);
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(count(decoder, RdhFrameCounter::no_stop), 1u);
}

TEST(RdhFrames, AFrameWhoseBeginIsMissingIsMarked) {
  LinkWriter writer(3, 1 << 20);
  writer.page(1, 0, true, 10);
  writer.page(2, 1, true, 10);
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(count(decoder, RdhFrameCounter::no_begin), 1u);
}

TEST(RdhFrames, AnOffsetOfZeroEndsItsSuperpageAndNothingElse) {
  LinkWriter writer(3, 1 << 20);
  writer.page(1, 0, true, 10);
  writer.append({.offset_next = 0, .memory_size = 64, .link_id = 3, .packet_counter = 1}, 500);
  RdhFrameDecoder decoder({}, kLink);
  EXPECT_EQ(decode(decoder, 3, writer.superpages).size(), 1u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::bad_rdh), 1u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::skipped_bytes), 564u);
}

TEST(RdhFrames, APageOfAnotherLinkIsSkippedAndMarksTheOpenFrame) {
  LinkWriter writer(3, 1 << 20);
  writer.page(1, 0, false, 10);
  writer.append({.offset_next = 74, .memory_size = 74, .link_id = 5}, 10);
  writer.page(1, 1, true, 10);
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].status, chunk_status::kSoftwareMalformed);
  EXPECT_EQ(count(decoder, RdhFrameCounter::wrong_link), 1u);
}

TEST(RdhFrames, ALinkThatIsNotWantedIsSkippedAndJoinsAgainAtAFramesBegin) {
  LinkWriter writer(3, 1024);
  for (std::uint32_t orbit = 1; orbit <= 90; ++orbit) {
    writer.page(orbit, 0, false, 400);
    writer.page(orbit, 1, true, 200);
  }
  const std::array<std::uint8_t, 1> links{3};
  RdhFrameDecoder decoder({}, links);
  const std::size_t third = writer.superpages.size() / 3;
  const auto part = [&](std::size_t from, std::size_t to) {
    const auto begin = writer.superpages.begin();
    return decode(decoder, 3, {begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to)}, false);
  };
  EXPECT_GT(part(0, third).size(), 20u);
  decoder.want(0, false);
  EXPECT_TRUE(part(third, 2 * third).empty());
  decoder.want(0, true);
  const auto frames = part(2 * third, writer.superpages.size());
  ASSERT_GT(frames.size(), 20u);
  for (const Frame& frame : frames) EXPECT_EQ(frame.status, chunk_status::kOk);
  EXPECT_EQ(decoder.counters().read(RdhFrameCounter::packet_gaps), 0u);
}

TEST(RdhFrames, AFrameLongerThanTheMaximumIsCutMarkedAndCounted) {
  LinkWriter writer(3, 300);
  for (std::uint16_t page = 0; page < 6; ++page) writer.page(1, page, page == 5, 200);
  RdhFrameDecoder decoder({.max_chunk_bytes = 600}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].bytes.size(), 600u);
  EXPECT_EQ(frames[0].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(count(decoder, RdhFrameCounter::oversize), 1u);
  EXPECT_EQ(count(decoder, RdhFrameCounter::cut_bytes), 6u * (kRdhBytes + 200u) - 600u);
}

TEST(RdhFrames, AnOpenFrameIsHandedOverAtTheEnd) {
  LinkWriter writer(3, 1 << 20);
  writer.page(1, 0, false, 10);
  RdhFrameDecoder decoder({}, kLink);
  const auto frames = decode(decoder, 3, writer.superpages);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].status, chunk_status::kSoftwareTruncated);
  EXPECT_EQ(count(decoder, RdhFrameCounter::unfinished), 1u);
}

TEST(RdhFrames, AgreeWithTheTwinWhateverIsBroken) {
  std::mt19937 random(7);
  const auto draw = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int trial = 0; trial < 300; ++trial) {
    const std::uint32_t orbits = draw(3) == 0 ? 4 : 1;
    LinkWriter writer(3, 512 + draw(4000));
    std::uint32_t orbit = draw(100);
    for (int frame = 0; frame < 60; ++frame, ++orbit) {
      const std::uint32_t pages = 1 + draw(4);
      for (std::uint32_t page = 0; page < pages; ++page) {
        if (draw(40) == 0) {
          writer.skip_packet();
          continue;
        }
        writer.page(orbit, static_cast<std::uint16_t>(page), page + 1 == pages && draw(40) != 0,
                    static_cast<std::uint16_t>(draw(400)), orbit % orbits == 0 && page == 0 ? rdh_trigger::kTimeFrame : 0,
                    static_cast<std::uint16_t>(draw(3) * 16));
      }
    }
    if (draw(2) == 0) {
      auto& spoilt = writer.superpages[draw(static_cast<std::uint32_t>(writer.superpages.size()))];
      spoilt[draw(static_cast<std::uint32_t>(spoilt.size()))] ^= static_cast<std::byte>(1U << draw(8));
    }
    JoinedParts parts;
    const RdhFrameDecoder::Options options{
        .orbits_per_frame = orbits, .max_chunk_bytes = 1000 + draw(4000), .parts = &parts};
    RdhFrameDecoder decoder(options, kLink);
    RdhTwin twin(options.orbits_per_frame, options.max_chunk_bytes, 3);
    for (const auto& superpage : writer.superpages) twin.superpage(superpage);
    twin.finish();
    EXPECT_EQ(decode(decoder, 3, writer.superpages, true, &parts), twin.frames) << "trial " << trial;
    EXPECT_EQ(count(decoder, RdhFrameCounter::oversize), twin.oversize) << "trial " << trial;
    EXPECT_EQ(count(decoder, RdhFrameCounter::cut_bytes), twin.cut_bytes) << "trial " << trial;
  }
}

}  // namespace
}  // namespace rodeo::formats
