// The file of decisions: 9 bytes each, and no half record after a kill.
#include "farm/supervisor/decision_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rodeo::farm {
namespace {

using dispatch::Verdict;

struct Decisions : testing::Test {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("decisions-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name());
  ~Decisions() override { std::filesystem::remove(path); }

  std::string bytes() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(Decisions, EachIsItsIdAndItsVerdict) {
  for (int life = 0; life < 2; ++life) {
    DecisionFile file(path);
    file.open();
    file.add(1, Verdict::accepted);
    file.add(std::uint64_t{1} << 40, Verdict::lost);
    ASSERT_TRUE(file.flush());
  }
  using namespace std::string_literals;
  const std::string life = "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\3"s;
  EXPECT_EQ(bytes(), life + life);
}

TEST_F(Decisions, ANewSupervisorRemovesARecordThatAKilledOneLeftHalf) {
  const auto add = [&](std::uint64_t id) {
    DecisionFile file(path);
    file.open();
    file.add(id, Verdict::debug);
    ASSERT_TRUE(file.flush());
  };
  add(1);
  std::ofstream(path, std::ios::app) << "1234";
  add(2);
  EXPECT_EQ(bytes().size(), 2 * DecisionFile::kRecordBytes);
  EXPECT_EQ(bytes()[DecisionFile::kRecordBytes], 2);
}

}  // namespace
}  // namespace rodeo::farm
