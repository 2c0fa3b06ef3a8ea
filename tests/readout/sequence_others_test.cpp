// Groups and ROBs of one link, which find their place only by other readers: links that are silent, begin late, or jump
// alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "readout/scenario_seeds.h"
#include "readout/sequence/event_set.h"
#include "readout/sequence/reader_tracks.h"
#include "readout/sequence/sequencer.h"
#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;
using readout::Place;
using readout::ReaderTrack;
using readout::ReaderTracks;

constexpr std::uint64_t kEvent = 10'000;  // ns between two events, or 100 kHz
constexpr std::uint64_t kPatience = 2'000'000;

/// The number of a group's chunks by their fate.
struct Fates {
  std::uint64_t right = 0, flagged = 0, wrong = 0, wrong_flagged = 0, lost = 0, waiting = 0;
};

/// The events of a run: epochs of equal length, or none.
struct Counting {
  std::uint8_t bits = 24;  // bits of an id; 32: 24 bits, and the event counter resets
  std::uint64_t epoch = 0;
  std::uint64_t first = 0;  // the index of the first event in a run without epochs

  std::uint64_t resets(std::uint64_t event) const { return epoch == 0 ? 0 : event / epoch; }
  std::uint64_t index(std::uint64_t event) const { return epoch == 0 ? first + event : event % epoch; }
  std::uint32_t id(std::uint64_t event) const {
    const auto low = static_cast<std::uint32_t>(index(event));
    return bits == 32 ? static_cast<std::uint32_t>(resets(event)) << 24 | low : low & ((1U << bits) - 1);
  }
};

/// A group of FULL mode with one link and a reader of its own.
class Lone {
 public:
  explicit Lone(const Counting& run) : run_(run), sequencer_(of(run)), came_(sequencer_.settings().window) {
    sequencer_.add(link_);
    sequencer_.set_events(came_);
  }

  void share(ReaderTracks& tracks) { sequencer_.share(0, tracks, tracks.add()); }

  /// Brings the chunk of this event, with an id that is wrong by `off`. `now`: the clock of the input.
  void bring(std::uint64_t event, std::uint64_t now, std::uint32_t off = 0) {
    const std::uint32_t id =
        off == 0 ? run_.id(event) : (run_.id(event) + off) & static_cast<std::uint32_t>((1ULL << run_.bits) - 1);
    const Sequence before = link_.position();
    waiting_.emplace_back(event, off != 0);
    EXPECT_FALSE(sequencer_.begin_page(0, now, {}));
    link_.begin_block(1);
    link_.seen.store(event_clock_);
    if (id == link_.expected && before < link_.end && !came_.is_beyond(before)) {
      link_.next.store(before + link_.stride);
      link_.expected = sequencer_.settings().format.advance(link_.expected, 1);
      decisions_.push_back({.verdict = Verdict::accept, .sequence = before});
    } else {
      sequencer_.offer(0, id, 0, event_clock_, oldest(), decisions_);
    }
    link_.end_block(before);
    apply();
  }
  /// The reader has read what was sent up to this time.
  void pass(std::uint64_t now, bool drained) {
    // The clock does not count the time in which the reader was stopped.
    event_clock_ += std::min(now - passed_, kPatience / 4);
    passed_ = now;
    sequencer_.end_page(0, now, drained);
    if (!drained) return;
    sequencer_.rejudge(0, event_clock_, oldest(), decisions_);
    apply();
  }
  void finish() {
    sequencer_.finish(0, event_clock_, oldest(), decisions_);
    sequencer_.give_up(0, decisions_);
    apply();
    fates.waiting = waiting_.size();
  }

  bool doubtful() const { return link_.doubtful; }
  Fates fates;

 private:
  static Sequencer::Settings of(const Counting& run) {
    Sequencer::Settings settings = sequencing::settings(run.bits);
    settings.window = 1024;
    settings.timeout_ns = kPatience;
    return settings;
  }
  Sequence oldest() const { return sequencer_.begun() ? came_.oldest() : 0; }

