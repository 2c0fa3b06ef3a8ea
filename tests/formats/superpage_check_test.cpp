#include "formats/superpage_check.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/rdh_payload.h"
#include "slow_superpage_check.h"

namespace rodeo::formats {
namespace {

using enum SuperpageCounter;

/// Makes superpages of one link like a card.
struct Writer {
  PagePattern pattern = PagePattern::ddg;
  std::uint8_t link = 3;
  std::uint32_t counter = 1000;
  std::uint8_t packet = 250;
  std::uint32_t orbit = 512;
  std::uint32_t page_bytes = 8192;
  std::uint32_t orbits_per_superpage = 0;  // 0: each page has an orbit of its own

  std::vector<std::byte> superpage(std::size_t pages, std::uint32_t trigger_of_first = rdh_trigger::kTimeFrame) {
    std::vector<std::byte> memory(pages * page_bytes);
    for (std::size_t page = 0; page < pages; ++page) {
      const std::span<std::byte> bytes = std::span(memory).subspan(page * page_bytes, page_bytes);
      if (pattern == PagePattern::cru_internal) {
        counter = write_cru_internal(bytes, counter);
        continue;
      }
      const Rdh header = RdhFields{.offset_next = static_cast<std::uint16_t>(page_bytes),
                                   .memory_size = static_cast<std::uint16_t>(page_bytes),
                                   .link_id = link,
                                   .packet_counter = packet++,
                                   .orbit = orbit + static_cast<std::uint32_t>(page),
                                   .trigger_type = page == 0 ? trigger_of_first : 0,
                                   .page_number = 0,
                                   .stop = true}
                             .header();
      header.write(bytes.data());
      const auto payload = bytes.subspan(kRdhBytes);
      if (pattern == PagePattern::ddg) counter = write_ddg(payload, counter);
      if (pattern == PagePattern::words) counter = write_words(payload, counter);
      if (pattern == PagePattern::provable) write_rdh_payload(Provable(1), header, payload);
    }
    orbit += orbits_per_superpage == 0 ? static_cast<std::uint32_t>(pages) : orbits_per_superpage;
    return memory;
  }
};

Rdh header_at(const std::vector<std::byte>& memory, std::size_t at) { return Rdh::read(memory.data() + at); }
void set_word(std::vector<std::byte>& memory, std::size_t at, std::uint32_t word) {
  std::memcpy(memory.data() + at, &word, 4);
}

class EveryPattern : public testing::TestWithParam<PagePattern> {};
INSTANTIATE_TEST_SUITE_P(SuperpageCheck, EveryPattern,
                         testing::Values(PagePattern::unknown, PagePattern::ddg, PagePattern::words,
                                         PagePattern::cru_internal, PagePattern::provable));

TEST_P(EveryPattern, GoodSuperpagesHaveNoErrors) {
  Writer card{.pattern = GetParam()};
  SuperpageCheck check({.pattern = GetParam()});
  for (int i = 0; i < 5; ++i) check.check(3, card.superpage(4));
  EXPECT_EQ(check.errors(), 0u);
  EXPECT_EQ(check.count(pages), 20u);
  EXPECT_EQ(check.count(superpages), 5u);
}

TEST_P(EveryPattern, AgreesWithItsSlowTwinOnSpoiltSuperpages) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const SuperpageCheckSettings settings{.pattern = GetParam(),
                                          .page_bytes = 256,
                                          .packet_counter_max = random() % 2 == 0 ? 255U : 9U,
                                          .every = static_cast<std::uint32_t>(1 + random() % 3),
                                          .time_frame_orbits = static_cast<std::uint32_t>(random() % 2 * 256),
                                          .resynchronise = random() % 2 == 0};
    SuperpageCheck fast(settings);
    test::SlowSuperpageCheck slow(settings);
    Writer card{.pattern = GetParam(), .orbit = UINT32_MAX - 300, .page_bytes = 256};
    for (int i = 0; i < 6; ++i) {
      auto memory = card.superpage(1 + random() % 5);
      for (auto spoilt = random() % 4; spoilt > 0; --spoilt)
        memory[random() % 2 == 0 ? random() % memory.size() : random() % 40] = static_cast<std::byte>(random());
      if (random() % 4 == 0) memory.resize(random() % (memory.size() + 1));
      fast.check(3, memory);
      slow.check(3, memory);
    }
    fast.finish();
    for (std::size_t i = 0; i < kSuperpageCounters; ++i)
      ASSERT_EQ(fast.count(static_cast<SuperpageCounter>(i)), slow.count(i))
          << round << ' ' << kSuperpageCounterInfo[i].name;
  }
}

