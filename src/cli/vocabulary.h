// The words that reports, metrics and views use for what they count and judge: the texts behind `rodeo explain WORD`.
#pragma once

#include <string_view>
#include <vector>

namespace rodeo::cli {

struct Word {
  std::string_view word;  ///< "late", "INCOMPLETE"
  std::string_view kind;  ///< what it is, and of whom: "counter, chunks lost"
  std::string_view unit;  ///< of a counter
  std::string_view text;
  std::string_view cause = {};  ///< what usually lies behind it; of what is no more than a number, empty
  std::string_view next = {};   ///< what to do about it, likewise
};

/// Every counter that a part of Rodeo counts by name, every condition of a run, every reason of `limited_by`. One word may stand for several
/// things. Counters of plug-ins are theirs.
std::vector<Word> vocabulary();

}  // namespace rodeo::cli
