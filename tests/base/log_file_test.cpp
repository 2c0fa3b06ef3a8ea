#include "base/log_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>

using namespace rodeo::base;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

class LogLines : public testing::Test {
 protected:
  LogLines() { std::filesystem::create_directories(directory_); }
  ~LogLines() override { std::filesystem::remove_all(directory_); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  LogLines(LogLines&&) = delete;
  LogLines& operator=(LogLines&&) = delete;

  static std::vector<std::string> lines_of(const std::filesystem::path& file) {
    std::ifstream stream(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  std::vector<std::string> lines() const { return lines_of(path_); }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("rodeo-log-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::filesystem::path path_ = directory_ / "log.jsonl";
};

LogRecord said(std::string_view message, LogLevel level = LogLevel::info) { return {level, audience_of(level), message}; }

}  // namespace

TEST_F(LogLines, SayWhoWhenAndWhatInJson) {
  LogFile file(path_, "readout-1", {});
  file.write({LogLevel::error, Audience::shift, "a \"card\"\nis gone", {{"code", "card.gone"}}}, 5, 1234);
  file.write(said("quiet"), 6, std::nullopt);
  const std::string pid = std::to_string(::getpid());
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_EQ(lines()[0], R"({"time_ns":5,"level":"error","audience":"operator","process":"readout-1","pid":)" + pid +
                            R"(,"run":1234,"message":"a \"card\"\nis gone","fields":{"code":"card.gone"}})");
  EXPECT_EQ(lines()[1], R"({"time_ns":6,"level":"info","audience":"expert","process":"readout-1","pid":)" + pid +
                            R"(,"message":"quiet"})");
}

TEST_F(LogLines, CanBeReadWhateverBytesAMessageHas) {
  LogFile file(path_, "p", {});
  file.write(said("\xff\xc0\xaf \xed\xa0\x80 \xc3\xa9 \x01"), 1, std::nullopt);
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_NE(lines().at(0).find(R"("message":")" + bad + bad + bad + " " + bad + bad + bad + " \xc3\xa9 \\u0001\""),
            std::string::npos)
      << lines().at(0);
}

TEST_F(LogLines, FoldWhatComesAgainWithinASecond) {
  LogFile file(path_, "p", {});
  for (std::uint64_t i = 0; i < 1000; ++i) file.write(said("link 3 is dark"), i, std::nullopt);
  EXPECT_EQ(lines().size(), 1U);
  file.write(said("link 3 is dark"), kSecond, std::nullopt);
  ASSERT_EQ(lines().size(), 2U);
  EXPECT_NE(lines()[1].find(R"("repeats":999})"), std::string::npos) << lines()[1];
  file.write(said("link 3 is dark"), kSecond + 1, std::nullopt);
  file.write(said("link 3 is there"), kSecond + 2, std::nullopt);
  ASSERT_EQ(lines().size(), 4U);
  EXPECT_NE(lines()[2].find(R"("message":"link 3 is dark","repeats":1})"), std::string::npos) << lines()[2];
  EXPECT_NE(lines()[3].find("is there"), std::string::npos);
}

TEST_F(LogLines, AreFoldedForASecondAlsoWhereTheClockIsSetBack) {
  LogFile file(path_, "p", {});
  file.write(said("link 3 is dark"), 3600 * kSecond, std::nullopt);
  file.write(said("link 3 is dark"), 5 * kSecond, std::nullopt);
  EXPECT_EQ(lines().size(), 2U);
  file.write(said("link 3 is dark"), 5 * kSecond + 1, std::nullopt);
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(LogLines, AreFoldedNoMoreAtTheEnd) {
  {
    LogFile file(path_, "p", {});
    file.write(said("again"), 1, std::nullopt);
    file.write(said("again"), 2, std::nullopt);
    EXPECT_EQ(lines().size(), 1U);
  }
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(LogLines, OfAnotherLevelOrRunAreOtherLines) {
  LogFile file(path_, "p", {});
  file.write(said("x"), 1, 7);
  file.write(said("x", LogLevel::warning), 1, 7);
  file.write(said("x", LogLevel::warning), 1, 8);
  EXPECT_EQ(lines().size(), 3U);
}

TEST_F(LogLines, BeyondTheLimitAreCountedAndTheNextOneTells) {
  LogFile file(path_, "p", {.lines_per_second = 10, .burst_lines = 3});
  for (int i = 0; i < 50; ++i) file.write(said("line " + std::to_string(i)), kSecond, std::nullopt);
  EXPECT_EQ(lines().size(), 3U);
  EXPECT_EQ(file.lost(), 47U);
  file.write(said("later"), 2 * kSecond, std::nullopt);
  ASSERT_EQ(lines().size(), 5U);
  EXPECT_NE(lines()[3].find(R"("fields":{"left_out":"47"})"), std::string::npos) << lines()[3];
}

TEST_F(LogLines, OfALongFileAreInTwoFilesOfBoundedLength) {
  LogFile file(path_, "p", {.longest_bytes = 2000, .lines_per_second = 1e9, .burst_lines = 1e9});
  for (int i = 0; i < 200; ++i) file.write(said("line " + std::to_string(i)), kSecond, std::nullopt);
  EXPECT_LT(std::filesystem::file_size(path_), 2200U);
  EXPECT_LT(std::filesystem::file_size(path_.string() + ".1"), 2200U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 2);
  EXPECT_NE(lines().back().find("line 199"), std::string::npos);
}

TEST_F(LogLines, OfTwoProcessesGoToTheFileThatIsThereNow) {
  constexpr LogFile::Limits kShort{.longest_bytes = 500, .lines_per_second = 1e9, .burst_lines = 1e9};
  LogFile one(path_, "one", kShort);
  LogFile other(path_, "other", kShort);
  for (int i = 0; i < 20; ++i) {
    one.write(said("line " + std::to_string(i)), kSecond, std::nullopt);
    other.write(said("line " + std::to_string(i)), kSecond, std::nullopt);
  }
  one.write(said("the end"), kSecond, std::nullopt);
  other.write(said("the end"), kSecond, std::nullopt);
  std::string all;
  for (const auto& file : {std::filesystem::path(path_.string() + ".1"), path_}) {
    for (const std::string& line : lines_of(file)) all += line;
  }
  EXPECT_NE(all.find(R"("process":"one","pid":)" + std::to_string(::getpid()) + R"(,"message":"the end")"),
            std::string::npos);
  EXPECT_NE(all.find(R"("process":"other","pid":)" + std::to_string(::getpid()) + R"(,"message":"the end")"),
            std::string::npos);
}

TEST_F(LogLines, ThatCannotBeWrittenHoldNobodyUp) {
  LogFile file(directory_ / "no" / "such" / "folder", "p", {});
  file.write(said("x"), 1, std::nullopt);
  EXPECT_EQ(file.lost(), 1U);
}

TEST_F(LogLines, OfManyThreadsAreWhole) {
  LogFile file(path_, "p", {});
  std::vector<std::jthread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < 100; ++i)
        file.write(said("thread " + std::to_string(number) + " line " + std::to_string(i)), kSecond, std::nullopt);
    });
  }
  threads.clear();
  ASSERT_EQ(lines().size(), 400U);
  for (const std::string& line : lines()) EXPECT_TRUE(line.starts_with('{') && line.ends_with("\"}")) << line;
}
