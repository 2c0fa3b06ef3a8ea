// Real links differ in the meaning of packet counters and the rate of frames: whole data are sound, and each check finds
// missing pages.
#include "formats/rdh_rules.h"

#include <gtest/gtest.h>

#include "formats/rdh_frame_decoder.h"
#include "formats/superpage_check.h"
#include "formats/superpage_dump.h"
#include "rdh_stream.h"

namespace rodeo::formats {
namespace {

using Bytes = std::vector<std::byte>;
using testing::at_random;
using testing::every;
using testing::mostly_next;
using testing::RdhStream;

Bytes joined(const Bytes& one, const Bytes& other) {
  Bytes both = one;
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

// The file without some pages (counted from 0).
Bytes without(const Bytes& file, const std::vector<std::size_t>& pages) {
  Bytes left;
  std::size_t number = 0;
  for_each_page(file, [&](std::size_t at) {
    if (std::ranges::find(pages, number++) == pages.end())
      left.insert(left.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                  file.begin() + static_cast<std::ptrdiff_t>(at + Rdh::read(file.data() + at).offset_next()));
    return true;
  });
  return left;
}

std::string first_finding(const SuperpageDumpInfo& info) {
  return info.findings.listed().empty() ? std::string() : info.findings.listed().front().what;
}

// The frames of each link, as the live readout makes them.
struct Frames {
  std::uint64_t all = 0;
  std::uint64_t flagged = 0;
  std::uint64_t anomalies = 0;
};
Frames frames_of(const RdhStream& stream, std::uint32_t orbits_per_frame = 1, const std::vector<std::size_t>& lost = {}) {
  const std::vector<std::uint8_t> links = stream.links;
  RdhFrameDecoder decoder({.orbits_per_frame = orbits_per_frame, .max_chunk_bytes = 1 << 16}, links);
  DecodeBuffer buffer(decoder.room() + decoder.finish_room());
  Frames frames;
  const auto take = [&] {
    for (const ChunkRun& run : buffer.runs()) {
      ++frames.all;
      frames.flagged += run.status != 0 ? 1 : 0;
    }
    buffer.clear();
  };
  std::size_t number = 0;
  for (const RdhStream::Page& page : stream.sent()) {  // superpages have one page each, in the order of sending
    if (std::ranges::find(lost, number++) != lost.end()) continue;
    Bytes superpage;
    RdhStream::append(superpage, page.header);
    for (std::size_t at = 0; at < superpage.size();) at += decoder.decode(page.link, superpage, at, buffer);
    take();
  }
  decoder.finish(buffer);
  take();
  for (std::size_t i = 0; i < kRdhFrameCounters; ++i) {
    const auto counter = static_cast<RdhFrameCounter>(i);
    if (is_anomaly(counter)) frames.anomalies += decoder.counters().read(counter);
  }
  return frames;
}

const std::vector<RdhStream> kKinds{
    {},
    {.shared_packet_counter = true},
    {.shared_packet_counter = true, .page_by_page = false, .orbits = every(1, 40)},
    {.links = {0, 1, 2, 3, 4, 5, 6}, .shared_packet_counter = true, .orbits = every(1, 2)},
    {.orbits = every(11, 6)},
    {.shared_packet_counter = true, .orbits = every(11, 6)},
    {.shared_packet_counter = true, .page_by_page = false, .orbits = every(11, 60)},
    {.orbits = at_random(50)},
    {.shared_packet_counter = true, .orbits = at_random(50)},
    {.shared_packet_counter = true, .page_by_page = false, .orbits = at_random(50)},
    {.links = {8}, .orbits = every(1, 5)},
    {.links = {8, 9}, .orbits = every(1, 1)},
    {.shared_packet_counter = true, .orbits = every(1, 300, UINT32_MAX - 100)},
    {.shared_packet_counter = true, .orbits = every(1, 50), .pages = 1},
    {.orbits = mostly_next(100)},
    {.shared_packet_counter = true, .orbits = mostly_next(100)},
    {.shared_packet_counter = true, .page_by_page = false, .orbits = mostly_next(200, 9)},
};

TEST(RdhRules, WhatAnEndpointSendsIsSoundWhateverItsRules) {
  for (const RdhStream& kind : kKinds) {
    const SuperpageDumpInfo info = inspect_superpage_dump(kind.file(), 1);
    EXPECT_TRUE(info.sound()) << &kind - kKinds.data() << ' ' << first_finding(info);
    EXPECT_EQ(info.links.size(), kind.links.size());
    const Frames frames = frames_of(kind);
    EXPECT_EQ(frames.all, kind.links.size() * kind.orbits.size());
    EXPECT_EQ(frames.flagged + frames.anomalies, 0U) << &kind - kKinds.data();
  }
}

TEST(RdhRules, AFileOfSomeLinksIsSound) {
  for (const RdhStream& kind : kKinds) {
    for (const std::uint8_t link : kind.links) {
      const SuperpageDumpInfo info = inspect_superpage_dump(kind.file({link}), 1);
      EXPECT_TRUE(info.sound()) << &kind - kKinds.data() << ' ' << first_finding(info);
    }
  }
}

TEST(RdhRules, EndpointsInOneFileAreJudgedEachByItsOwnRules) {
  const RdhStream own{.endpoint = 1};
  const RdhStream shared{.endpoint = 0, .shared_packet_counter = true};
  const SuperpageDumpInfo info = inspect_superpage_dump(joined(own.file(), shared.file()), 1);
  EXPECT_TRUE(info.sound()) << first_finding(info);
  EXPECT_EQ(info.links.size(), 6U);
  EXPECT_TRUE(info.shared_packet_counters);
}

TEST(RdhRules, EachEndpointHasItsOwnUsualOrbits) {
  for (const bool shared : {false, true}) {
    const RdhStream one{.shared_packet_counter = shared, .orbits = every(1, 60)};
    const RdhStream other{.endpoint = 1, .shared_packet_counter = shared, .orbits = every(11, 40)};
    SuperpageDumpInfo info = inspect_superpage_dump(joined(one.file(), other.file()), 1);
    EXPECT_TRUE(info.sound()) << first_finding(info);
    EXPECT_EQ(info.orbit_steps, (std::vector<std::uint32_t>{1, 11}));
    EXPECT_FALSE(info.orbit_step);
    EXPECT_FALSE(info.orbits_differ || info.orbits_vary);
    info = inspect_superpage_dump(joined(one.file(), without(other.file(), {9, 10, 11})), 1);
    EXPECT_EQ(info.counter(SuperpageCounter::orbit), 1U);
    EXPECT_NE(first_finding(info).find(": CRU 0xb7 endpoint 1, link 0,"), std::string::npos) << first_finding(info);
  }
}

TEST(RdhRules, AnUnusualOrbitIsAnErrorWhereFramesAreMissingAndNotWhereTriggersMakeIt) {
  for (const bool shared : {false, true}) {
    for (const bool in_turn : {false, true}) {  // links come one after the other, or in turn
      const RdhStream stream{.shared_packet_counter = shared, .orbits = mostly_next(100)};
      std::vector<std::size_t> frame{90, 91, 92};  // a frame of the first link
      Bytes file = stream.file();
      if (in_turn) {
        file.clear();
        for (const RdhStream::Page& page : stream.sent()) RdhStream::append(file, page.header);
        frame = {270, 273, 276};
      }
      SuperpageDumpInfo info = inspect_superpage_dump(file, 1);
      EXPECT_TRUE(info.sound()) << first_finding(info);
      EXPECT_TRUE(info.orbits_vary);
      EXPECT_EQ(info.orbit_step, 1U);
      info = inspect_superpage_dump(without(file, frame), 1);
      EXPECT_EQ(info.counter(SuperpageCounter::orbit), 1U) << shared << in_turn;
      EXPECT_NE(first_finding(info).find(": link 0,"), std::string::npos) << first_finding(info);
      EXPECT_EQ(info.counter(SuperpageCounter::packet_counter), shared ? 0U : 1U);
    }
  }
}

TEST(RdhRules, APeriodOfPacketCountersIsFoundInContinuousDataAlone) {
  std::vector<std::size_t> lost(256);
  for (std::size_t i = 0; i < lost.size(); ++i) lost[i] = 300 + i;
  const RdhStream continuous{.links = {4}, .orbits = every(1, 800), .pages = 1};
  EXPECT_EQ(inspect_superpage_dump(without(continuous.file(), lost), 1).counter(SuperpageCounter::orbit), 1U);
  const RdhStream triggered{.links = {4}, .orbits = mostly_next(800), .pages = 1};
  const SuperpageDumpInfo info = inspect_superpage_dump(without(triggered.file(), lost), 1);
  EXPECT_TRUE(info.sound()) << first_finding(info);
  EXPECT_TRUE(info.orbits_vary) << "the report says that such a loss is not seen";
}

TEST(RdhRules, TimeFramesWithUnusualOrbitsAreWholeIfTheLinksOwnCounterFollows) {
  RdhStream stream{.links = {2}, .orbits = {}, .time_frame = rdh_trigger::kTimeFrame};
  for (std::uint32_t orbit = 64; stream.orbits.size() < 400; ++orbit) {
    if (orbit % 32 == 0 || orbit % 5 != 0) stream.orbits.push_back(orbit);  // the triggers leave out some orbits
  }
  const std::uint64_t before = frames_of(stream, 32).flagged;
  EXPECT_LE(before, 1U);  // the decoder flags one frame until it knows the steps
  EXPECT_EQ(frames_of(stream, 32, {600, 601, 602}).flagged, before + 1);
}

TEST(RdhRules, APageThatIsMissingInAFrameIsFoundWhateverTheRules) {
  for (const RdhStream& kind : kKinds) {
    if (kind.pages < 3) continue;
    for (const std::size_t page : {std::size_t{0}, std::size_t{1}}) {
      const SuperpageDumpInfo info = inspect_superpage_dump(without(kind.file(), {page}), 1);
      // The very first page is missing: only the frame's number shows it, and only for links with an earlier frame.
      if (page == 0) continue;
      EXPECT_EQ(info.counter(SuperpageCounter::page_number), 1U) << &kind - kKinds.data();
    }
    const std::size_t links = kind.links.size();
    const Frames frames = frames_of(kind, 1, {kind.page_by_page ? links : 1});  // drops a page of the first frame
    EXPECT_EQ(frames.flagged, 1U) << &kind - kKinds.data();
    EXPECT_GT(frames.anomalies, 0U);
  }
}

TEST(RdhRules, AFrameThatIsMissingIsFoundByTheOrbitsThatAreUsual) {
  for (const std::uint32_t step : {1U, 11U}) {
    for (const bool shared : {false, true}) {
      const RdhStream stream{.shared_packet_counter = shared, .orbits = every(step, 8)};
      const SuperpageDumpInfo info = inspect_superpage_dump(without(stream.file(), {9, 10, 11}), 1);
      EXPECT_EQ(info.counter(SuperpageCounter::orbit), 1U) << step;
      EXPECT_EQ(info.counter(SuperpageCounter::packet_counter), shared ? 0U : 1U);
      EXPECT_EQ(info.orbit_step, step);
      EXPECT_EQ(info.shared_packet_counters, shared);
    }
  }
}

TEST(RdhRules, WhereOrbitsDifferAFrameThatIsMissingIsFoundByItsOwnPacketCounterAlone) {
  for (const bool shared : {false, true}) {
    const RdhStream stream{.shared_packet_counter = shared, .orbits = at_random(50)};
    const SuperpageDumpInfo info = inspect_superpage_dump(without(stream.file(), {9, 10, 11}), 1);
    EXPECT_FALSE(info.orbit_step);
    EXPECT_EQ(info.counter(SuperpageCounter::orbit), 0U);
    EXPECT_EQ(info.counter(SuperpageCounter::packet_counter), shared ? 0U : 1U);
  }
}

TEST(RdhRules, TheReadoutCountsPagesThatAreLostBetweenFramesIfLinksCountByThemselves) {
  RdhStream stream{.links = {5}, .orbits = every(1, 40)};
  std::vector<std::size_t> lost;
  for (std::size_t page = 31; page < 40; ++page)
    lost.push_back(page);  // pages of four frames; the fourth keeps its last two pages
  Frames frames = frames_of(stream, 1, lost);
  EXPECT_EQ(frames.flagged, 2U);  // one frame has no end, and one has no begin
  RdhFrameDecoder decoder({}, stream.links);
  DecodeBuffer buffer(decoder.room());
  std::size_t number = 0;
  for (const RdhStream::Page& page : stream.sent()) {
    if (std::ranges::find(lost, number++) != lost.end()) continue;
    Bytes superpage;
    RdhStream::append(superpage, page.header);
    decoder.decode(5, superpage, 0, buffer);
    buffer.clear();
  }
  EXPECT_EQ(decoder.counters().read(RdhFrameCounter::packet_gaps), 1U);
  EXPECT_EQ(decoder.counters().read(RdhFrameCounter::lost_pages), lost.size());
}

TEST(RdhRules, TimeFramesOfFramesThatComeSeldomAreWhole) {
  for (const std::uint32_t step : {1U, 11U}) {
    RdhStream stream{.links = {2}, .orbits = every(step, 200, 64), .time_frame = rdh_trigger::kTimeFrame};
    const Frames frames = frames_of(stream, 32);
    // The decoder does not know the first step until it has seen it.
    EXPECT_LE(frames.flagged, step == 1 ? 0U : 1U) << step;
    EXPECT_GE(frames.all, 200U * step / 32);
  }
  // A missing heartbeat frame in a time frame is found.
  RdhStream stream{.links = {2}, .orbits = every(1, 64, 64), .time_frame = rdh_trigger::kTimeFrame};
  EXPECT_EQ(frames_of(stream, 32, {30, 31, 32}).flagged, 1U);
}

TEST(RdhRules, AFlippedBitOfAPacketCounterIsFoundWhereLinksCountByThemselves) {
  const RdhStream stream{.orbits = every(1, 20)};
  const Bytes sound = stream.file();
  std::size_t number = 0;
  for_each_page(sound, [&](std::size_t at) {
    Bytes file = sound;
    file[at + 13] ^= std::byte{4};
    const SuperpageDumpInfo info = inspect_superpage_dump(file, 1);
    EXPECT_FALSE(info.sound()) << number;
    EXPECT_FALSE(info.shared_packet_counters) << number;
    return ++number < 60;
  });
}

TEST(RdhRules, ALiveCheckTakesBackWhatWasTheRule) {
  const RdhStream stream{.shared_packet_counter = true, .orbits = every(11, 40)};
  SuperpageCheck check({.time_frame_orbits = 0});
  for (const RdhStream::Page& page : stream.sent()) {
    Bytes superpage;
    RdhStream::append(superpage, page.header);
    check.check(page.link, superpage);
  }
  EXPECT_EQ(check.errors(), 0U);
  EXPECT_TRUE(check.findings().empty());
  EXPECT_TRUE(check.shares_packet_counters());
  EXPECT_EQ(check.orbit_steps().usual, (std::set<std::uint32_t>{11}));
}

TEST(RdhRules, TheOrbitRuleIsTheStepOfMoreThanHalf) {
  OrbitRule rule;
  EXPECT_FALSE(rule.step());
  rule.add(7);
  EXPECT_EQ(rule.step(), 7U);
  rule.add(8);
  EXPECT_FALSE(rule.step());
  EXPECT_EQ(rule.others(), 0U);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    rule.add(100 + i);
    rule.add(3);
    rule.add(3);
  }
  EXPECT_EQ(rule.step(), 3U);
  EXPECT_EQ(rule.others(), 1002U);
}

}  // namespace
}  // namespace rodeo::formats
