// What may be typed next on a command line, from the tree of verbs: what `rodeo completion answer` tells the shells. It decides; values that
// depend on the host or on the configuration are given to it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace rodeo::cli {

struct Candidate {
  std::string text;  ///< the whole word as it would be typed, `--name=` included
  std::string help;
};

/// What the value of an option or argument is, as far as somebody could know it beforehand.
enum class ValueKind : std::uint8_t { unknown, choice, file, directory, card, key, name };

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;        ///< names of files are as good: the shell knows them
  bool directories = false;  ///< names of directories
  bool no_space = false;     ///< every candidate wants something behind it: `key=`
};

/// Values of a kind that depend on more than the tree: cards, keys, names for `rodeo explain`. `typed` is what stands there of the value.
using ValueSource = std::function<std::vector<Candidate>(ValueKind kind, std::string_view typed)>;

/// Of an option's value, or of a positional argument. `path` is of the verb: "rodeo card list".
ValueKind value_kind(std::string_view path, const Option& option);

/// Completes the last of `words`, which begin behind the name of the program and end at the cursor; a last word may be empty.
Completion complete(const Command& root, std::span<const std::string> words, const ValueSource& values);

}  // namespace rodeo::cli
