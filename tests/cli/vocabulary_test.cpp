// Every word of the reports can be explained.
#include "cli/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace rodeo::cli {
namespace {

/// Names of counters that parts of a readout and of an emulator give away: {"name", value} in a list of them, or add("name", value).
std::set<std::string> counters_in_sources() {
  std::set<std::string> names;
  const std::regex use(R"re((?:\badd\(|\{)"([a-z0-9_]+)",(?! ?(?:"|help|\{|\w+::|true|false))[^"]*?[)}])re");
  for (const char* room : {"/src/input", "/src/readout/consumer", "/src/emulator"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(SOURCE_DIRECTORY) + room)) {
      if (entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      for (std::sregex_iterator match(text.begin(), text.end(), use), end; match != end; ++match) names.insert((*match)[1]);
    }
  }
  return names;
}

bool known(const std::string& name) {
  return std::ranges::any_of(vocabulary(), [&](const Word& word) { return word.word == name; });
}

TEST(Vocabulary, EveryCounterThatTheSourcesNameIsExplained) {
  const std::set<std::string> used = counters_in_sources();
  for (const char* found : {"samples_taken", "mismatches", "card_lost_packets", "frames_dropped", "exceptions"})
    EXPECT_TRUE(used.contains(found)) << found << ": the search has lost its way";
  for (const std::string& name : used) EXPECT_TRUE(known(name)) << name << " has no entry in src/cli/vocabulary.cpp";
}

TEST(Vocabulary, ConditionsAndStagesAreExplained) {
  for (const char* word : {"GOOD", "INCOMPLETE", "WRONG", "ABORTED", "nothing", "builder", "input"})
    EXPECT_TRUE(known(word)) << word;
}

TEST(Vocabulary, EveryWordHasAText) {
  for (const Word& word : vocabulary()) {
    EXPECT_FALSE(word.kind.empty()) << word.word;
    EXPECT_GT(word.text.size(), 5u) << word.word;
  }
}

}  // namespace
}  // namespace rodeo::cli
