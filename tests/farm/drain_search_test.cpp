// All states that a small farm can get into: from each of them it drains once faults are over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "farm/drain_model.h"

namespace {

using rodeo::test::DrainModel;
using rodeo::test::DrainSizes;

/// Of the text of a state: two states with one hash are taken for one, which does not happen.
struct Hash {
  explicit Hash(const std::string& text)
      : first(std::hash<std::string_view>{}(text)), second(std::hash<std::string>{}(text + '#') * 3 + text.size()) {}
  std::uint64_t first, second;
  bool operator==(const Hash&) const = default;
};
struct OfHash {
  std::size_t operator()(const Hash& hash) const { return hash.first; }
};

struct Search {
  explicit Search(const DrainSizes& sizes) : sizes_(sizes) {}

  /// Empty: all states drain. Else the way to one that does not.
  std::string run() {
    visit(DrainModel(sizes_), {});
    while (!left_.empty()) {
      // The last first: few states are in memory at a time.
      const auto [state, from] = std::move(left_.back());
      left_.pop_back();
      if (const std::string wrong = state.wrong(); !wrong.empty()) return wrong + ": " + way(from);
      if (!drains(state)) return "does not drain: " + way(from);
      for (int i = 0; i < static_cast<int>(DrainModel::Act::count); ++i) {
        const auto act = static_cast<DrainModel::Act>(i);
        for (std::uint32_t which = 0; which < state.how_many(act); ++which) {
          DrainModel next = state;
          if (next.act(act, which)) visit(std::move(next), {from, act, static_cast<std::uint8_t>(which)});
        }
      }
    }
    return {};
  }
  std::size_t states() const { return seen_.size(); }
  std::size_t steps() const { return steps_; }

 private:
  struct Step {
    std::uint32_t from = 0;
    DrainModel::Act act = DrainModel::Act::count;
    std::uint8_t which = 0;
  };
  void visit(DrainModel state, Step step) {
    ++steps_;
    if (!seen_.insert(Hash(state.text())).second) return;
    left_.emplace_back(std::move(state), static_cast<std::uint32_t>(came_.size()));
    came_.push_back(step);
  }
  bool drains(DrainModel state) {
    std::vector<Hash> on_the_way;
    std::unordered_set<Hash, OfHash> here;
    for (;;) {
      const Hash hash(state.text());
      if (state.drained() || drain_.contains(hash)) break;
      if (!here.insert(hash).second) return false;
      on_the_way.push_back(hash);
      if (!state.round()) return false;
    }
    drain_.insert(on_the_way.begin(), on_the_way.end());
    return true;
  }
  std::string way(std::uint32_t to) const {
    std::string text;
    for (std::uint32_t at = to; at > 0; at = came_[at].from)
      text = fmt::format("{} {}{}{}", DrainModel::name(came_[at].act), came_[at].which, text.empty() ? "" : ", ", text);
    return text;
  }

  const DrainSizes sizes_;
  std::unordered_set<Hash, OfHash> seen_;
  std::unordered_set<Hash, OfHash> drain_;
  std::vector<std::pair<DrainModel, std::uint32_t>> left_;
  std::vector<Step> came_;
  std::size_t steps_ = 0;
};

void expect_to_drain(const DrainSizes& sizes) {
  Search search(sizes);
  EXPECT_EQ(search.run(), "");
  std::cout << fmt::format(
      "{} slots, {} nodes of {}, {} readouts that keep {}, {} triggers, {} faults: {} states, {} steps\n", sizes.slots,
      sizes.nodes, sizes.node_slots, sizes.readouts, sizes.kept, sizes.triggers, sizes.faults, search.states(),
      search.steps());
}

TEST(DrainSearch, EachStateOfASmallFarmDrains) {
  expect_to_drain({.slots = 2, .nodes = 1, .readouts = 2, .kept = 1, .waiting = 1, .triggers = 3, .faults = 1});
  if (std::getenv("RODEO_DRAIN_SEARCH") == nullptr) return;
  // The whole (tests/system/test_drain_search.py)
  expect_to_drain({.slots = 3, .nodes = 1, .readouts = 1, .kept = 3, .waiting = 3, .triggers = 6, .faults = 1});
  expect_to_drain({.slots = 2, .nodes = 1, .readouts = 1, .kept = 2, .waiting = 1, .triggers = 4, .faults = 3});
  expect_to_drain({.slots = 2, .nodes = 1, .readouts = 2, .kept = 2, .waiting = 1, .triggers = 4, .faults = 1});
  expect_to_drain({.slots = 3, .nodes = 2, .readouts = 1, .kept = 2, .waiting = 2, .triggers = 4, .faults = 1});
}

// What the rule is for: readouts are full of events that no trigger told of, and newer triggers have all slots.
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
