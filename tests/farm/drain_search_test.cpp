// All states that a small farm can reach: it drains from each of them after the faults have ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "farm/drain_model.h"

namespace {

using rodeo::test::DrainModel;
using rodeo::test::DrainSizes;

/// Hash of a state's text. Two states with the same hash would count as one; the table uses the two lowest bits.
struct Hash {
  explicit Hash(const std::string& text)
      : first(std::hash<std::string_view>{}(text) | 1), second(std::hash<std::string>{}(text + '#') & ~std::uint64_t{3}) {}
  std::uint64_t first, second;
};

/// The marks of states. There are many states, so the table has open addressing and 16 bytes per state.
class StateTable {
 public:
  static constexpr std::uint64_t kSeen = 1, kDrains = 2;

  bool has(const Hash& hash, std::uint64_t mark) const { return (slots_[find(slots_, hash)].marks & mark) != 0; }
  /// False: the state has the mark already.
  bool set(const Hash& hash, std::uint64_t mark) {
    if (used_ * 4 >= slots_.size() * 3) grow();
    Slot& slot = slots_[find(slots_, hash)];
    if (slot.first == 0) {
      ++used_;
      slot = {hash.first, hash.second};
    }
    const bool fresh = (slot.marks & mark) == 0;
    slot.marks |= mark;
    return fresh;
  }
  std::size_t size() const { return used_; }
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint64_t first = 0;
    std::uint64_t marks = 0;  // the marks, and the other bits of the hash
  };
  static std::size_t find(const std::vector<Slot>& slots, const Hash& hash) {
    std::size_t at = (hash.first * 0x9e3779b97f4a7c15U) >> 20 & (slots.size() - 1);
    while (slots[at].first != 0 && (slots[at].first != hash.first || (slots[at].marks & ~std::uint64_t{3}) != hash.second))
      at = (at + 1) & (slots.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> more(slots_.size() * 2);
    for (const Slot& slot : slots_) {
      if (slot.first == 0) continue;
      std::size_t at = (slot.first * 0x9e3779b97f4a7c15U) >> 20 & (more.size() - 1);
      while (more[at].first != 0) at = (at + 1) & (more.size() - 1);
      more[at] = slot;
    }
    slots_ = std::move(more);
  }
  std::vector<Slot> slots_ = std::vector<Slot>(1 << 16);
  std::size_t used_ = 0;
};

struct Search {
  explicit Search(const DrainSizes& sizes) : sizes_(sizes) {}

  /// Returns an empty text if all states drain, else the acts that lead to one that does not.
  std::string run() {
    visit(DrainModel(sizes_), {});
    while (!left_.empty()) {
      // Depth first: few states are in memory at a time.
      const auto [state, from] = std::move(left_.back());
      left_.pop_back();
      if (const std::string wrong = state.wrong(); !wrong.empty()) return wrong + ": " + way(from);
      if (!drains(state)) return "does not drain: " + way(from);
      for (int i = 0; i < static_cast<int>(DrainModel::Act::count); ++i) {
        const auto act = static_cast<DrainModel::Act>(i);
        if (act == DrainModel::Act::expire && !state.may_expire()) continue;
        for (std::uint32_t which = 0; which < state.how_many(act); ++which) {
          DrainModel next = state;
          if (next.act(act, which)) visit(std::move(next), {from, act, static_cast<std::uint8_t>(which)});
        }
      }
      if (came_.size() > told_ + 1'000'000) {
        told_ = came_.size();
        std::cerr << fmt::format("{} states, {} to do, {} MiB\n", came_.size(), left_.size(), known_.bytes() >> 20);
      }
    }
    return {};
  }
  /// Does the same as run() for one walk of random acts.
  std::string walk(std::uint32_t seed) {
    std::mt19937 draw(seed);
    DrainModel state(sizes_);
    std::string done;
    for (std::uint32_t step = 0; step < kLongestWalk; ++step) {
      ++steps_;
      const auto act = static_cast<DrainModel::Act>(draw() % static_cast<unsigned long>(DrainModel::Act::count));
      if (act >= DrainModel::kFirstFault && draw() % kFaultsAreRare != 0) continue;
      const auto which = static_cast<std::uint32_t>(draw() % state.how_many(act));
      if (!state.act(act, which)) continue;
      done += fmt::format("{}{} {}", done.empty() ? "" : ", ", DrainModel::name(act), which);
      if (const std::string wrong = state.wrong(); !wrong.empty()) return fmt::format("{}: {}", wrong, done);
      if (!drains(state)) return "does not drain: " + done;
    }
    return {};
  }
  std::size_t states() const { return came_.size(); }
  std::size_t steps() const { return steps_; }
  std::size_t known() const { return known_.size(); }

