// `rodeo completion`: the scripts that shells load, and the verb that these scripts call while the user types.
#include <fmt/format.h>

#include "cli/completion.h"

#include <string_view>

#include "base/log.h"
#include "cli/completion_values.h"
#include "cli/texts.h"
#include "cli/verbs.h"

namespace rodeo::cli {
namespace {

/// Replaces tabs and line ends, which separate the fields of an answer.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

void print_answer(const Completion& completion) {
  std::string text;
  for (const auto& [holds, word] : {std::pair(completion.files, "files"), std::pair(completion.directories, "directories"),
                                    std::pair(completion.no_space, "nospace")}) {
    if (holds) text.append(text.empty() ? "" : " ").append(word);
  }
  text += '\n';
  for (const Candidate& one : completion.candidates) text += one_line(one.text) + "\t" + one_line(one.help) + "\n";
  print(text);
}

void add_script(Command& completion, const char* shell, const char* help, const char* example, const char* says) {
  Command& verb = completion.verb(shell, help);
  verb.example(example, says);
  verb.run([file = std::string("rodeo.") + shell]() -> Result<ExitCode> {
    print(built_in_text(file));
    return ExitCode::done;
  });
}

}  // namespace

void add_completion(Command& root) {
  Command& completion = root.verb("completion", "Completes verbs, options and values in bash, zsh and fish");
  completion.paragraph(
      "Packages install the scripts. A script contains no words: it asks the installed command, which lists what may come "
      "next.");
  add_script(completion, "bash", "Prints the script for bash", "source <(rodeo completion bash)",
             "in this shell; put it into ~/.bashrc for every shell");
  add_script(completion, "zsh", "Prints the script for zsh", "source <(rodeo completion zsh)",
             "put it into ~/.zshrc, after compinit");
  add_script(completion, "fish", "Prints the script for fish",
             "rodeo completion fish > ~/.config/fish/completions/rodeo.fish", "works in every new shell");

  struct Options {
    std::vector<std::string> words;
  };
  auto options = std::make_shared<Options>();
  Command& answer = completion.verb("answer", "Lists what may come next on a command line; the scripts call it");
  answer.example("rodeo completion answer -- card li", "list")
      .example("rodeo completion answer -- card status --id ''", "the addresses of this host's cards")
      .paragraph(
          "The first line lists other possibilities: files, directories; nospace: no candidate is complete. Each further "
          "line is a candidate, a tab, and its description. The command prints nothing on stderr and never waits.");
  answer.option("WORD", options->words, "The words after `rodeo` up to the cursor, after a --; the last may be empty")
      .may_be_empty()
      .value_name("WORD");
  answer.run([options, &root]() -> Result<ExitCode> {
    base::set_log_level(base::LogLevel::off);
    const std::vector<std::string>& words = options->words;
    if (!words.empty()) root.describe(words[words.front() == "help" && words.size() > 1 ? 1 : 0]);
    print_answer(complete(root, options->words, &completion_values));
    return ExitCode::done;
  });
}

}  // namespace rodeo::cli