TEST(SuperpageCheck, AnyByteOfThePatternCounts) {
  for (const PagePattern pattern :
       {PagePattern::ddg, PagePattern::words, PagePattern::cru_internal, PagePattern::provable}) {
    Writer card{.pattern = pattern};
    const auto good = card.superpage(1);
    for (std::size_t at = pattern == PagePattern::cru_internal ? 4 : 68; at < good.size(); at += 37) {
      auto bad = good;
      bad[at] ^= std::byte{1};
      SuperpageCheck check({.pattern = pattern});
      check.check(3, bad);
      ASSERT_EQ(check.count(payload), 1u) << at;
      // The finding states the place and the difference.
      ASSERT_EQ(check.findings().size(), 1u);
      EXPECT_EQ(check.findings()[0].offset, at / 4 * 4);
      EXPECT_EQ(check.findings()[0].expected ^ check.findings()[0].found, std::uint64_t{1} << at % 4 * 8);
    }
  }
}

TEST(SuperpageCheck, PayloadOfAnotherSeedDiffersBehindWhatAllSeedsShare) {
  Writer card{.pattern = PagePattern::provable};
  SuperpageCheck check({.pattern = PagePattern::provable, .seed = 2});
  check.check(3, card.superpage(2));
  ASSERT_EQ(check.findings().size(), 2u);
  for (const auto& finding : check.findings()) EXPECT_NE(finding.expected, finding.found) << describe(finding);
}

TEST(SuperpageCheck, APageThatIsMissingIsSeenAndTheCheckGoesOn) {
  Writer card;
  SuperpageCheck check({.pattern = PagePattern::ddg});
  check.check(3, card.superpage(2));
  card.packet += 2;
  card.counter += 5;
  check.check(3, card.superpage(2));
  check.check(3, card.superpage(2));
  EXPECT_EQ(check.count(packet_counter), 1u);
  EXPECT_EQ(check.count(payload), 1u);
  ASSERT_EQ(check.findings().size(), 2u);
  EXPECT_EQ(check.findings()[0].superpage, 1u);
  EXPECT_EQ(describe(check.findings()[0]), "packet_counter: link 3, superpage 1, byte 0: expected 0xfc, found 0xfe");
}

TEST(SuperpageCheck, WithoutResynchronisationEveryLaterPageIsWrong) {
  Writer card;
  SuperpageCheck check({.pattern = PagePattern::ddg, .resynchronise = false});
  check.check(3, card.superpage(2));
  ++card.packet;
  check.check(3, card.superpage(2));
  EXPECT_EQ(check.count(packet_counter), 2u);
}

TEST(SuperpageCheck, APageWithoutOffsetEndsItsSuperpage) {
  Writer card;
  auto memory = card.superpage(4);
  set_word(memory, 8192 + 8, header_at(memory, 8192).words[2] & 0xffff0000);
  SuperpageCheck check({.pattern = PagePattern::ddg});
  check.check(3, memory);
  EXPECT_EQ(check.count(no_offset), 1u);
  EXPECT_EQ(check.count(pages), 2u);
}

TEST(SuperpageCheck, SizesThatCannotBeAreCounted) {
  Writer card;
  SuperpageCheck check({.pattern = PagePattern::ddg});
  auto memory = card.superpage(2);
  set_word(memory, 8, 8192 | 63U << 16);  // the stated size is smaller than a header
  check.check(3, memory);
  EXPECT_EQ(check.count(bad_size), 1u);
  memory = card.superpage(2);
  set_word(memory, 8, 8192 | 8193U << 16);  // the stated size is larger than the page
  check.check(3, memory);
  EXPECT_EQ(check.count(bad_size), 2u);
  memory = card.superpage(2);
  memory.resize(memory.size() - 1);  // the card reported fewer bytes than its pages have
  check.check(3, memory);
  EXPECT_EQ(check.count(beyond_end), 1u);
  memory = card.superpage(1);
  memory[0] = std::byte{5};
  check.check(3, memory);
  EXPECT_EQ(check.count(bad_header), 1u);
  check.check(4, card.superpage(1));
  EXPECT_EQ(check.count(wrong_link), 1u);
}

TEST(SuperpageCheck, ATimeFrameBeginsASuperpage) {
  Writer card{.orbits_per_superpage = 2};
  SuperpageCheck check({.pattern = PagePattern::ddg, .time_frame_orbits = 4});
  check.check(3, card.superpage(2, rdh_trigger::kStartOfContinuous | rdh_trigger::kTimeFrame));
  check.check(3, card.superpage(2, 0));
  check.check(3, card.superpage(2, 0));  // the time frame of orbit + 4 begins with this superpage
  EXPECT_EQ(check.errors(), 0u);
  card.orbit += 1;
  check.check(3, card.superpage(2, 0));  // the time frame of orbit + 8 begins inside
  EXPECT_EQ(check.count(time_frame), 1u);
}

TEST(SuperpageCheck, ARunThatStartsWithinATimeFrameIsCheckedFromTheNextOneOn) {
  Writer card{.orbits_per_superpage = 1};
  SuperpageCheck check({.pattern = PagePattern::ddg, .time_frame_orbits = 4});
  check.check(3, card.superpage(1, rdh_trigger::kStartOfContinuous));
  check.check(3, card.superpage(1, rdh_trigger::kTimeFrame));
  card.orbits_per_superpage = 4;
  check.check(3, card.superpage(4, 0));  // orbits + 2 to + 5 from the start: a time frame begins inside
  EXPECT_EQ(check.count(time_frame), 1u);
}