 private:
  static constexpr std::uint32_t kLongestWalk = 400;   // random acts, most of which change nothing
  static constexpr std::uint32_t kFaultsAreRare = 12;  // if faults were frequent, all would come at the beginning
  struct Step {
    std::uint32_t from = 0;
    DrainModel::Act act = DrainModel::Act::count;
    std::uint8_t which = 0;
  };
  void visit(DrainModel state, Step step) {
    ++steps_;
    if (!known_.set(Hash(state.text()), StateTable::kSeen)) return;
    left_.emplace_back(std::move(state), static_cast<std::uint32_t>(came_.size()));
    came_.push_back(step);
  }
  bool drains(DrainModel state) {
    std::vector<Hash> on_the_way;
    for (;;) {
      const Hash hash(state.text());
      if (state.drained() || known_.has(hash, StateTable::kDrains)) break;
      const auto same = [&](const Hash& other) { return other.first == hash.first && other.second == hash.second; };
      if (std::ranges::any_of(on_the_way, same)) return false;
      on_the_way.push_back(hash);
      if (!state.step()) return false;
    }
    for (const Hash& hash : on_the_way) known_.set(hash, StateTable::kDrains);
    return true;
  }
  std::string way(std::uint32_t to) const {
    std::string text;
    for (std::uint32_t at = to; at > 0; at = came_[at].from)
      text = fmt::format("{} {}{}{}", DrainModel::name(came_[at].act), came_[at].which, text.empty() ? "" : ", ", text);
    return text;
  }

