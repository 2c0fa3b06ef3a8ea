// Property: with any faults and order of links, every chunk sent is in exactly one fragment - that of its event - or in
// exactly one counter. A slow twin, which knows what was sent, gives the right answer for each chunk.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>

#include "readout/gbt_fixture.h"

namespace rodeo::test {
namespace {

/// A simple builder: a map from event to the links with chunks in this event. It has no window, clock or runs.
class SlowTwin {
 public:
  void expect(std::uint32_t trigger, std::uint32_t link_id) { events_[trigger].insert(link_id); }
  void expect_lost(const std::string& reason) { ++lost_[reason]; }

  const std::map<std::uint32_t, std::set<std::uint32_t>>& events() const { return events_; }
  std::uint64_t lost(const std::string& reason) const {
    const auto found = lost_.find(reason);
    return found == lost_.end() ? 0 : found->second;
  }

 private:
  std::map<std::uint32_t, std::set<std::uint32_t>> events_;
  std::map<std::string, std::uint64_t> lost_;
};

struct Faults {
  double missing = 0;
  double duplicate = 0;
  double flipped = 0;  ///< one high bit of the L1 id is flipped: far from every neighbour
  double too_short = 0;
  double gone = 0;  ///< the link is silent for more events than a step may skip
};

struct Trial {
  std::uint32_t seed;
  std::uint32_t workers;
  std::uint32_t bits;
  Faults faults;
};

class GbtProperty : public ::testing::TestWithParam<Trial> {};

TEST_P(GbtProperty, EveryChunkSentIsInItsFragmentOrInOneCounter) {
  const Trial& trial = GetParam();
  std::mt19937 random(trial.seed);
  const auto chance = [&](double probability) { return std::uniform_real_distribution<double>(0, 1)(random) < probability; };
  constexpr std::uint32_t kLinks = 7;
  constexpr std::uint32_t kTriggers = 4000;

  // Triggers: consecutive L1 ids, with event counter resets if the format shows them.
  std::vector<L1Id> triggers;
  std::uint32_t ecr = 250;
  std::uint32_t l1 = 0;
  for (std::uint32_t i = 0; i < kTriggers; ++i) {
    if (trial.bits == 32 && l1 > 400 && chance(0.002)) {
      ecr = (ecr + 1) & 0xff;
      l1 = 0;
    }
    triggers.push_back(L1Id::of(trial.bits == 32 ? ecr : 0, l1++));
  }

  readout::GbtSettings settings;
  settings.workers = trial.workers;
  settings.window = 8192;  // the window is so large that it closes no event by force: only links cause losses
  GbtFixture fixture(kLinks, settings, trial.bits);
  fixture.start();
  SlowTwin twin;

  std::vector<std::uint32_t> next(kLinks, 0);
  std::vector<std::uint32_t> sheltered_until(kLinks, 0);
  std::uint64_t sent = 0;
  while (*std::min_element(next.begin(), next.end()) < kTriggers) {
    // A random link and a run of random length. Lead, run and silence together stay below a quarter of the period of the
    // narrowest ids: a link further behind loses its place, and its chunks are flagged.
    const std::size_t link = random() % kLinks;
    const std::uint32_t lead = next[link] - *std::min_element(next.begin(), next.end());
    if (next[link] >= kTriggers || lead > 12) continue;
    ScriptedRun run{.fid = fixture.fids[link], .chunks = {}, .statuses = {}};
    const std::uint32_t length = 1 + static_cast<std::uint32_t>(random() % 20);
    // The first and last events are whole, so that links need no special cases there.
    for (std::uint32_t n = 0; n < length && next[link] < kTriggers; ++n) {
      const std::uint32_t trigger = next[link]++;
      // The two events after a long silence are whole, too: the second confirms the first.
      const bool sheltered =
          trigger < 20 || trigger + 20 > kTriggers || triggers[trigger].l1() < 20 || trigger < sheltered_until[link];
      if (!sheltered && chance(trial.faults.gone)) {
        const std::uint32_t silence = 12 + static_cast<std::uint32_t>(random() % 20);
        for (std::uint32_t skip = 1; skip < silence && next[link] + 20 < kTriggers && triggers[next[link]].l1() >= 20;
             ++skip)
          ++next[link];
        sheltered_until[link] = next[link] + 2;
        continue;
      }
      if (!sheltered && chance(trial.faults.missing)) continue;
      std::vector<std::byte> chunk = fixture.chunk(link, triggers[trigger]);
      ++sent;
      if (!sheltered && chance(trial.faults.flipped)) {
        const std::uint32_t bit = trial.bits == 32 ? 20 + static_cast<std::uint32_t>(random() % 3) : trial.bits - 2;
        chunk[bit / 8] ^= std::byte{1} << (bit % 8);
        twin.expect_lost("out_of_sequence");
        run.chunks.push_back(std::move(chunk));
        continue;
      }
      if (!sheltered && chance(trial.faults.too_short)) {
        chunk.resize(2);
        twin.expect_lost("malformed");
        run.chunks.push_back(std::move(chunk));
        continue;
      }
      twin.expect(trigger, fixture.link_id(link));
      run.chunks.push_back(chunk);
      if (!sheltered && chance(trial.faults.duplicate)) {
        ++sent;
        twin.expect_lost("duplicate");
        run.chunks.push_back(std::move(chunk));
      }
    }
    if (!run.chunks.empty()) fixture.input.push({run});
  }
  fixture.finish();

  EXPECT_EQ(fixture.builder->status().chunks_received, sent);
  fixture.check_invariants();
  for (const char* reason : {"duplicate", "malformed", "out_of_sequence"})
    EXPECT_EQ(fixture.lost(reason), twin.lost(reason)) << reason;
  for (const char* reason : {"late", "overflow", "link_removed"}) EXPECT_EQ(fixture.lost(reason), 0U) << reason;

  // Fragment k is the k-th event that any link delivered, with exactly the delivered links and the right bytes.
  const auto seen = fixture.collector.fragments();
  ASSERT_EQ(seen.size(), twin.events().size());
  std::size_t at = 0;
  for (const auto& [trigger, links] : twin.events()) {
    const SeenFragment& fragment = seen[at++];
    std::set<std::uint32_t> found;
    for (const auto& [link, bytes] : fragment.data) found.insert(link);
    ASSERT_EQ(found, links) << "trigger " << trigger;
    EXPECT_EQ(fragment.missing, kLinks - links.size());
    EXPECT_EQ(fragment.missing == 0, fragment.status == 0);
    if (trial.bits == 32) {
      EXPECT_EQ(fragment.l1id, triggers[trigger]);
    } else {
      EXPECT_EQ(fragment.l1id.value & ((1U << trial.bits) - 1), triggers[trigger].value & ((1U << trial.bits) - 1));
    }
    EXPECT_TRUE(fixture.proves(fragment)) << "trigger " << trigger;
  }
}

// One link does anything - random ids, periods ahead of or behind the others, silence, old chunks again. The others lose
// nothing, and no event of theirs gets a wrong L1 id.
class GbtOneBadLink : public ::testing::TestWithParam<Trial> {};

TEST_P(GbtOneBadLink, CostsTheOthersNothing) {
  const Trial& trial = GetParam();
  std::mt19937 engine(trial.seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  constexpr std::uint32_t kLinks = 6;
  constexpr std::uint32_t kTriggers = 3000;
  std::vector<L1Id> triggers;
  std::uint32_t ecr = 0;
  std::uint32_t l1 = 0;
  for (std::uint32_t i = 0; i < kTriggers; ++i) {
    if (l1 > 500 && random() % 200 == 0) {
      ++ecr;
      l1 = 0;
    }
    triggers.push_back(L1Id::of(ecr, l1++));
  }
  readout::GbtSettings settings;
  settings.workers = trial.workers;
  settings.window = 8192;
  settings.trigger_list =
      trial.bits < 32;  // ids without a reset counter: one link's restart looks like a reset that the others have not had
  GbtFixture fixture(kLinks, settings, trial.bits);
  fixture.start();
  std::uint32_t bad_from = 100 + random() % 100;
  std::uint32_t spell = 0;
  std::int32_t shift = 0;
  bool wild = false;
  for (std::uint32_t at = 0; at < kTriggers;) {
    const std::uint32_t length = std::min<std::uint32_t>(1 + random() % 24, kTriggers - at);
    std::vector<ScriptedRun> runs;
    for (std::size_t link = 1; link < kLinks; ++link) {
      ScriptedRun run{.fid = fixture.fids[link], .chunks = {}, .statuses = {}};
      for (std::uint32_t i = 0; i < length; ++i) run.chunks.push_back(fixture.chunk(link, triggers[at + i]));
      runs.push_back(std::move(run));
    }
    ScriptedRun bad{.fid = fixture.fids[0], .chunks = {}, .statuses = {}};
    for (std::uint32_t i = 0; i < length; ++i) {
      if (at + i >= bad_from && spell == 0 && random() % 50 == 0) {
        spell = 1 + random() % 150;
        wild = random() % 3 == 0;
        shift = static_cast<std::int32_t>(random() % 4000) - 1000;
      }
      std::uint32_t id = triggers[at + i].value;
      if (spell > 0) {
        --spell;
        if (random() % 4 == 0) continue;
        id = wild ? random() : id + static_cast<std::uint32_t>(shift);
      }
      bad.chunks.push_back(fixture.chunk(0, L1Id{id}));
    }
    if (!bad.chunks.empty()) runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(random() % runs.size()), std::move(bad));
    for (std::uint32_t i = 0; settings.trigger_list && i < length; ++i) fixture.push_triggers(triggers[at + i], 1);
    fixture.input.push(runs);
    at += length;
  }
  fixture.finish();
  fixture.check_invariants();

  std::map<std::uint32_t, SeenFragment> seen;
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    if (fragment.data.size() > fragment.data.count(fixture.link_id(0))) seen.emplace(fragment.l1id.value, fragment);
  }
  ASSERT_EQ(seen.size(), triggers.size());
  for (const L1Id l1id : triggers) {
    ASSERT_TRUE(seen.contains(l1id.value)) << l1id.value;
    SeenFragment& fragment = seen[l1id.value];
    fragment.data.erase(fixture.link_id(0));
    ASSERT_EQ(fragment.data.size(), kLinks - 1) << "L1 id " << l1id.value;
    ASSERT_TRUE(fixture.proves(fragment)) << "L1 id " << l1id.value;
  }
}

std::vector<Trial> bad_links() {
  std::vector<Trial> made;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    for (const std::uint32_t bits : {32U, 24U, 16U}) made.push_back({seed, 1 + seed % 3, bits, {}});
  }
  return made;
}

