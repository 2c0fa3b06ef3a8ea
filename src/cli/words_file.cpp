// Reads a file of explain/: sections, words, paragraphs.
#include <algorithm>
#include <utility>

#include "cli/vocabulary.h"

namespace rodeo::cli {

std::vector<Word> words_of(std::string_view markdown) {
  std::vector<Word> words;
  std::string_view kind;
  std::string* paragraph = nullptr;
  while (!markdown.empty()) {
    std::string_view line = markdown.substr(0, markdown.find('\n'));
    markdown.remove_prefix(std::min(line.size() + 1, markdown.size()));
    if (line.starts_with("## ")) {
      kind = line.substr(3);
    } else if (line.starts_with("### ")) {
      line.remove_prefix(4);
      const std::size_t unit = std::min(line.find(" ("), line.size());
      Word& word = words.emplace_back();
      word.word = line.substr(0, unit);
      word.kind = kind;
      if (unit < line.size()) word.unit = line.substr(unit + 2, line.size() - unit - 3);
      paragraph = &word.text;
    } else if (paragraph != nullptr && !line.empty()) {
      for (const auto& [head, part] : {std::pair("Usually: ", &Word::cause), {"What to do: ", &Word::next}}) {
        if (!line.starts_with(head)) continue;
        paragraph = &(words.back().*part);
        line.remove_prefix(std::string_view(head).size());
      }
      paragraph->append(paragraph->empty() ? "" : " ").append(line);
    }
  }
  return words;
}

}  // namespace rodeo::cli