  void apply() {
    if (!begun_ && sequencer_.begun()) came_.begin(sequencer_.run_first());
    begun_ = sequencer_.begun();
    for (const Decision& decision : decisions_) {
      const auto [event, lies] = waiting_.front();
      waiting_.pop_front();
      if (decision.verdict != Verdict::accept) {
        ++fates.lost;
        continue;
      }
      while (came_.is_beyond(decision.sequence)) {
        came_.raise(came_.oldest() + 1);
        came_.skip_oldest();
      }
      if (decision.sequence < came_.oldest() || came_.has_arrived(decision.sequence)) {
        ++fates.lost;
        continue;
      }
      came_.add(decision.sequence);
      const readout::Segment& segment = sequencer_.segment_of(decision.sequence);
      const bool right = !lies && segment.global_id(decision.sequence) == (run_.resets(event) << 24) + run_.index(event);
      const bool flagged = decision.doubtful || decision.unproven;
      ++(right ? (flagged ? fates.flagged : fates.right) : flagged ? fates.wrong_flagged : fates.wrong);
    }
    decisions_.clear();
  }

  const Counting run_;
  Sequencer sequencer_;
  LinkSequence link_;
  EventSet came_;
  bool begun_ = false;
  std::uint64_t event_clock_ = 1;
  std::uint64_t passed_ = 0;
  std::deque<std::pair<std::uint64_t, bool>> waiting_;
  std::vector<Decision> decisions_;
};

/// Several groups of one link each, in one process.
struct Process {
  Process(std::size_t groups, const Counting& of) : run(of) {
    for (std::size_t i = 0; i < groups; ++i) groups_.push_back(std::make_unique<Lone>(run));
    for (const auto& group : groups_) group->share(tracks);
  }
  Lone& operator[](std::size_t group) { return *groups_[group]; }

  /// All groups but `silent` bring the events from `from` to `to`; `off` is added to the ids of `liar`.
  void go(std::uint64_t from, std::uint64_t to, std::size_t silent = kNobody, std::size_t liar = kNobody,
          std::uint32_t off = 0) {
    for (std::uint64_t event = from; event < to; ++event) {
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (i != silent && silent != kAll) groups_[i]->bring(event, kEvent * (event + 1), i == liar ? off : 0);
        groups_[i]->pass(kEvent * (event + 1), true);
      }
    }
  }
  void finish() {
    for (const auto& group : groups_) group->finish();
  }

  static constexpr std::size_t kNobody = 100;
  static constexpr std::size_t kAll = 101;

  const Counting run;
  ReaderTracks tracks;

 private:
  std::vector<std::unique_ptr<Lone>> groups_;
};

