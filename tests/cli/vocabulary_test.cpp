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

#include "cli/texts.h"

namespace rodeo::cli {
namespace {

/// Counter names in the sources of readout and emulator: {"name", value} in a list, or add("name", value).
std::set<std::string> counters_in_sources() {
  std::set<std::string> names;
  const std::regex use(R"re((?:\badd\(|\{)"([a-z][a-z0-9_]*)",(?! ?(?:"|help|\{|\w+::|true|false))[^"]*?[)}])re");
  for (const char* room : {"/src/input", "/src/readout/consumer", "/src/emulator"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(SOURCE_DIRECTORY) + room)) {
      // A service names the members of its report in the same form.
      if (entry.path().extension() != ".cpp" || entry.path().filename() == "service.cpp") continue;
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
    EXPECT_TRUE(used.contains(found)) << found << ": the search does not work";
  for (const std::string& name : used) EXPECT_TRUE(known(name)) << name << " has no entry in src/cli/explain/words.md";
}

TEST(Vocabulary, ConditionsAndStagesAreExplained) {
  for (const char* word : {"GOOD", "INCOMPLETE", "WRONG", "ABORTED", "nothing", "builder", "input"})
    EXPECT_TRUE(known(word)) << word;
}

TEST(Vocabulary, EveryAdviceIsOnAWordThatSomebodyCounts) {
  const std::vector<Word> all = vocabulary();
  for (const Word& one : words_of(built_in_text("words.md"))) {
    EXPECT_EQ(one.cause.empty(), one.next.empty()) << one.word << ": a cause and a remedy belong together";
    if (!one.text.empty()) continue;
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Word& word) { return word.word == one.word && word.next == one.next; }))
        << one.word << " has a cause, but no counter";
  }
}

TEST(Vocabulary, WhatAFileSaysOfAWordIsReadInParts) {
  const std::vector<Word> words = words_of(
      "# Title\n\nPreface.\n\n## counter of tests\n\n### late (chunks)\n\nCame\nlate.\n\nUsually: slow.\n\nWhat to do: "
      "wait,\nor\n"
      "not.\n\n### a stage\n\nText.");
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].word, "late");
  EXPECT_EQ(words[0].kind, "counter of tests");
  EXPECT_EQ(words[0].unit, "chunks");
  EXPECT_EQ(words[0].text, "Came late.");
  EXPECT_EQ(words[0].cause, "slow.");
  EXPECT_EQ(words[0].next, "wait, or not.");
  EXPECT_EQ(words[1].word, "a stage");
  EXPECT_EQ(words[1].unit, "");
  EXPECT_EQ(words[1].text, "Text.");
}

TEST(Vocabulary, EveryWordHasAText) {
  for (const Word& word : vocabulary()) {
    EXPECT_FALSE(word.kind.empty()) << word.word;
    EXPECT_GT(word.text.size(), 5u) << word.word;
  }
}

}  // namespace
}  // namespace rodeo::cli