/// Pages of one heartbeat frame each.
std::vector<std::byte> frames(std::uint8_t link, std::uint32_t first_orbit, std::uint32_t count) {
  Writer card{.pattern = PagePattern::unknown,
              .link = link,
              .packet = static_cast<std::uint8_t>(first_orbit),
              .orbit = first_orbit,
              .page_bytes = 64};
  return card.superpage(count, 0);
}

TEST(SuperpageCheck, HeartbeatFramesThatAreMissingAreOneErrorEach) {
  constexpr SuperpageCheckSettings kHeaders{.time_frame_orbits = 0};
  SuperpageCheck check(kHeaders);
  check.check(3, frames(3, UINT32_MAX - 2, 8));  // orbits wrap
  EXPECT_EQ(check.errors(), 0u);
  check.check(3, frames(3, 5 + 256, 8));  // a multiple of the packet counter's period
  EXPECT_EQ(check.count(packet_counter), 0u);
  EXPECT_EQ(check.count(SuperpageCounter::orbit), 1u);
  EXPECT_EQ(describe(check.findings().at(0)), "orbit: link 3, superpage 1, byte 0: expected 0x5, found 0x105");
  auto memory = frames(3, 13 + 256, 4);
  set_word(memory, 64 + 36, 1 | 1U << 16);  // the second frame has no end before the next one
  check.check(3, memory);
  EXPECT_EQ(check.count(SuperpageCounter::orbit), 1u);
  EXPECT_EQ(check.count(page_number), 1u) << "its first page is missing";
  memory = frames(3, 17 + 256, 4);
  set_word(memory, 64 + 36, 0);  // no stop bit
  check.check(3, memory);
  EXPECT_EQ(check.count(SuperpageCounter::orbit), 2u);
  EXPECT_EQ(check.errors(), 3u);

  SuperpageCheck other({.heartbeat_frames = false, .time_frame_orbits = 0});
  other.check(3, frames(3, 0, 8));
  other.check(3, frames(3, 8 + 256, 8));
  EXPECT_EQ(other.errors(), 0u);
}

TEST(SuperpageCheck, ALinkIsSilentIfItsLastFrameIsLongAgoInOrbitsAndInBytes) {
  SuperpageCheck check({.time_frame_orbits = 0});
  // Batches of links after each other, and one link with larger superpages.
  for (std::uint32_t i = 0; i < 50; ++i) check.check(1, frames(1, 10 * i, 10));
  for (std::uint32_t i = 0; i < 50; ++i) check.check(2, frames(2, 10 * i, 10));
  for (std::uint32_t i = 0; i < 10; ++i) check.check(3, frames(3, 47 * i, 47));
  EXPECT_TRUE(check.silent_links().empty());
  EXPECT_EQ(check.first_orbit(3), 0u);
  EXPECT_FALSE(check.first_orbit(4));  // this link has sent nothing yet
  for (std::uint32_t i = 50; i < 200; ++i) check.check(1, frames(1, 10 * i, 10));
  check.check(4, frames(4, 0, 10));  // this link is far behind, but its data are continuous
  EXPECT_EQ(check.silent_links(), (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(check.errors(), 0u);
}

TEST(SuperpageCheck, WhatAStopFlushesIsNoSignOfLife) {
  SuperpageCheck check({.time_frame_orbits = 0});
  for (std::uint32_t i = 0; i < 100; ++i) {
    check.check(1, frames(1, 10 * i, 10));
    if (i < 20) check.check(2, frames(2, 10 * i, 10));
  }
  check.check(1, frames(1, 1000, 3));
  check.check(2, frames(2, 200, 3));  // the link sends data that it has held since it stopped
  EXPECT_EQ(check.silent_links(), (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(check.errors(), 0u);
}

TEST(SuperpageCheck, OnePageInManyIsEnoughIfSo) {
  Writer card;
  SuperpageCheck check({.pattern = PagePattern::ddg, .every = 4});
  auto memory = card.superpage(9);
  memory[8192 * 1 + 100] ^= std::byte{1};  // not checked
  memory[8192 * 4 + 100] ^= std::byte{1};
  check.check(3, memory);
  EXPECT_EQ(check.errors(), 1u);
}

TEST(SuperpageCheck, FindingsAreLimitedAndCountersNot) {
  Writer card;
  SuperpageCheck check({.pattern = PagePattern::unknown, .most_findings = 2});
  for (int i = 0; i < 5; ++i) {
    card.packet += 3;
    check.check(3, card.superpage(3));
  }
  EXPECT_EQ(check.findings().size(), 2u);
  EXPECT_EQ(check.errors(), 4u);
}

}  // namespace
}  // namespace rodeo::formats