  const DrainSizes sizes_;
  StateTable known_;
  std::vector<std::pair<DrainModel, std::uint32_t>> left_;
  std::vector<Step> came_;
  std::size_t steps_ = 0;
  std::size_t told_ = 0;
};

void expect_to_drain(const DrainSizes& sizes) {
  Search search(sizes);
  EXPECT_EQ(search.run(), "");
  std::cout << fmt::format(
      "{}{} slots, {} nodes of {}, {} readouts that keep {}, {} triggers, {} faults, time-outs {}: {} states, {} steps\n",
      sizes.no_trigger ? "without a trigger: " : "", sizes.slots, sizes.nodes, sizes.node_slots, sizes.readouts, sizes.kept,
      sizes.triggers, sizes.faults, sizes.time_outs == 0 ? "any number" : fmt::format("{} an event", sizes.time_outs),
      search.states(), search.steps());
}

TEST(DrainSearch, EachStateOfASmallFarmDrains) {
  expect_to_drain({.slots = 2, .nodes = 1, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 3, .faults = 1});
  if (std::getenv("RODEO_DRAIN_SEARCH") == nullptr) return;
  // The whole search (tests/system/test_drain_search.py). Two nodes: the time-outs of each event are limited.
  expect_to_drain({.slots = 3, .nodes = 1, .readouts = 1, .kept = 3, .waiting = 3, .triggers = 6, .faults = 1});
  expect_to_drain({.slots = 2, .nodes = 1, .readouts = 1, .kept = 2, .waiting = 1, .triggers = 4, .faults = 3});
  expect_to_drain({.slots = 2, .nodes = 1, .readouts = 2, .kept = 2, .waiting = 1, .triggers = 4, .faults = 1});
  for (const std::uint32_t faults : {0U, 1U})
    expect_to_drain(
        {.slots = 3, .nodes = 2, .readouts = 1, .kept = 2, .waiting = 2, .triggers = 4, .faults = faults, .time_outs = 1});
  expect_to_drain(
      {.slots = 2, .nodes = 2, .readouts = 1, .kept = 1, .waiting = 1, .triggers = 3, .faults = 1, .time_outs = 2});
  expect_to_drain(
      {.slots = 2, .nodes = 2, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 2, .faults = 1, .time_outs = 1});
  expect_to_drain(
      {.slots = 2, .nodes = 2, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 3, .faults = 0, .time_outs = 1});
  expect_to_drain(
      {.slots = 2, .nodes = 2, .readouts = 1, .kept = 1, .waiting = 1, .triggers = 2, .faults = 3, .time_outs = 1});
}

// A node takes an event that is newer than its own, and gives it back for an older one.
TEST(DrainSearch, EachStateOfAFarmWhoseNodeTakesTwoEventsDrains) {
  DrainSizes sizes{
      .slots = 2, .node_slots = 2, .nodes = 1, .readouts = 1, .kept = 1, .waiting = 3, .triggers = 4, .faults = 1};
  expect_to_drain(sizes);
  sizes.untold_wait_for_room = true;
  EXPECT_THAT(Search(sizes).run(), testing::StartsWith("does not drain"))
      << "the search finds the fault that the rule prevents";
  if (std::getenv("RODEO_DRAIN_SEARCH") == nullptr) return;
  expect_to_drain(
      {.slots = 3, .node_slots = 2, .nodes = 1, .readouts = 1, .kept = 2, .waiting = 1, .triggers = 4, .faults = 1});
  expect_to_drain(
      {.slots = 3, .node_slots = 2, .nodes = 1, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 3, .faults = 1});
  expect_to_drain({.slots = 3,
                   .node_slots = 2,
                   .nodes = 2,
                   .readouts = 1,
                   .kept = 1,
                   .waiting = 1,
                   .triggers = 3,
                   .faults = 1,
                   .time_outs = 1});
}

// The largest farm has too many states: the test does random walks, and a hundred times as many with RODEO_DRAIN_SEARCH.
TEST(DrainSearch, WalksThroughAFarmOfTwoNodesAndTwoReadoutsDrain) {
  DrainSizes sizes{.slots = 3, .nodes = 2, .readouts = 2, .kept = 3, .waiting = 3, .triggers = 6, .faults = 3};
  const std::uint32_t walks = std::getenv("RODEO_DRAIN_SEARCH") == nullptr ? 50 : 5000;
  for (sizes.kept = 1; sizes.kept <= 3; ++sizes.kept) {
    Search search(sizes);
    for (std::uint32_t seed = 0; seed < walks; ++seed) ASSERT_EQ(search.walk(seed), "") << "seed " << seed;
    std::cout << fmt::format(
        "{} walks, {} nodes, {} readouts that keep {}, {} triggers, {} faults: {} states on them and "
        "while they drain\n",
        walks, sizes.nodes, sizes.readouts, sizes.kept, sizes.triggers, sizes.faults, search.known());
  }
  sizes.kept = 1;  // events without announced triggers fill the readouts
  sizes.untold_wait_for_room = true;
  Search old(sizes);
  std::uint32_t stands = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) stands += old.walk(seed).empty() ? 0 : 1;
  EXPECT_GT(stands, 0U) << "walks find the fault that the rule prevents";
}

// Without a trigger, readouts report which events exist; they begin, end and restart at any moment.
TEST(DrainSearch, EachStateOfASmallFarmWithoutATriggerDrains) {
  expect_to_drain(
      {.slots = 1, .nodes = 1, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 2, .faults = 0, .no_trigger = true});
  if (std::getenv("RODEO_DRAIN_SEARCH") == nullptr) return;
  // The larger state spaces do not fit into memory.
  expect_to_drain(
      {.slots = 2, .nodes = 1, .readouts = 1, .kept = 1, .waiting = 1, .triggers = 3, .faults = 1, .no_trigger = true});
  expect_to_drain(
      {.slots = 2, .nodes = 1, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 2, .faults = 0, .no_trigger = true});
}

// The fault that the rule prevents: readouts are full of events without known triggers, and newer triggers have all slots.
TEST(DrainSearch, AFarmThatLetsOldEventsInOnlyWhenThereIsRoomStands) {
  DrainSizes sizes{.slots = 2, .nodes = 1, .readouts = 1, .kept = 1, .waiting = 3, .triggers = 4, .faults = 1};
  expect_to_drain(sizes);
  sizes.untold_wait_for_room = true;
  Search search(sizes);
  const std::string way = search.run();
  EXPECT_THAT(way, testing::StartsWith("does not drain"));
  std::cout << "without the rule: " << way << '\n';
}

}  // namespace
