// Random runs of links with one kind of fault each: the decisions of a sequencer, summed over many runs.
#include "readout/scenario_seeds.h"
#include "readout/sequence_oracle.h"
#include "readout/sequence_silences.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <string>

namespace rodeo::test {
namespace {

// Limit: events per run that no output and no count has. Sparse links do not show how often ids of 8 bits have repeated.
constexpr double kSilentOfSparse8 = 5;
// The same limit for longer ids. Few runs have many such events: those with a group that brings ten chunks.
constexpr double kSilentOfSparse = 1;
// The same limit for links that are not sparse. A jump may be too long for empty events; then the events just before its end
// are unknown, at most a reach.
constexpr double kSilent = 1. / 300;
// Fraction of runs in which good links lose chunks until a link with wrong ids is refuted, with three or more links.
constexpr double kOthersLost = 1. / 2000;
// Fraction of runs whose list has the same wrong id as a damaged chunk: an event has a wrong id, or an event is invented.
constexpr double kMisled = 1. / 5000;
// Fraction of runs with a group whose epochs are shorter than its links are apart; neither ids nor BCIDs show the epoch.
constexpr double kShortEpochs = 1. / 10'000;
// Fraction of runs of several readers in which one link has wrong ids just before the others reach a reset, and the others
// are read too late to contradict.
constexpr double kFollowedLiar = 1. / 1000;
// Fraction of runs in which a link that lags by about a quarter of the period is in doubt for long.
constexpr double kLongInDoubt = 1. / 2000;
// Limit: chunks per run that good links lose, if another reader reads them too late to contradict, without the list. The
// mean over 20,000 runs is 1.2; a few runs in a thousand lose many.
constexpr double kReadLater = 2;
// Limit: invented events per run, if all links were silent and return at different events.
constexpr double kSpurious = 1. / 5;

template <typename Kind>
std::string seed_of(std::uint32_t seed, Kind kind) {
  return fmt::format("{}; RODEO_SCENARIOS={}:1 repeats it", name_of(kind), seed);
}

// Prints the sums of each class of scenario.
template <typename Kind>
void print(const std::array<Judged, static_cast<std::size_t>(Kind::count)>& sums) {
  for (std::size_t kind = 0; kind < sums.size(); ++kind) {
    const Judged& sum = sums[kind];
    std::cout << fmt::format("{}: {} chunks, {} right, {} flagged and right, {} flagged and wrong, {} wrong, {} lost\n",
                             name_of(static_cast<Kind>(kind)), sum.chunks, sum.right, sum.flagged, sum.wrong_flagged,
                             sum.wrong + sum.wrong_incomplete + sum.repeats, sum.lost);
  }
}

TEST(SequenceScenarios, EveryChunkHasOneFateAndWhatCanBeKnownIsRight) {
  const auto [first, count] = scenario_seeds(2000);
  std::array<Judged, static_cast<std::size_t>(LinkFault::count)> sums;
  std::array<std::uint32_t, static_cast<std::size_t>(LinkFault::count)> runs{};
  std::uint64_t silent = 0;
  std::uint64_t silent_of_sparse = 0;
  std::uint64_t silent_of_sparse8 = 0;
  std::uint32_t others_lost = 0;
  std::uint32_t misled = 0;
  std::uint32_t epoch_taken_for_another = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const Scenario scenario = make_scenario(seed);
    const Judged judged = ScenarioRun(scenario).run();
    EXPECT_EQ(judged.without_fate, 0) << seed_of(seed, scenario.fault);
    others_lost += judged.others_lost > 0 ? 1 : 0;
    if (scenario.fault == LinkFault::list_bad && judged.wrong + judged.spurious > 0) {
      ++misled;
      std::cout << judged.wrong << " wrong, " << judged.spurious << " that never existed: " << seed_of(seed, scenario.fault)
                << '\n';
      continue;
    }
    EXPECT_EQ(judged.wrong, 0) << seed_of(seed, scenario.fault);
    const bool hides_epochs = scenario.full && scenario.bits != 32 && !scenario.bcid;
    const std::uint64_t of_another = judged.wrong_flagged + judged.wrong_incomplete + judged.spurious;
    if (scenario.fault == LinkFault::short_epochs && hides_epochs && of_another > 0) {
      ++epoch_taken_for_another;
      std::cout << of_another << " of another epoch: " << seed_of(seed, scenario.fault) << '\n';
      continue;
    }
    const bool is_sparse = scenario.fault == LinkFault::sparse && !scenario.listed;
    (is_sparse ? (scenario.bits == 8 ? silent_of_sparse8 : silent_of_sparse) : silent) += judged.silent;
    sums[static_cast<std::size_t>(scenario.fault)].add(judged);
    ++runs[static_cast<std::size_t>(scenario.fault)];
  }
  print<LinkFault>(sums);
  EXPECT_LE(static_cast<double>(silent), kSilent * count);
  EXPECT_LE(static_cast<double>(silent_of_sparse), kSilentOfSparse * runs[static_cast<std::size_t>(LinkFault::sparse)]);
  EXPECT_LE(static_cast<double>(silent_of_sparse8), kSilentOfSparse8 * runs[static_cast<std::size_t>(LinkFault::sparse)]);
  EXPECT_LE(others_lost, runs_by_chance(kOthersLost, count));
  EXPECT_LE(misled, runs_by_chance(kMisled, count));
  EXPECT_LE(epoch_taken_for_another, runs_by_chance(kShortEpochs, count));
  const auto of = [&](LinkFault fault) -> const Judged& { return sums[static_cast<std::size_t>(fault)]; };

