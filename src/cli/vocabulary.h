// The words of reports, metrics and views for counters and judgements: the texts of `rodeo explain WORD`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rodeo::cli {

struct Word {
  std::string word;   ///< "late", "INCOMPLETE"
  std::string kind;   ///< its kind and owner: "counter, chunks lost"
  std::string unit;   ///< for a counter
  std::string text;   ///< its meaning
  std::string cause;  ///< its usual cause; empty for a mere number
  std::string next;   ///< the remedy; empty if `cause` is
};

/// Reads a file of explain/: a section `## KIND` has words, `### WORD (UNIT)`. The paragraphs below a word are its text; a
/// paragraph with `Usually: ` is its cause, and one with `What to do: ` its remedy.
std::vector<Word> words_of(std::string_view markdown);

/// All named counters of Rodeo, all conditions of a run, all reasons of `limited_by`. A word may have several entries.
/// Counters of plug-ins are not included.
std::vector<Word> vocabulary();

}  // namespace rodeo::cli