INSTANTIATE_TEST_SUITE_P(Trials, GbtOneBadLink, ::testing::ValuesIn(bad_links()), [](const auto& param) {
  return fmt::format("W{}_bits{}_seed{}", param.param.workers, param.param.bits, param.param.seed);
});

// Property: links stop and resume, one by one or all at once, with flipped ids, for longer than a step or the window; some
// come for the first time. When all are back, no chunk is lost any more.
class GbtStorm : public ::testing::TestWithParam<Trial> {};

TEST_P(GbtStorm, PassesWithoutALastingLoss) {
  const Trial& trial = GetParam();
  std::mt19937 engine(trial.seed);
  const auto random = [&](std::uint32_t below) { return static_cast<std::uint32_t>(engine() % below); };
  constexpr std::uint32_t kLinks = 6;
  constexpr std::uint32_t kStorm = 4000;
  constexpr std::uint32_t kCalm = 1000;
  readout::GbtSettings settings;
  settings.workers = trial.workers;
  settings.window = 512U << random(4);
  GbtFixture fixture(kLinks, settings, trial.bits);
  fixture.start();
  std::vector<std::uint32_t> down(kLinks);  // each link is silent until this trigger
  for (std::uint32_t& until : down) until = random(3) == 0 ? 0 : random(kStorm);
  std::uint64_t now = 1;
  for (std::uint32_t at = 0; at < kStorm + kCalm;) {
    const std::uint32_t length = 1 + random(24);
    std::vector<ScriptedRun> runs;
    const bool all_go = at < kStorm && random(100) == 0;
    const std::uint32_t all_for = random(900);
    for (std::size_t link = 0; link < kLinks; ++link) {
      if (all_go || (at < kStorm && random(40) == 0))
        down[link] = std::max(down[link], at + (all_go ? all_for : random(900)));
      if (at < kStorm && at < down[link]) continue;
      ScriptedRun run = fixture.run(link, L1Id{at}, length);
      if (at < kStorm && random(30) == 0)
        run.chunks[random(length)] = fixture.chunk(link, L1Id{at ^ 1U << random(trial.bits)});
      runs.push_back(std::move(run));
    }
    fixture.input.push(runs);
    fixture.input.set_clock(now += random(10) == 0 ? 20'000'000 : 100'000);
    if (random(8) == 0) fixture.let_workers_catch_up(now);
    at += length;
  }
  fixture.finish();
  fixture.check_invariants();

  std::uint32_t last = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) last = std::max(last, fragment.l1id.value);
  ASSERT_GE(last, kStorm + kCalm - 1);
  std::uint32_t complete = 0;
  for (const SeenFragment& fragment : fixture.collector.fragments()) {
    if (fragment.l1id.value < kStorm + kCalm / 2 || fragment.l1id.value >= kStorm + kCalm) continue;
    complete += fragment.missing == 0 && fixture.proves(fragment) ? 1 : 0;
  }
  EXPECT_EQ(complete, kCalm / 2);
}