  const Judged& healthy = of(LinkFault::none);
  EXPECT_EQ(healthy.right, healthy.chunks);
  EXPECT_EQ(healthy.lost + healthy.flagged + healthy.empty + healthy.skipped + healthy.spurious, 0);
  EXPECT_EQ(healthy.tail + healthy.head + healthy.deficit, 0);

  // Without wrong counters, wrong ids and long silences, no event is invented.
  for (const LinkFault fault :
       {LinkFault::loss, LinkFault::dup, LinkFault::list_bad, LinkFault::short_epochs, LinkFault::dead}) {
    // A list that begins with a wrong id misplaces chunks. These are flagged, and no more runs have them than allowed above.
    const std::uint64_t flagged = fault == LinkFault::list_bad ? 0 : of(fault).wrong_flagged;
    EXPECT_EQ(of(fault).spurious, 0) << name_of(fault);
    EXPECT_EQ(flagged + of(fault).wrong_incomplete + of(fault).lies + of(fault).unknowable, 0) << name_of(fault);
  }
  for (const LinkFault fault : {LinkFault::storm, LinkFault::silent_all}) {
    EXPECT_LE(static_cast<double>(of(fault).spurious), kSpurious * runs[static_cast<std::size_t>(fault)]) << name_of(fault);
  }
  EXPECT_EQ(of(LinkFault::dead).lost, 0);
}

// Readers that pause at random change nothing for links with right ids.
TEST(SequenceScenarios, OfSeveralReadersNobodyLosesByAnothersRest) {
  const auto [first, count] = scenario_seeds(500);  // each takes several times as long as with one reader
  Judged healthy;
  std::uint64_t read_later = 0;
  std::uint32_t followed_liar = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const Scenario scenario = make_scenario(seed, true);
    const Judged judged = ScenarioRun(scenario).run();
    const std::string name = seed_of(seed, scenario.fault);
    EXPECT_EQ(judged.standstills, 0) << name;
    EXPECT_EQ(judged.everybody_waits, 0) << name;
    EXPECT_EQ(judged.without_fate, 0) << name;
    EXPECT_EQ(judged.wrong, 0) << name;
    if (judged.others_lost > 0) {
      ++followed_liar;
      std::cout << judged.others_lost << " lost by others: " << name << '\n';
    }
    if (scenario.fault == LinkFault::none) {
      EXPECT_EQ(judged.right, judged.chunks) << name;
      healthy.add(judged);
    }
    read_later += judged.others_read_later;
  }
  EXPECT_EQ(healthy.lost + healthy.flagged + healthy.empty + healthy.skipped + healthy.spurious, 0);
  EXPECT_LE(static_cast<double>(read_later), kReadLater * count);
  EXPECT_LE(followed_liar, runs_by_chance(kFollowedLiar, count));
}

