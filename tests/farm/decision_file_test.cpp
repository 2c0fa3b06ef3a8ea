// The file of decisions, read back: each event once, even if several starts of a supervisor wrote it.
#include "farm/supervisor/decision_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rodeo::farm {
namespace {

using dispatch::Verdict;

struct Decisions : testing::Test {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("decisions-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name());
  ~Decisions() override { std::filesystem::remove(path); }
};

TEST_F(Decisions, EachEventCountsOnceByItsFirstDecision) {
  for (int life = 0; life < 2; ++life) {
    DecisionFile file(path);
    file.open();
    file.add(1, Verdict::accepted);
    file.add(2, Verdict::rejected);
    file.add(3, life == 0 ? Verdict::debug : Verdict::accepted);
    file.add(std::uint64_t{1} << 40, Verdict::lost);
    ASSERT_TRUE(file.flush());
  }
  const auto decided = read_decisions(path);
  ASSERT_TRUE(decided) << decided.error().what;
  EXPECT_EQ(decided->accepted, 1U);
  EXPECT_EQ(decided->rejected, 1U);
  EXPECT_EQ(decided->debug, 1U);
  EXPECT_EQ(decided->lost, 1U);
  EXPECT_EQ(decided->all(), 4U);
}

TEST_F(Decisions, ARecordThatAKilledSupervisorLeftHalfIsNone) {
  {
    DecisionFile file(path);
    file.open();
    file.add(1, Verdict::accepted);
    ASSERT_TRUE(file.flush());
  }
  std::ofstream(path, std::ios::app) << "1234";
  const auto decided = read_decisions(path);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->all(), 1U);
}

TEST_F(Decisions, WhatNoSupervisorWritesIsRefused) {
  std::ofstream(path) << std::string(9, '\x7f');
  const auto decided = read_decisions(path);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().code, "farm.decisions");
  EXPECT_FALSE(read_decisions(path.string() + "-none"));
}

}  // namespace
}  // namespace rodeo::farm
