#include "cli/codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "cli/texts.h"
#include "cli/vocabulary.h"

using namespace rodeo::cli;

namespace {

/// Error codes in the sources: a literal "room.reason" as the first member of an Error, or as the first argument of a
/// helper.
std::set<std::string> codes_in_sources() {
  std::set<std::string> codes;
  const std::regex use(
      R"re((?:Error|[a-z_]*(?:error|fail|failed|failure|refuse|refused|complain|code))\s*[({=]+\s*\{?\s*"([a-z]+\.[a-z0-9_]+)")re");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SOURCE_DIRECTORY "/src")) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::sregex_iterator match(text.begin(), text.end(), use), end; match != end; ++match) codes.insert((*match)[1]);
  }
  return codes;
}

}  // namespace

TEST(ErrorCodes, EveryCodeThatTheSourcesUseIsExplained) {
  const std::set<std::string> used = codes_in_sources();
  EXPECT_TRUE(used.contains("base.plugin_abi"));
  EXPECT_TRUE(used.contains("base.bad_size"));
  for (const std::string& code : used) {
    EXPECT_NE(find_error_code(code), nullptr) << code << " has no entry in src/cli/explain/error_codes.md";
  }
}

TEST(ErrorCodes, AreSortedAndEndInAStatusOfTheirOwn) {
  EXPECT_TRUE(std::ranges::is_sorted(error_codes(), std::ranges::less_equal{}, &ErrorCode::code)) << "or one is double";
  for (const Word& entry : words_of(built_in_text("error_codes.md"))) {
    EXPECT_TRUE(std::regex_match(entry.unit, std::regex("exit [1-7]"))) << entry.word << ": " << entry.unit;
    EXPECT_TRUE(entry.cause.empty() && entry.next.empty()) << entry.word;
  }
}

TEST(ErrorCodes, ACodeBeginsWithItsRoomOrWithWhatIsWrong) {
  const std::set<std::string> subjects{"bench", "config", "control", "data", "demo", "file", "monitor"};
  for (const ErrorCode& entry : error_codes()) {
    const std::string first(entry.code.substr(0, entry.code.find('.')));
    EXPECT_TRUE(subjects.contains(first) || std::filesystem::is_directory(SOURCE_DIRECTORY "/src/" + first)) << entry.code;
  }
}

TEST(ErrorCodes, EveryExplanationIsAWholeSentence) {
  for (const ErrorCode& entry : error_codes()) {
    EXPECT_TRUE(entry.text.ends_with('.')) << entry.code;
    EXPECT_GT(entry.text.size(), 30u) << entry.code;
  }
}

TEST(ErrorCodes, ACodeDecidesTheExitStatus) {
  EXPECT_EQ(exit_code_of("base.plugin_abi"), ExitCode::invalid_configuration);
  EXPECT_EQ(exit_code_of("cli.usage"), ExitCode::usage);
  EXPECT_EQ(exit_code_of("nobody.knows"), ExitCode::failed);
}
