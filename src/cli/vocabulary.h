// The words that reports, metrics and views use for what they count and judge: the texts behind `rodeo explain WORD`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rodeo::cli {

struct Word {
  std::string word;   ///< "late", "INCOMPLETE"
  std::string kind;   ///< what it is, and of whom: "counter, chunks lost"
  std::string unit;   ///< of a counter
  std::string text;   ///< what it means
  std::string cause;  ///< what usually lies behind it; empty for what is no more than a number
  std::string next;   ///< what to do about it, likewise
};

/// Reads a file of explain/: a section `## KIND` has words, `### WORD (UNIT)`; the paragraphs below one are its text, what begins with
/// `Usually: ` its cause, and what begins with `What to do: ` that.
std::vector<Word> words_of(std::string_view markdown);

/// Every counter that a part of Rodeo counts by name, every condition of a run, every reason of `limited_by`. One word may stand for several
/// things. Counters of plug-ins are theirs.
std::vector<Word> vocabulary();

}  // namespace rodeo::cli
