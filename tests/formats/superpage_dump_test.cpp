// Dumps of superpages: a card's data are sound in any order of links; damage is found once, at its place.
#include "formats/superpage_dump.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/rdh_payload.h"
#include "storage/file_verify.h"

namespace rodeo::formats {
namespace {

using Bytes = std::vector<std::byte>;

// Makes superpages of some links in turn, each with a time frame of 8 orbits and two pages per orbit.
struct Card {
  PagePattern pattern = PagePattern::provable;
  std::uint64_t seed = 1;
  std::uint32_t links = 3;
  std::uint16_t page_bytes = 512;
  std::uint16_t padding = 32;

  Bytes dump(std::uint32_t time_frames) const {
    Bytes file;
    std::vector<std::uint32_t> counters(links, 100);
    std::vector<std::uint8_t> packets(links, 250);
    for (std::uint32_t frame = 0; frame < time_frames; ++frame) {
      for (std::uint32_t link = 0; link < links; ++link) {
        for (std::uint32_t page = 0; page < 16; ++page) {
          const Rdh header = RdhFields{.fee_id = static_cast<std::uint16_t>(0x100 + link),
                                       .offset_next = page_bytes,
                                       .memory_size = static_cast<std::uint16_t>(page_bytes - padding),
                                       .link_id = static_cast<std::uint8_t>(2 * link),
                                       .packet_counter = packets[link]++,
                                       .orbit = 1000 + frame * 8 + page / 2,
                                       .trigger_type = page == 0 ? rdh_trigger::kTimeFrame : rdh_trigger::kHeartbeat,
                                       .page_number = static_cast<std::uint16_t>(page % 2),
                                       .stop = page % 2 == 1}
                                 .header();
          Bytes bytes(page_bytes);
          header.write(bytes.data());
          const std::span<std::byte> payload = std::span(bytes).subspan(kRdhBytes, page_bytes - padding - kRdhBytes);
          if (pattern == PagePattern::ddg) counters[link] = write_ddg(payload, counters[link]);
          if (pattern == PagePattern::words) counters[link] = write_words(payload, counters[link]);
          if (pattern == PagePattern::provable) write_rdh_payload(Provable(seed), header, payload);
          file.insert(file.end(), bytes.begin(), bytes.end());
        }
      }
    }
    return file;
  }
};

Bytes internal_dump(std::size_t bytes) {
  Bytes file(bytes);
  write_cru_internal(file, 7);
  return file;
}

TEST(SuperpageDump, WhatACardWroteIsSoundAndDescribedByLink) {
  for (const PagePattern pattern : {PagePattern::provable, PagePattern::ddg, PagePattern::words}) {
    for (const std::uint32_t links : {1U, 3U}) {
      const Bytes file = Card{.pattern = pattern, .links = links}.dump(5);
      EXPECT_EQ(storage::file_kind(file), storage::FileKind::superpage_dump);
      std::uint64_t told = 0;
      const SuperpageDumpInfo info = inspect_superpage_dump(file, 1, [&](std::uint64_t bytes) { told += bytes; });
      EXPECT_EQ(told, file.size());
      EXPECT_TRUE(info.sound()) << info.findings.listed().front().what;
      EXPECT_EQ(info.pattern, pattern);
      EXPECT_EQ(info.time_frame_orbits, 8U);
      EXPECT_EQ(info.counter(SuperpageCounter::pages), 80U * links);
      ASSERT_EQ(info.links.size(), links);
      const auto& last = info.links.back();
      EXPECT_EQ(last.link, 2 * (links - 1));
      EXPECT_EQ(last.fee_id, 0x100 + links - 1);
      EXPECT_EQ(last.pages, 80U);
      EXPECT_EQ(last.heartbeat_frames, 40U);
      EXPECT_EQ(last.payload_bytes, 80U * (512 - 32 - 64));
      EXPECT_EQ(last.first_orbit, 1000U);
      EXPECT_EQ(last.last_orbit, 1039U);
    }
  }
}

TEST(SuperpageDump, TheInternalGeneratorsDataAreRecognised) {
  Bytes file = internal_dump(1 << 20);
  EXPECT_EQ(storage::file_kind(file), storage::FileKind::superpage_dump);
  EXPECT_TRUE(inspect_superpage_dump(file, 1).sound());
  EXPECT_EQ(inspect_superpage_dump(file, 1).counter(SuperpageCounter::pages), 128U);
  file[500'000] ^= std::byte{4};
  const SuperpageDumpInfo info = inspect_superpage_dump(file, 1);
  ASSERT_EQ(info.findings.total(), 1U);
  EXPECT_EQ(info.findings.listed()[0].offset, 500'000U);
}

TEST(SuperpageDump, PayloadOfAnotherSeedIsUnknownAndItsHeadersAreChecked) {
  Bytes file = Card{.seed = 5}.dump(4);
  EXPECT_EQ(inspect_superpage_dump(file, 1).pattern, PagePattern::unknown);
  EXPECT_TRUE(inspect_superpage_dump(file, 1).sound());
  EXPECT_EQ(inspect_superpage_dump(file, 5).pattern, PagePattern::provable);
  file[512 * 20 + 13] ^= std::byte{1};  // changes a packet counter
  EXPECT_FALSE(inspect_superpage_dump(file, 1).sound());
}

TEST(SuperpageDump, AnyFlippedBitOfPayloadSizesLinkOrderOrOrbitIsFound) {
  const Bytes sound = Card{}.dump(3);
  for (const std::size_t page : {std::size_t{1}, std::size_t{17}, std::size_t{40}}) {
    const std::size_t begin = page * 512;
    for (std::size_t byte = 0; byte < 480; ++byte) {
      const bool looked_at =
          byte < 4 || (byte >= 8 && byte < 14) || (byte >= 20 && byte < 24) || byte == 36 || byte == 37 || byte >= kRdhBytes;
      if (!looked_at) continue;
      for (int bit = 0; bit < 8; ++bit) {
        Bytes file = sound;
        file[begin + byte] ^= std::byte{1} << bit;
        const SuperpageDumpInfo info = inspect_superpage_dump(file, 1);
        const bool may_be = byte == 0 && bit == 0;  // the flip makes version 6 of version 7; both are valid
        EXPECT_EQ(info.sound(), may_be) << "page " << page << " byte " << byte << " bit " << bit;
        if (byte >= kRdhBytes) {
          ASSERT_EQ(info.findings.total(), 1U);
          EXPECT_EQ(info.findings.listed()[0].offset, begin + byte / 4 * 4);
        }
      }
    }
  }
}

TEST(SuperpageDump, ABadHeaderCostsItsPageAndNothingElse) {
  for (const bool version : {true, false}) {
    Bytes file = Card{}.dump(4);
    file[512 * 20 + (version ? 0 : 1)] ^= std::byte{0x10};
    const SuperpageDumpInfo info = inspect_superpage_dump(file, 1);
    EXPECT_EQ(info.findings.total(), 1U);
    EXPECT_EQ(info.counter(SuperpageCounter::bad_header), 1U);
    EXPECT_EQ(info.findings.listed()[0].offset, 512U * 20);
    EXPECT_EQ(info.counter(SuperpageCounter::pages), 4U * 3 * 16);
  }
}

TEST(SuperpageDump, LostPagesCutFilesAndTimeFramesInTheMiddleAreFound) {
  const Bytes sound = Card{}.dump(4);
  Bytes lost = sound;
  lost.erase(lost.begin() + 512 * 20, lost.begin() + 512 * 22);
  EXPECT_EQ(inspect_superpage_dump(lost, 1).counter(SuperpageCounter::packet_counter), 1U);
  EXPECT_EQ(inspect_superpage_dump(std::span(sound).first(sound.size() - 100), 1).counter(SuperpageCounter::beyond_end), 1U);
  Bytes unmarked = Card{.links = 1}.dump(4);
  unmarked[512 * 32 + 33] ^= std::byte{8};  // clears the bit that marks the begin of a time frame
  EXPECT_EQ(inspect_superpage_dump(unmarked, 1).counter(SuperpageCounter::time_frame), 1U);
}

TEST(SuperpageDump, ALinkThatEndsWhileTheOthersGoOnIsFoundAlsoIfAStopFlushedWhatItHeld) {
  Card card;
  const Bytes whole = card.dump(60);
  const std::size_t superpage = std::size_t{16} * card.page_bytes;
  Bytes file, flushed;
  for (std::size_t at = 0; at < whole.size(); at += superpage) {
    const bool dead = at / superpage % 3 == 1 && at / superpage >= 60;
    Bytes& to = at / superpage == 61 ? flushed : file;
    if (!dead || &to == &flushed)
      to.insert(to.end(), whole.begin() + static_cast<long>(at), whole.begin() + static_cast<long>(at + superpage));
  }
  file.insert(file.end(), flushed.begin(), flushed.end());
  const auto info = inspect_superpage_dump(file, 1);
  ASSERT_EQ(info.findings.total(), 1u);
  EXPECT_EQ(info.findings.listed().front().what, "silent_links: link 2 ends here, the others go on");
}

TEST(SuperpageDump, AnyBytesAreFiniteWorkAndAllErrorsAreCounted) {
  std::mt19937 random(3);
  const Bytes sound = Card{}.dump(3);
  for (int round = 0; round < 300; ++round) {
    Bytes file = sound;
    for (int i = 0; i < 1 << round % 10; ++i) file[random() % file.size()] = static_cast<std::byte>(random());
    file.resize(random() % file.size());
    const SuperpageDumpInfo info = inspect_superpage_dump(file, 1);
    std::uint64_t errors = 0;
    for (std::size_t i = 0; i < kSuperpageCounters; ++i)
      errors += is_error(static_cast<SuperpageCounter>(i)) ? info.counters[i] : 0;
    EXPECT_EQ(info.findings.total(), errors);
    for_each_page(file, [&](std::size_t at) {
      EXPECT_EQ(dump_page(file, at, "page").fields.size(), 16U);
      return true;
    });
  }
}

TEST(SuperpageDump, APageIsShownWordByWord) {
  const Bytes file = Card{}.dump(1);
  std::vector<std::size_t> offsets;
  for_each_page(file, [&](std::size_t at) {
    offsets.push_back(at);
    return offsets.size() < 2;
  });
  ASSERT_EQ(offsets, (std::vector<std::size_t>{0, 512}));
  const DumpNode node = dump_page(file, 512, "page 2");
  EXPECT_EQ(node.fields[5].meaning, "1000");
  EXPECT_EQ(node.fields[8].meaning, "heartbeat");
  EXPECT_EQ(node.fields[9].meaning, "page 1 of its heartbeat frame, the last");
  EXPECT_EQ(node.bytes.size(), 512U - 32 - 64);
}

}  // namespace
}  // namespace rodeo::formats
