// Finds what may be typed next on a command line, from the tree of verbs, for `rodeo completion answer`. The caller supplies
// values that depend on the host or on the configuration.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace rodeo::cli {

struct Candidate {
  std::string text;  ///< the whole word as typed, including `--name=`
  std::string help;
};

/// The kind of an option's or argument's value, if it is known in advance.
enum class ValueKind : std::uint8_t { unknown, choice, file, directory, card, key, name };

struct Completion {
  std::vector<Candidate> candidates;
  bool files = false;        ///< names of files are possible, too; the shell completes them
  bool directories = false;  ///< names of directories are possible, too
  bool no_space = false;     ///< every candidate needs more text: `key=`
};

/// Values of a kind that depend on more than the tree: cards, keys, names for `rodeo explain`. `typed` is the typed
/// beginning of the value.
using ValueSource = std::function<std::vector<Candidate>(ValueKind kind, std::string_view typed)>;

/// The kind of an option's value, or of a positional argument. `path` is that of the verb: "rodeo card list".
ValueKind value_kind(std::string_view path, const Option& option);

/// Completes the last of `words`. They begin after the name of the program and end at the cursor; the last word may be
/// empty.
Completion complete(const Command& root, std::span<const std::string> words, const ValueSource& values);

}  // namespace rodeo::cli
