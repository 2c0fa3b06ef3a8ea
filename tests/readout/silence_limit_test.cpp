// The longest silence after which links find their place, by their ids, BCIDs and peers.
#include "readout/silence_limit.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace rodeo::readout {
namespace {

constexpr TriggerFields k8{.l1id_bits = 8};
constexpr TriggerFields k16{.l1id_bits = 16};
constexpr TriggerFields k16Bcid{.l1id_bits = 16, .has_bcid = true};
constexpr TriggerFields kResets{.l1id_bits = 24, .has_ecr = true, .has_bcid = true};
constexpr TriggerFields k24{.l1id_bits = 24};
constexpr TriggerFields k32{.l1id_bits = 32};
constexpr std::uint64_t kAny = 0;

struct Row {
  const char* what;
  SilentLinks links;
  std::uint64_t one_link;
  std::uint64_t all_links;
};

TEST(SilenceLimit, FollowsFromIdsListPeersAndBcids) {
  const Row rows[] = {
      {"other links are read with it", {.ids = k8, .links = 8, .read_together = 8, .window = 16384}, kAny, 192},
      {"a lone link has its ids", {.ids = k8, .window = 16384}, 192, 192},
      {"other groups and ROBs tell, if ids are long", {.ids = k16, .has_others = true, .window = 16384}, kAny, 32768},
      {"but not if they may be apart by a quarter of the ids", {.ids = k8, .has_others = true, .window = 16384}, 192, 192},
      {"links of other workers may be apart by the window", {.ids = k16, .links = 2, .window = 16384}, kAny, 32768},
      {"that is more than a quarter of the ids", {.ids = k16, .links = 2, .window = 32768}, 32768, 32768},
      {"and BCIDs tell it", {.ids = k16Bcid, .links = 2, .window = 32768, .compares_bcids = true}, kAny, 32768},
      {"BCIDs of a lone link have nothing to be compared with", {.ids = k16Bcid, .compares_bcids = true}, 32768, 32768},
      {"ids go on for nearly one round, if no reset is known",
       {.ids = kResets, .links = 4, .read_together = 4},
       kAny,
       0xf00000},
      {"and for 127 resets", {.ids = kResets, .reset_events = 1000}, 127'000, 127'000},
      {"a jump by more than half a period is a reset", {.ids = k24}, 1U << 23, 1U << 23},
      {"a counter of 32 bits", {.ids = k32}, std::uint64_t{1} << 31, std::uint64_t{1} << 31},
      {"the list tells all", {.ids = kResets, .listed = true}, kAny, kAny},
      {"it tells all by BCIDs", {.ids = k16Bcid, .listed = true}, kAny, kAny},
      {"without them and resets one epoch", {.ids = k16, .listed = true, .links = 2}, kAny, 65536},
      {"of a lone link, too", {.ids = k16, .listed = true}, 65536, 65536},
  };
  for (const Row& row : rows) {
    const SilenceLimit limit = silence_limit(row.links);
    EXPECT_EQ(limit.one_link.value_or(kAny), row.one_link) << row.what;
    EXPECT_EQ(limit.all_links.value_or(kAny), row.all_links) << row.what;
  }
}

TEST(SilenceLimit, IsTimeWhereTheRateIsKnownAndShortBelowTenSeconds) {
  const SilenceLimit any;
  const SilenceLimit peers{.all_links = 65536};
  const SilenceLimit lone{.one_link = 256, .all_links = 256};
  EXPECT_EQ(silence_text(any, 1e5), "a link finds its place after a silence of any length");
  EXPECT_EQ(silence_text(peers, 1e5),
            "a link finds its place after a silence of any length, all links at once after one of less than 655 ms (65536 "
            "events at 100 kHz)");
  EXPECT_EQ(silence_text(lone, {}), "a link finds its place after a silence of less than 256 events");
  EXPECT_FALSE(is_short(any, 1e9));
  EXPECT_FALSE(is_short(lone, {})) << "the rate is unknown";
  EXPECT_TRUE(is_short(peers, 1e5));
  EXPECT_FALSE(is_short(peers, 6553.6)) << "ten seconds";
  EXPECT_TRUE(is_short(silence_limit({.ids = k24}), 1e6)) << "8.4 s";
}

TEST(SilenceLimit, IsSaidOnceForAllRobsOfWhichItIsTheSame) {
  ReadoutSettings settings;
  settings.builder = {.type = "gbt", .name = "gbt", .parameters = {}, .where = {}};
  settings.builder.parameters.set("workers", std::int64_t{1});
  settings.builder.parameters.set("window", std::int64_t{16384});
  settings.builder.parameters.set("trigger_list", false);
  settings.trigger_rate_hz = 1e5;
  settings.robs.resize(5);
  for (std::uint32_t i = 0; i < 5; ++i) settings.robs[i].source_id = SourceId{0x610001 + i};
  const auto notes = silence_notes(settings, k8, {8, 8, 1, 0, 8});
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(
      notes[0].text.starts_with("ROB 0x00610001 and 3 more: a link finds its place after a silence of any length, all"))
      << notes[0].text;
  EXPECT_TRUE(notes[1].text.starts_with("ROB 0x00610003: a link finds its place after a silence of less than 1.92"))
      << notes[1].text;
  EXPECT_TRUE(notes[1].is_short);
  EXPECT_EQ(silence_notes(settings, kResets, {8, 8, 8, 8, 8}).size(), 1U);
  settings.builder.type = "of a plug-in";
  EXPECT_TRUE(silence_notes(settings, k8, {8, 8, 1, 0, 8}).empty());
}

}  // namespace
}  // namespace rodeo::readout
