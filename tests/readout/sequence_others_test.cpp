// Groups of one link, which only the groups of other readers contradict: links that jump alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "readout/sequence/event_set.h"
#include "readout/sequence/sequencer.h"
#include "readout/sequence/standings.h"
#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;
using readout::Place;
using readout::Standing;
using readout::Standings;

constexpr std::uint64_t kEvent = 10'000;  // ns: 100 kHz
constexpr std::uint64_t kPatience = 2'000'000;

/// The results of a group's chunks.
struct Fates {
  std::uint64_t right = 0, flagged = 0, wrong = 0, wrong_flagged = 0, lost = 0, waiting = 0;
};

/// The events of a run, in epochs of equal length or without epochs.
struct Counting {
  std::uint8_t bits = 24;  // 32: 24 and the event counter resets
  std::uint64_t epoch = 0;

  std::uint64_t resets(std::uint64_t event) const { return epoch == 0 ? 0 : event / epoch; }
  std::uint64_t index(std::uint64_t event) const { return epoch == 0 ? event : event % epoch; }
  std::uint32_t id(std::uint64_t event) const {
    const auto low = static_cast<std::uint32_t>(index(event));
    return bits == 32 ? static_cast<std::uint32_t>(resets(event)) << 24 | low : low & ((1U << bits) - 1);
  }
};

/// A group of FULL mode with one link and its own reader.
class Lone {
 public:
  explicit Lone(const Counting& run) : run_(run), sequencer_(of(run)), came_(sequencer_.settings().window) {
    sequencer_.add(link_);
    sequencer_.set_events(came_);
  }

  void share(Standings& standings) { sequencer_.share(0, standings, standings.add()); }

