#include "dispatch/assigner.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace {

using namespace rodeo::dispatch;

std::uint32_t nobody_draws(std::uint32_t) {
  ADD_FAILURE() << "only the random policy needs random numbers";
  return 0;
}

TEST(Assigner, NobodyWithoutRoomGetsAnEvent) {
  Assigner assigner(Policy::round_robin, 3);
  EXPECT_FALSE(assigner.any_room());
  EXPECT_EQ(assigner.from(0), Assigner::kNone);
  assigner.set(1, 5, true);
  EXPECT_EQ(assigner.from(2), 1U);
}

TEST(Assigner, RoundRobinGoesRound) {
  Assigner assigner(Policy::round_robin, 3);
  for (std::uint32_t node = 0; node < 3; ++node) assigner.set(node, node, true);
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 5; ++i) {
    order.push_back(assigner.from(assigner.first(nobody_draws)));
    assigner.took(order.back());
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 0, 1}));
}

TEST(Assigner, OfNodesThatHaveFewestTheNextInTurnGetsIt) {
  Assigner assigner(Policy::least_loaded, 4);
  assigner.set(0, 1, true);
  assigner.set(1, 7, true);
  assigner.set(2, 1, true);
  assigner.set(3, 0, false);
  EXPECT_EQ(assigner.from(0), 0U);
  EXPECT_EQ(assigner.from(1), 2U);
  EXPECT_EQ(assigner.from(3), 0U);
}

TEST(Assigner, TheRandomPolicyBeginsWhereItIsDrawn) {
  Assigner assigner(Policy::random, 4);
  for (std::uint32_t node = 0; node < 4; ++node) assigner.set(node, 0, node != 2);
  const auto from = [&](std::uint32_t drawn) {
    return assigner.from(assigner.first([&](std::uint32_t below) {
      EXPECT_EQ(below, 4U);
      return drawn;
    }));
  };
  EXPECT_EQ(from(1), 1U);
  EXPECT_EQ(from(2), 3U);
}

// Checks each node in turn.
std::uint32_t slow_choice(const std::vector<std::uint32_t>& loads, std::uint32_t first, bool least) {
  const auto nodes = static_cast<std::uint32_t>(loads.size());
  std::uint32_t best = Assigner::kNone;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::uint32_t node = (first + i) % nodes;
    if (loads[node] == NodeChoice::kFull) continue;
    if (best == Assigner::kNone || (least && loads[node] < loads[best])) best = node;
  }
  return best;
}

TEST(Assigner, AgreesWithALookAtEveryNode) {
  std::mt19937 random(5);
  for (const std::uint32_t nodes : {1U, 2U, 3U, 7U, 8U, 9U, 64U, 100U}) {
    Assigner least(Policy::least_loaded);
    Assigner next(Policy::round_robin);
    std::vector<std::uint32_t> loads;
    for (int step = 0; step < 3000; ++step) {
      if (loads.size() < nodes && random() % 8 == 0) {
        loads.push_back(NodeChoice::kFull);
        least.resize(static_cast<std::uint32_t>(loads.size()));
        next.resize(static_cast<std::uint32_t>(loads.size()));
      }
      if (loads.empty()) continue;
      const auto node = static_cast<std::uint32_t>(random() % loads.size());
      const std::uint32_t load = random() % 4;
      const bool room = random() % 3 != 0;
      loads[node] = room ? load : NodeChoice::kFull;
      least.set(node, load, room);
      next.set(node, load, room);
      const auto first = static_cast<std::uint32_t>(random() % loads.size());
      ASSERT_EQ(least.from(first), slow_choice(loads, first, true));
      ASSERT_EQ(next.from(first), slow_choice(loads, first, false));
    }
  }
}

}  // namespace