// 16 chunks of one link jump. One or three other groups continue.
TEST(SequenceOthers, ALinkThatIsAloneInItsGroupIsNotFollowedWhereOtherGroupsContradictIt) {
  for (const std::size_t groups : {2, 4}) {
    Process process(groups, {.bits = 24, .epoch = 977});
    process.go(0, 2000);
    process.go(2000, 2016, Process::kNobody, 1, 20'000);
    process.go(2016, 9000);
    process.finish();
    for (std::size_t i = 0; i < groups; ++i) {
      EXPECT_EQ(process[i].fates.wrong + process[i].fates.flagged + process[i].fates.wrong_flagged, 0)
          << groups << ", " << i;
      EXPECT_GE(process[i].fates.right, i == 1 ? 8900 : 9000) << groups << ", " << i;
    }
  }
}

TEST(SequenceOthers, ALinkThatIsAloneInItsGroupReturnsToWhereOtherGroupsAre) {
  for (const Counting& run : {Counting{8, 0}, Counting{16, 977}, Counting{24, 977}, Counting{32, 977}}) {
    for (const std::uint64_t silent : {250, 257, 262, 640, 977, 1954, 2560, 3475, 5120}) {
      if (run.bits != 32 && silent % (run.bits == 8 ? 256 : 977) == 0) continue;  // looks like a pause: the next id follows
      Process process(4, run);
      process.go(0, 9000);
      process.go(9000, 9000 + silent, 1);
      process.go(9000 + silent, 15'000);
      process.finish();
      const Fates& fates = process[1].fates;
      EXPECT_EQ(fates.wrong, 0) << int{run.bits} << " bits, silent for " << silent;
      // Late data may also have the next id, so such chunks stay flagged.
      EXPECT_LE(fates.flagged + fates.wrong_flagged, 64) << int{run.bits} << " bits, silent for " << silent;
      EXPECT_LE(fates.lost, 64) << int{run.bits} << " bits, silent for " << silent;
      EXPECT_EQ(process[0].fates.right, 15'000);
    }
  }
}

TEST(SequenceOthers, AGroupThatBeginsLateIsWhereOtherGroupsAre) {
  for (const Counting& run : {Counting{8, 0}, Counting{16, 977}, Counting{24, 977}, Counting{32, 977}}) {
    for (const std::uint64_t late : {256, 300, 2560, 3475}) {
      if (run.bits == 8 && late < 2000) continue;  // too short: links may begin at such different times
      Process process(3, run);
      process.go(0, late, 1);
      process.go(late, 8000);
      process.finish();
      const Fates& fates = process[1].fates;
      EXPECT_EQ(fates.wrong, 0) << int{run.bits} << " bits, late by " << late;
      // With 8 bits the distance to the other groups is unknown: all chunks may be flagged.
      if (run.bits == 8) continue;
      EXPECT_LE(fates.flagged + fates.wrong_flagged + fates.lost, 64) << int{run.bits} << " bits, late by " << late;
    }
  }
}

// The other groups have brought nothing for more than 10 s. The first chunk has a wrong id.
TEST(SequenceOthers, AGroupThatBeginsLateWhereTheOthersTellNothingIsFlagged) {
  for (const Counting& run : {Counting{16, 977}, Counting{24, 977}, Counting{32, 977}}) {
    Process process(2, run);
    process.go(0, 3000, 1);
    constexpr std::uint64_t kLater = 11'000'000'000;
    for (std::size_t group = 0; group < 2; ++group) process[group].pass(kLater, true);
    for (std::uint64_t event = 3500; event < 3600; ++event) {
      const std::uint64_t now = kLater + kEvent * (event - 3000);
      process[1].bring(event, now, event == 3500 ? 0x400 : 0);
      process[1].pass(now, true);
    }
    process.finish();
    const Fates& fates = process[1].fates;
    EXPECT_EQ(fates.wrong + fates.right, 0) << int{run.bits};
    EXPECT_EQ(fates.lost, 1) << int{run.bits};
    EXPECT_EQ(fates.flagged + fates.wrong_flagged, 99) << int{run.bits};
  }
}

// The counters wrap between the first events of two groups.
TEST(SequenceOthers, AGroupBeginsInTheRoundOfTheOthers) {
  for (const std::uint8_t bits : std::initializer_list<std::uint8_t>{8, 16, 24}) {
    Process process(3, {.bits = bits, .first = (1U << bits) - 10});
    process.go(0, 20, 1);
    process.go(20, 4000);
    process.finish();
    for (std::size_t group = 0; group < 3; ++group) {
      EXPECT_EQ(process[group].fates.right, group == 1 ? 3980 : 4000) << int{bits} << ", " << group;
    }
  }
}

// N3. One group begins with the next round of ids, then another group brings the last event of the round before.
TEST(SequenceOthers, AGroupLosesTheEventsBeforeTheRunAndGoesOnInIt) {
  for (const std::uint8_t bits : std::initializer_list<std::uint8_t>{8, 16, 24}) {
    Process process(2, {.bits = bits, .first = ~std::uint64_t{0}});  // event 0 has the highest id, event 1 the id 0
    for (std::uint64_t event = 1; event < 4000; ++event) {
      const std::uint64_t now = kEvent * (event + 1);
      process[0].bring(event, now);
      process[0].pass(now, true);
      if (event >= 4) process[1].bring(event - 4, now);
      process[1].pass(now, true);
    }
    process.finish();
    EXPECT_EQ(process[0].fates.right, 3999) << int{bits};
    EXPECT_EQ(process[1].fates.right, 3995) << int{bits};
    EXPECT_EQ(process[1].fates.lost, 1) << int{bits};
  }
}

// The trigger pauses: all groups are silent and continue with the next id.
TEST(SequenceOthers, ATriggerThatStoodStillCostsLinksNothing) {
  for (const Counting& run : {Counting{8, 0}, Counting{24, 0}, Counting{32, 977}}) {
    Process process(2, run);
    process.go(0, 9000);
    for (std::uint64_t i = 0; i < 400'000; i += 100) {
      for (std::size_t group = 0; group < 2; ++group) process[group].pass(kEvent * (9001 + i), true);
    }
    for (std::uint64_t event = 9000; event < 12'000; ++event) {
      for (std::size_t group = 0; group < 2; ++group) {
        process[group].bring(event, kEvent * (event + 400'001));
        process[group].pass(kEvent * (event + 400'001), true);
      }
    }
    for (std::size_t group = 0; group < 2; ++group) EXPECT_EQ(process[group].fates.right, 12'000) << int{run.bits};
  }
}

// The silence lasts one to twenty periods, but no whole number of periods, which looks like a pause.
TEST(SequenceOthers, WhereNothingTellsOfASilenceTheClockDoesAndAllThatFollowsIsFlagged) {
  for (const std::uint64_t silent : {300, 384, 513, 518, 2561, 5110}) {
    Process process(1, {.bits = 8});
    process.go(0, 9000);
    process.go(9000, 9000 + silent, 0);
    process[0].fates = {};
    process.go(9000 + silent, 15'000);
    process.finish();
    const Fates& fates = process[0].fates;
    EXPECT_EQ(fates.right + fates.wrong, 0) << silent;
    EXPECT_EQ(fates.flagged + fates.wrong_flagged + fates.lost, 6000 - silent) << silent;
    EXPECT_LE(fates.lost, 64) << silent;
  }
}

// The reset counter wraps during the silence; the other groups show the round.
TEST(SequenceOthers, ALinkThatWasSilentWhileTheResetCounterComesRoundReturnsToWhereOtherGroupsAre) {
  constexpr std::uint64_t kEpoch =
      211;  // longer than the time-out, for which the others wait at each reset for the silent group
  struct Case {
    std::size_t groups;
    std::uint64_t resets;
  };
  for (const auto& [groups, resets] : {Case{2, 300}, Case{3, 130}}) {
    Process process(groups, {.bits = 32, .epoch = kEpoch});
    const std::uint64_t begin = 3000;
    const std::uint64_t end = begin + resets * kEpoch + 159;
    process.go(0, begin);
    process.go(begin, end, 1);
    process[1].fates = {};
    process.go(end, end + 3000);
    process.finish();
    const Fates& fates = process[1].fates;
    EXPECT_EQ(fates.wrong + fates.wrong_flagged, 0) << resets << " resets, " << groups << " groups";
    EXPECT_LE(fates.flagged + fates.lost, 64) << resets << " resets, " << groups << " groups";
    EXPECT_EQ(process[0].fates.right, end + 3000) << resets << " resets, " << groups << " groups";
  }
}

TEST(SequenceOthers, WhereNothingTellsTheRoundOfTheResetCounterTheClockDoesAndAllThatFollowsIsFlagged) {
  constexpr std::uint64_t kEpoch = 61;
  for (const std::uint64_t resets : {100, 130, 200, 255, 300}) {
    Process process(1, {.bits = 32, .epoch = kEpoch});
    const std::uint64_t begin = 3000;
    const std::uint64_t end = begin + resets * kEpoch + 5;
    process.go(0, begin);
    process.go(begin, end, 0);
    process[0].fates = {};
    process.go(end, end + 3000);
    process.finish();
    const Fates& fates = process[0].fates;
    EXPECT_LE(fates.lost, 64) << resets;
    if (resets == 100) {
      EXPECT_EQ(fates.right + fates.lost, 3000) << resets;
    } else {
      EXPECT_EQ(resets < 256 ? fates.flagged : fates.wrong_flagged, 3000 - fates.lost) << resets;
    }
  }
}

// The data of one group come late, by half of the epochs that the reset counter can count.
TEST(SequenceOthers, AGroupWhoseDataComeLateByManyEpochsIsNotFlagged) {
  Process process(3, {.bits = 32, .epoch = 211});
  const std::uint64_t late = std::uint64_t{100} * 211;
  process.go(0, 3000);
  process.go(3000, 3000 + late, 1);
  for (std::uint64_t event = 3000; event < 3000 + late; ++event) {
    process[1].bring(event, kEvent * (3000 + late));
    if (event % 100 == 0) process[1].pass(kEvent * (3000 + late), false);
  }
  process.go(3000 + late, 6000 + late);
  process.finish();
  EXPECT_EQ(process[1].fates.right, 6000 + late);
}

// The trigger pauses, and a reset comes first after the pause.
TEST(SequenceOthers, AGroupThatGoesOnWithTheNextResetAfterALongPauseIsNotFlagged) {
  for (const std::size_t groups : {1, 2}) {
    Process process(groups, {.bits = 32, .epoch = 61});
    const std::uint64_t begin = std::uint64_t{50} * 61;
    process.go(0, begin);
    for (std::uint64_t i = 0; i < 400'000; i += 100) {
      for (std::size_t group = 0; group < groups; ++group) process[group].pass(kEvent * (begin + 1 + i), true);
    }
    for (std::uint64_t event = begin; event < begin + 3000; ++event) {
      for (std::size_t group = 0; group < groups; ++group) {
        process[group].bring(event, kEvent * (event + 400'001));
        process[group].pass(kEvent * (event + 400'001), true);
      }
    }
    for (std::size_t group = 0; group < groups; ++group) {
      process[group].finish();
      EXPECT_EQ(process[group].fates.right, begin + 3000) << groups;
    }
  }
}

enum class Fault : std::uint8_t { none, silent, late, jump, all_silent, count };
constexpr const char* kFaults[] = {"none", "silent", "late", "jump", "all silent"};

// Groups whose readers pause and continue at random, each at its own times.
struct Random {
  explicit Random(std::uint32_t seed) : engine(seed) {
    fault = static_cast<Fault>(below(static_cast<std::uint32_t>(Fault::count)));
    run = std::array{Counting{8, 0}, Counting{16, 0}, Counting{16, between(400, 2000)}, Counting{24, between(400, 2000)},
                     Counting{32, between(400, 2000)}}[below(5)];
    const std::uint32_t period = run.epoch != 0 ? static_cast<std::uint32_t>(run.epoch) : 256;
    groups = between(2, 5);
    from = fault == Fault::late ? 0 : between(5000, 6000);
    silent = below(2) == 0 ? between(period / 2, 20 * period) : period * between(1, 20) + between(0, 12) - 6;
    if (fault == Fault::jump) silent = between(2, 40);
    if (fault == Fault::jump && run.bits == 8) run.bits = 16;  // no reader notices a jump of less than a window
    if (fault == Fault::none) silent = 0;
    // After such a time each reader has found nothing to read.
    if (fault == Fault::all_silent || fault == Fault::silent) silent = std::max(silent, 600U);
    // These silences look like a pause of the trigger, or like a late beginning (see the tests above).
    if ((fault == Fault::all_silent || fault == Fault::silent) && silent % period == 0) ++silent;
    if (fault == Fault::late && run.bits != 32) silent = std::max(silent, 2500U);
    // A jump just before a reset may be taken for the reset, if ids do not show resets.
    if (fault == Fault::jump && run.epoch != 0)
      from -= static_cast<std::uint32_t>(run.epoch / 2 < from % run.epoch ? run.epoch / 2 : 0);
    off = between(2000, 60'000);
    total = from + silent + between(1000, 2000);
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); }
  std::uint32_t between(std::uint32_t a, std::uint32_t b) { return a + below(b - a + 1); }

  Fates play() {
    Process process(groups, run);
    // The process looks at the groups in turn. `read`: number of events that each has read; `rests`: the end of its pause.
    std::vector<std::uint64_t> read(groups);
    std::vector<std::uint64_t> rests(groups);
    for (std::uint64_t sent = 0; sent < total;) {
      sent = std::min<std::uint64_t>(total, sent + between(1, 20));
      for (std::size_t i = 0; i < groups; ++i) {
        if (rests[i] > sent && sent < total) continue;
        rests[i] = below(40) == 0 ? sent + below(200) : 0;
        for (; read[i] < sent; ++read[i]) bring(process, i, read[i], kEvent * sent);
        process[i].pass(kEvent * sent, true);
      }
    }
    Fates bad;
    for (std::size_t i = 0; i < groups; ++i) {
      process[i].finish();
      const bool faulty = fault == Fault::all_silent || i == 0;
      const Fates& of = process[i].fates;
      if (!faulty) healthy_wrong += total - of.right;
      bad.right += of.right;
      bad.wrong += of.wrong;
      bad.flagged += of.flagged;
      bad.wrong_flagged += of.wrong_flagged;
      bad.lost += of.lost;
    }
    return bad;
  }

  void bring(Process& process, std::size_t group, std::uint64_t event, std::uint64_t now) const {
    const bool faulty =
        fault != Fault::none && (group == 0 || fault == Fault::all_silent) && event >= from && event < from + silent;
    if (faulty && fault != Fault::jump) return;
    process[group].bring(event, now, faulty ? off & ((run.bits < 24 ? 1U << run.bits : 1U << 24) - 1) : 0);
  }

  std::mt19937 engine;
  Fault fault = Fault::none;
  Counting run;
  std::size_t groups = 2;
  std::uint32_t from = 0;
  std::uint32_t silent = 0;
  std::uint32_t off = 0;
  std::uint32_t total = 0;
  std::uint64_t healthy_wrong = 0;  // number of chunks of healthy groups that are not right
};

// Fraction of runs in which a group is in a wrong epoch without a flag. Their ids do not show resets, and epochs have some
// hundred events, which is no longer than a reader's pause; or only one other group shows the epoch.
constexpr double kMisplaced = 1. / 10'000;

TEST(SequenceOthers, GroupsOfOneLinkAreInTheRightPlaceOrFlagged) {
  const auto [first, count] = scenario_seeds(500);
  std::array<Fates, static_cast<std::size_t>(Fault::count)> sums;
  std::uint32_t misplaced = 0;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const Fates fates = random.play();
    const std::string name = fmt::format("seed {}, {} for {}, {} bits, epochs of {}, {} groups", seed,
                                         kFaults[static_cast<std::size_t>(random.fault)], random.silent, random.run.bits,
                                         random.run.epoch, random.groups);
    if (fates.wrong + random.healthy_wrong > 0) {
      EXPECT_TRUE(random.run.bits != 32 && random.run.epoch != 0) << name;
      ++misplaced;
      std::cout << fates.wrong << " wrong, " << random.healthy_wrong << " of healthy groups: " << name << '\n';
    }
    if (random.fault == Fault::none) {
      EXPECT_EQ(fates.right, random.groups * random.total);
    }
    Fates& sum = sums[static_cast<std::size_t>(random.fault)];
    sum.right += fates.right;
    sum.wrong += fates.wrong;
    sum.flagged += fates.flagged;
    sum.wrong_flagged += fates.wrong_flagged;
    sum.lost += fates.lost;
  }
  for (std::size_t fault = 0; fault < sums.size(); ++fault) {
    const Fates& sum = sums[fault];
    std::cout << kFaults[fault] << ": " << sum.right << " right, " << sum.flagged << " flagged and right, "
              << sum.wrong_flagged << " flagged and wrong, " << sum.wrong << " wrong, " << sum.lost << " lost\n";
  }
  EXPECT_LE(misplaced, runs_by_chance(kMisplaced, count));
}

TEST(ReaderTrack, TellsWhereAReaderWasAtAClock) {
  ReaderTrack other(5);
  EXPECT_FALSE(other.range_between(50, 50));
  for (std::uint64_t clock = 100; clock <= 1000; clock += 100) {
    const auto index = static_cast<std::int64_t>(clock / 10);
    other.report({clock, {7, index}, 1000 + clock / 10});
  }
  EXPECT_FALSE(other.range_between(50, 50)) << "all its points are later";
  const auto range = other.range_between(550, 650);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->low.place, (Place{7, 50}));
  EXPECT_EQ(range->high.place, (Place{7, 70}));
  EXPECT_EQ(range->events(), 20);
  const auto later = other.range_between(1100, 2000);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->low.place, (Place{7, 100}));
  EXPECT_EQ(later->high.place, (Place{7, 300})) << "twice as fast as of late";
  EXPECT_FALSE(other.range_between(20'000'000'000, 20'000'000'000)) << "it has brought nothing for 10 s";
  EXPECT_EQ(other.events_since({7, 30}, 1000), 70);
  EXPECT_EQ(other.events_since({7, 30}, 550), 20);
  EXPECT_EQ(other.events_since({7, 130}, 1000), 0);
  EXPECT_EQ(other.events_since({6, 500}, 1000), 90) << "from its first point";
  other.clear();
  EXPECT_FALSE(other.range_between(550, 650));
  EXPECT_FALSE(other.events_since({7, 30}, 1000));
}

// The links of the reader followed a wrong counter, and have returned.
TEST(ReaderTrack, TellsOfAReaderThatWentBack) {
  ReaderTrack other(5);
  other.report({100, {7, 10}, 1000});
  other.report({200, {7, 5000}, 1300});
  other.report({300, {7, 20}, 1600});
  ASSERT_TRUE(other.position_after(300));
  EXPECT_EQ(other.position_after(300)->place, (Place{7, 20}));
}

TEST(ReaderTrack, AReaderThatHasEndedIsNotWaitedFor) {
  ReaderTracks tracks;
  ReaderTrack& one = tracks.add();
  ReaderTrack& other = tracks.add();
  one.report_clock(500);
  EXPECT_FALSE(tracks.all_read_to(500));
  EXPECT_TRUE(tracks.any_other_read_to(other, 500));
  EXPECT_FALSE(tracks.any_other_read_to(one, 500));
  other.report_clock(400);
  EXPECT_EQ(tracks.sum_of_clocks(), 900);
  EXPECT_FALSE(tracks.all_read_to(500));
  other.end();
  EXPECT_TRUE(tracks.all_read_to(500));
}

}  // namespace
}  // namespace rodeo::test