void expect_all_right_or_flagged(std::uint32_t seed) {
  const Scenario scenario = make_scenario(seed, true);
  const Judged judged = ScenarioRun(scenario).run();
  EXPECT_EQ(judged.without_fate, 0);
  EXPECT_EQ(judged.wrong + judged.repeats, 0);
}

// Ids before the beginning of a segment open a second segment with the same resets. Chunks after the end of the second one
// do not belong to the first one.
TEST(SequenceScenarios, ASecondSegmentWithTheSameResetsMisplacesNoChunk) { expect_all_right_or_flagged(71012001); }

// A chunk comes twice. The list is an epoch ahead, and that epoch has the chunk's id, too. The next chunk has a flipped id.
TEST(SequenceScenarios, AChunkThatComesTwiceIsNotOfTheNextEpoch) { expect_all_right_or_flagged(901313); }

// Two successive entries of the list have the same flipped bit in the reset counter.
TEST(SequenceScenarios, TwoEntriesOfTheListWithTheSameFlippedBitMisplaceNoChunk) { expect_all_right_or_flagged(72015348); }

// The second entry of the list has a flipped bit, and the list is a round of ids ahead.
TEST(SequenceScenarios, AFlippedSecondEntryOfTheListMisplacesNoChunk) { expect_all_right_or_flagged(77013779); }

// In the first two runs, a leap of a link is judged before the link's next chunk is read. In the third run, a link that is
// an epoch ahead reaches a reset through numbers that no other link has.
TEST(SequenceScenarios, ALeapWaitsForTheNextChunkOfItsLink) {
  expect_all_right_or_flagged(76000005);
  expect_all_right_or_flagged(76004246);
}
TEST(SequenceScenarios, ALinkThatComesToAResetByFreeNumbersIsFlagged) { expect_all_right_or_flagged(76011437); }

// A link whose ids have repeated is in the right period, or flagged and soon proven.
TEST(SequenceScenarios, ALinkWhoseIdsHaveComeRoundIsNeverWrongWithoutAFlag) {
  const auto [first, count] = scenario_seeds(500);
  std::array<Judged, static_cast<std::size_t>(Silence::count)> sums;
  std::uint32_t long_in_doubt = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    const SilenceScenario scenario = make_silence_scenario(seed);
    const Judged judged = ScenarioRun(scenario).run();
    const std::string name = seed_of(seed, scenario.kind);
    EXPECT_EQ(judged.without_fate, 0) << name;
    EXPECT_EQ(judged.wrong + judged.wrong_incomplete + judged.repeats, 0) << name;
    if (scenario.kind == Silence::slow && judged.in_doubt > 64) {
      ++long_in_doubt;
      std::cout << judged.in_doubt << " in doubt: " << name << '\n';
    } else {
      EXPECT_LE(judged.in_doubt, 64) << name;
    }
    if (scenario.kind == Silence::none) {
      EXPECT_EQ(judged.right, judged.chunks) << name;
    }
    sums[static_cast<std::size_t>(scenario.kind)].add(judged);
  }
  print<Silence>(sums);
  EXPECT_LE(long_in_doubt, runs_by_chance(kLongInDoubt, count));
}

}  // namespace
}  // namespace rodeo::test