  /// The link sends its chunk of this event, with `off` added to the id.
  void bring(std::uint64_t event, std::uint32_t off = 0) {
    const std::uint32_t id = off == 0 ? run_.id(event) : (run_.id(event) + off) & ((1U << run_.bits) - 1);
    const Sequence before = link_.position();
    waiting_.emplace_back(event, off != 0);

    link_.hear();
    link_.seen.store(event_clock_);
    if (id == link_.expected && before < link_.end && !came_.beyond(before)) {
      link_.next.store(before + link_.stride);
      link_.expected = sequencer_.settings().format.advance(link_.expected, 1);
      decisions_.push_back({.verdict = Verdict::take, .sequence = before});
    } else {
      sequencer_.offer(0, id, 0, event_clock_, oldest(), decisions_);
    }
    link_.told(before, 1);
    apply();
  }
  /// The reader has read everything sent until this time.
  void pass(std::uint64_t now, bool drained) {
    // A reader that was away for a while knows nothing of that time.
    event_clock_ += std::min(now - passed_, kPatience / 4);
    passed_ = now;
    sequencer_.pass(0, now);
    if (!drained) return;
    sequencer_.settle(0, event_clock_, oldest(), decisions_);
    apply();
  }
  void finish() {
    sequencer_.finish(0, event_clock_, oldest(), decisions_);
    sequencer_.give_up(0, decisions_);
    apply();
    fates.waiting = waiting_.size();
  }

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
      if (decision.verdict != Verdict::take) {
        ++fates.lost;
        continue;
      }
      while (came_.beyond(decision.sequence)) {
        came_.raise(came_.oldest() + 1);
        came_.pass();
      }
      if (decision.sequence < came_.oldest() || came_.came(decision.sequence)) {
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

/// Several groups of one process.
struct Process {
  Process(std::size_t groups, const Counting& of) : run(of) {
    for (std::size_t i = 0; i < groups; ++i) groups_.push_back(std::make_unique<Lone>(run));
    for (const auto& group : groups_) group->share(standings);
  }
  Lone& operator[](std::size_t group) { return *groups_[group]; }

  /// All groups send the events from `from` to `to`; `off` is added to the ids of `liar`.
  void go(std::uint64_t from, std::uint64_t to, std::size_t liar = kNone, std::uint32_t off = 0) {
    for (std::uint64_t event = from; event < to; ++event) {
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        groups_[i]->bring(event, i == liar ? off : 0);
        groups_[i]->pass(kEvent * (event + 1), true);
      }
    }
  }
  void finish() {
    for (const auto& group : groups_) group->finish();
  }

  static constexpr std::size_t kNone = 100;

  const Counting run;
  Standings standings;

 private:
  std::vector<std::unique_ptr<Lone>> groups_;
};

// 16 chunks of a link jump, and three other groups continue.
TEST(SequenceOthers, ALinkThatIsAloneInItsGroupIsNotFollowedWhereOtherGroupsContradictIt) {
  for (const std::size_t groups : {2, 4}) {
    Process process(groups, {.bits = 24, .epoch = 977});
    process.go(0, 2000);
    process.go(2000, 2016, 1, 20'000);
    process.go(2016, 9000);
    process.finish();
    for (std::size_t i = 0; i < groups; ++i) {
      EXPECT_EQ(process[i].fates.wrong + process[i].fates.flagged + process[i].fates.wrong_flagged, 0)
          << groups << ", " << i;
      EXPECT_GE(process[i].fates.right, i == 1 ? 8900 : 9000) << groups << ", " << i;
    }
  }
}

enum class Fault : std::uint8_t { none, jump, count };
constexpr const char* kFaults[] = {"none", "jump"};

// Groups whose readers pause and continue at random times.
struct Random {
  explicit Random(std::uint32_t seed) : engine(seed) {
    fault = static_cast<Fault>(below(static_cast<std::uint32_t>(Fault::count)));
    run = std::array{Counting{8, 0}, Counting{16, 0}, Counting{16, between(400, 2000)}, Counting{24, between(400, 2000)},
                     Counting{32, between(400, 2000)}}[below(5)];
    groups = between(2, 5);
    from = between(2000, 3000);
    jumps = fault == Fault::jump ? between(2, 40) : 0;
    if (fault == Fault::jump && run.bits == 8) run.bits = 16;  // an error of less than a window cannot be detected
    off = between(2000, 60'000);
    total = from + jumps + between(1000, 2000);
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); }
  std::uint32_t between(std::uint32_t a, std::uint32_t b) { return a + below(b - a + 1); }

  Fates play() {
    Process process(groups, run);
    // Each reader has read up to some time, and the process visits them in turn.
    std::vector<std::uint64_t> read(groups);
    std::vector<std::uint64_t> rests(groups);
    for (std::uint64_t sent = 0; sent < total;) {
      sent = std::min<std::uint64_t>(total, sent + between(1, 20));
      for (std::size_t i = 0; i < groups; ++i) {
        if (rests[i] > sent && sent < total) continue;
        rests[i] = below(40) == 0 ? sent + below(200) : 0;
        for (; read[i] < sent; ++read[i]) bring(process, i, read[i]);
        process[i].pass(kEvent * sent, true);
      }
    }
    Fates bad;
    for (std::size_t i = 0; i < groups; ++i) {
      process[i].finish();
      const bool faulty = i == 0;
      const Fates& of = process[i].fates;
      if (!faulty) {
        EXPECT_EQ(of.right, total) << i;
      }
      bad.right += of.right;
      bad.wrong += of.wrong;
      bad.flagged += of.flagged;
      bad.wrong_flagged += of.wrong_flagged;
      bad.lost += of.lost;
    }
    return bad;
  }

  void bring(Process& process, std::size_t group, std::uint64_t event) const {
    const bool faulty = group == 0 && event >= from && event < from + jumps;
    process[group].bring(event, faulty ? off & ((run.bits < 24 ? 1U << run.bits : 1U << 24) - 1) : 0);
  }

  std::mt19937 engine;
  Fault fault = Fault::none;
  Counting run;
  std::size_t groups = 2;
  std::uint32_t from = 0;
  std::uint32_t jumps = 0;
  std::uint32_t off = 0;
  std::uint32_t total = 0;
};

TEST(SequenceOthers, GroupsOfOneLinkAreInTheRightPlaceOrFlagged) {
  const char* const of = std::getenv("RODEO_SCENARIOS");
  const std::string text = of == nullptr ? "1:100" : of;
  const auto first = static_cast<std::uint32_t>(std::stoul(text));
  const auto count = static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)));
  std::array<Fates, static_cast<std::size_t>(Fault::count)> sums;
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << kFaults[static_cast<std::size_t>(random.fault)] << " for "
                                    << random.jumps << ", " << int{random.run.bits} << " bits, epochs of "
                                    << random.run.epoch << ", " << random.groups << " groups");
    const Fates fates = random.play();
    EXPECT_EQ(fates.wrong, 0);
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
}

}  // namespace
}  // namespace rodeo::test
