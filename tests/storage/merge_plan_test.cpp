// The L1 id, within a window of order, decides which events belong together; names and contents of files do not matter.
#include "storage/merge_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using rodeo::L1Id;
using Plan = rodeo::storage::MergePlan<int>;

// Adds the ids of each writer in order. Returns the merged events as "1:ab 2:b"; letters are writers. "!": refused.
std::string merged(const std::vector<std::vector<std::uint32_t>>& writers, std::size_t window,
                   std::size_t* most_held = nullptr) {
  Plan plan(writers.size(), window);
  std::vector<std::size_t> at(writers.size());
  std::string text;
  while (true) {
    while (const auto writer = plan.wants()) {
      if (at[*writer] == writers[*writer].size()) {
        plan.end(*writer);
      } else if (const std::uint32_t id = writers[*writer][at[*writer]++];
                 !plan.add(*writer, L1Id{id}, static_cast<int>(id))) {
        text += "! ";
      }
    }
    const auto together = plan.next();
    if (together.empty()) break;
    text += std::to_string(static_cast<std::uint32_t>(together.front().event)) + ":";
    for (const auto& member : together) text += static_cast<char>('a' + member.writer);
    text += ' ';
  }
  if (most_held != nullptr) *most_held = plan.most_held();
  return text;
}

TEST(MergePlan, EventsOfOneIdAreTogether) { EXPECT_EQ(merged({{1, 2, 3}, {1, 2, 3}}, 4), "1:ab 2:ab 3:ab "); }

TEST(MergePlan, WhatOnlySomeHaveIsKept) { EXPECT_EQ(merged({{1, 3, 4}, {2, 3}, {4}}, 4), "1:a 2:b 3:ab 4:ac "); }

TEST(MergePlan, AWriterWithoutEventsIsWaitedForOnce) { EXPECT_EQ(merged({{1, 2}, {}}, 4), "1:a 2:a "); }

TEST(MergePlan, NoWriterIsNoEvent) { EXPECT_EQ(merged({}, 4), ""); }

TEST(MergePlan, AnIdThatIsThereTwiceIsGivenOutAtOnce) { EXPECT_EQ(merged({{1, 2, 2, 3}, {2}}, 4), "1:a 2:aab 3:a "); }

TEST(MergePlan, OrderWithinTheWindowDoesNotMatter) {
  EXPECT_EQ(merged({{3, 1, 2, 5, 4}, {1, 2, 3, 4, 5}}, 3), "1:ab 2:ab 3:ab 4:ab 5:ab ");
}

TEST(MergePlan, AnEventThatIsFurtherBehindIsRefused) {
  EXPECT_EQ(merged({{2, 3, 4, 1}}, 3), "2:a ! 3:a 4:a ");
  EXPECT_EQ(merged({{2, 3, 4, 1}}, 4), "1:a 2:a 3:a 4:a ");
  EXPECT_EQ(merged({{2, 3, 4, 2}}, 3), "2:a ! 3:a 4:a ") << "a late duplicate is not a new event";
}

TEST(MergePlan, IdsThatWrapGoOn) {
  EXPECT_EQ(merged({{0xfffffffe, 0xffffffff, 0, 1}, {0xffffffff, 1}}, 2), "4294967294:a 4294967295:ab 0:a 1:ab ");
}

TEST(MergePlan, AnEventCounterResetIsAStepForward) {
  EXPECT_EQ(merged({{0x00000064, 0x01000000}, {0x01000000, 0x01000001}}, 2), "100:a 16777216:ab 16777217:b ");
}

// Memory is constant: for files of any length, the plan holds at most as many events as the windows have.
TEST(MergePlan, GlobalIdsWithOneLowerHalfAreDifferentEvents) {
  Plan plan(2, 8);
  for (const std::size_t writer : {0U, 1U}) {
    for (const std::uint64_t id : {0x5UL, 0x100000005UL, 0x90000000000UL}) EXPECT_TRUE(plan.add(writer, id, 1));
    plan.end(writer);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(plan.next().size(), 2U);
  EXPECT_TRUE(plan.next().empty());
}

TEST(MergePlan, NoMoreEventsAreHeldThanTheWindowsHave) {
  std::mt19937 random(7);
  std::vector<std::vector<std::uint32_t>> writers(3);
  for (std::uint32_t id = 1; id <= 20'000; ++id) {
    for (auto& writer : writers) {
      if (random() % 10 != 0) writer.push_back(id);
    }
  }
  for (auto& writer : writers) {
    for (std::size_t at = 0; at + 20 < writer.size(); at += 20)
      std::shuffle(writer.begin() + static_cast<std::ptrdiff_t>(at), writer.begin() + static_cast<std::ptrdiff_t>(at) + 20,
                   random);
  }
  std::size_t most_held = 0;
  const std::string text = merged(writers, 50, &most_held);
  EXPECT_EQ(text.find('!'), std::string::npos);
  EXPECT_LE(most_held, 150u);
  EXPECT_GT(most_held, 100u);
}

}  // namespace