std::vector<Trial> storms() {
  std::vector<Trial> made;
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    for (const std::uint32_t bits : {32U, 24U, 16U}) made.push_back({seed, 1 + seed % 3, bits, {}});
  }
  return made;
}

INSTANTIATE_TEST_SUITE_P(Trials, GbtStorm, ::testing::ValuesIn(storms()), [](const auto& param) {
  return fmt::format("W{}_bits{}_seed{}", param.param.workers, param.param.bits, param.param.seed);
});

std::vector<Trial> trials() {
  std::vector<Trial> made;
  std::uint32_t seed = 1;
  for (const std::uint32_t workers : {1U, 2U, 3U}) {
    for (const std::uint32_t bits : {32U, 24U, 16U, 8U}) {
      made.push_back({seed++, workers, bits, {}});
      made.push_back({seed++, workers, bits, {.missing = 0.02, .duplicate = 0.02}});
      made.push_back({seed++, workers, bits, {.missing = 0.05, .duplicate = 0.03, .too_short = 0.01}});
      if (bits >= 16) {
        made.push_back({seed++, workers, bits, {.flipped = 0.01}});
        made.push_back({seed++,
                        workers,
                        bits,
                        {.missing = 0.02, .duplicate = 0.01, .flipped = 0.005, .too_short = 0.005, .gone = 0.002}});
      }
    }
  }
  return made;
}

INSTANTIATE_TEST_SUITE_P(Trials, GbtProperty, ::testing::ValuesIn(trials()), [](const auto& param) {
  return fmt::format("W{}_bits{}_seed{}", param.param.workers, param.param.bits, param.param.seed);
});

}  // namespace
}  // namespace rodeo::test
