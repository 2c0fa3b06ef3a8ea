// Random runs of links with one kind of fault each: what a sequencer makes of them, summed over many.
#include "readout/sequence_oracle.h"
#include "readout/sequence_silences.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>

namespace rodeo::test {
namespace {

// Events of a run that are in no output and no count: sparse links do not show how often ids of 8 bits have come round.
constexpr double kSilentOfSparse8 = 5;
// With longer ids: where a jump was too long to be built empty, nobody knows of the events just before its end, at most a reach of them.
constexpr double kSilent = 1. / 300;
// Chunks of good links lost through a link that lies, where links can be compared and are more than two: a few, as it is refuted.
constexpr double kOthersLost = 1. / 10'000;
// The same where the others are of another reader, and were read too late to say so; without the list. A few runs in a thousand lose many.
constexpr double kReadLater = 1;
// Events that never were, where the links that return after a silence of all lie apart.
constexpr double kSpurious = 1. / 5;

struct Seeds {
  std::uint32_t first = 1;
  std::uint32_t count = 0;
};

// RODEO_SCENARIOS=FIRST:COUNT, for more of them; `./test all` takes 2000 of each kind.
Seeds seeds(std::uint32_t count) {
  const char* const of = std::getenv("RODEO_SCENARIOS");
  if (of == nullptr) return {.count = count};
  const std::string text = of;
  return {static_cast<std::uint32_t>(std::stoul(text)),
          static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)))};
}

TEST(SequenceScenarios, EveryChunkHasOneFateAndWhatCanBeKnownIsRight) {
  const auto [first, count] = seeds(2000);
  std::array<Judged, static_cast<std::size_t>(LinkFault::count)> sums;
  std::array<std::uint32_t, static_cast<std::size_t>(LinkFault::count)> runs{};
  std::uint64_t silent = 0;
  std::uint64_t silent_of_sparse8 = 0;
  std::uint64_t others_lost = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const Scenario scenario = make_scenario(seed);
    const Judged judged = ScenarioRun(scenario).run();
    EXPECT_EQ(judged.without_fate, 0) << "seed " << seed;
    EXPECT_EQ(judged.wrong, 0) << "seed " << seed;
    others_lost += judged.others_lost;
    (scenario.fault == LinkFault::sparse && scenario.bits == 8 && !scenario.listed ? silent_of_sparse8 : silent) +=
        judged.silent;
    sums[static_cast<std::size_t>(scenario.fault)].add(judged);
    ++runs[static_cast<std::size_t>(scenario.fault)];
  }
  EXPECT_LE(static_cast<double>(silent), kSilent * count);
  EXPECT_LE(static_cast<double>(silent_of_sparse8), kSilentOfSparse8 * runs[static_cast<std::size_t>(LinkFault::sparse)]);
  EXPECT_LE(static_cast<double>(others_lost), kOthersLost * count);
  const auto of = [&](LinkFault fault) -> const Judged& { return sums[static_cast<std::size_t>(fault)]; };

  const Judged& healthy = of(LinkFault::none);
  EXPECT_EQ(healthy.right, healthy.chunks);
  EXPECT_EQ(healthy.lost + healthy.flagged + healthy.empty + healthy.skipped + healthy.spurious, 0);
  EXPECT_EQ(healthy.tail + healthy.head + healthy.deficit, 0);

  // Where no counter lies, no id is wrong and no link is long silent, nothing is made up.
  for (const LinkFault fault :
       {LinkFault::loss, LinkFault::dup, LinkFault::list_bad, LinkFault::short_epochs, LinkFault::dead}) {
    EXPECT_EQ(of(fault).spurious, 0) << name_of(fault);
    EXPECT_EQ(of(fault).wrong_flagged + of(fault).wrong_incomplete + of(fault).lies + of(fault).unknowable, 0)
        << name_of(fault);
  }
  for (const LinkFault fault : {LinkFault::storm, LinkFault::silent_all}) {
    EXPECT_LE(static_cast<double>(of(fault).spurious), kSpurious * runs[static_cast<std::size_t>(fault)]) << name_of(fault);
  }
  EXPECT_EQ(of(LinkFault::dead).lost, 0);
}

// Readers that stand still and go on as they like change nothing for links that are right.
TEST(SequenceScenarios, OfSeveralReadersNobodyLosesByAnothersRest) {
  const auto [first, count] = seeds(500);  // several times as long as with one reader
  Judged healthy;
  std::uint64_t read_later = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const Scenario scenario = make_scenario(seed, true);
    const Judged judged = ScenarioRun(scenario).run();
    EXPECT_EQ(judged.standstills, 0) << "seed " << seed;
    EXPECT_EQ(judged.everybody_waits, 0) << "seed " << seed;
    EXPECT_EQ(judged.without_fate, 0) << "seed " << seed;
    EXPECT_EQ(judged.wrong, 0) << "seed " << seed;
    EXPECT_EQ(judged.others_lost, 0) << "seed " << seed << ", " << name_of(scenario.fault);
    if (scenario.fault == LinkFault::none) {
      EXPECT_EQ(judged.right, judged.chunks) << "seed " << seed;
      healthy.add(judged);
    }
    read_later += judged.others_read_later;
  }
  EXPECT_EQ(healthy.lost + healthy.flagged + healthy.empty + healthy.skipped + healthy.spurious, 0);
  EXPECT_LE(static_cast<double>(read_later), kReadLater * count);
}

// A link whose ids have come round is in the right period, or flagged, and soon proven.
TEST(SequenceScenarios, ALinkWhoseIdsHaveComeRoundIsNeverWrongWithoutAFlag) {
  const auto [first, count] = seeds(500);
  std::array<Judged, static_cast<std::size_t>(Silence::count)> sums;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const SilenceScenario scenario = make_silence_scenario(seed);
    const Judged judged = ScenarioRun(scenario).run();
    const std::string name = "seed " + std::to_string(seed) + ", " + name_of(scenario.kind);
    EXPECT_EQ(judged.without_fate, 0) << name;
    EXPECT_EQ(judged.wrong + judged.wrong_incomplete + judged.repeats, 0) << name;
    EXPECT_LE(judged.in_doubt, 64) << name;
    if (scenario.kind == Silence::none) {
      EXPECT_EQ(judged.right, judged.chunks) << name;
    }
    sums[static_cast<std::size_t>(scenario.kind)].add(judged);
  }
  for (std::size_t kind = 0; kind < sums.size(); ++kind) {
    const Judged& sum = sums[kind];
    std::cout << name_of(static_cast<Silence>(kind)) << ": " << sum.chunks << " chunks, " << sum.right << " right, "
              << sum.flagged << " flagged and right, " << sum.wrong_flagged << " flagged and wrong, "
              << sum.wrong + sum.wrong_incomplete + sum.repeats << " wrong, " << sum.lost << " lost\n";
  }
}

}  // namespace
}  // namespace rodeo::test
