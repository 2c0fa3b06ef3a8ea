// Finds the possible next words: walks the verbs as the command's parser does, and examines the words before the cursor.
#include <algorithm>
#include <ranges>

#include "cli/completion.h"

namespace rodeo::cli {
namespace {

std::vector<std::string_view> choices_of(const Option& option) {
  std::vector<std::string_view> list;
  std::string_view text = option.value_name();
  while (!text.empty()) {
    const std::size_t bar = std::min(text.find('|'), text.size());
    list.push_back(text.substr(0, bar));
    text.remove_prefix(std::min(bar + 1, text.size()));
  }
  return list;
}

/// True for place-holders among choices: KIND in `KIND|FILE`.
bool stands_for_something(std::string_view word) {
  return std::ranges::all_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

/// The state at the cursor.
class Place {
 public:
  Place(const Command& root, std::span<const std::string> words, const ValueSource& values)
      : command_(&root), path_(root.name()), words_(words.first(words.size() - 1)), last_(words.back()), values_(values) {}

  Completion complete() {
    walk();
    if (only_verbs_) {
      add_verbs();
    } else if (awaits_ != nullptr) {
      add_values(*awaits_, last_, {});
    } else if (const std::size_t equals = last_.find('=');
               !ended_ && last_.starts_with("--") && equals != std::string::npos) {
      const Option* option = named(last_.substr(0, equals));
      if (option != nullptr && !option->is_flag())
        add_values(*option, last_.substr(equals + 1), last_.substr(0, equals + 1));
    } else if (!ended_ && last_.starts_with('-')) {
      add_options();
    } else {
      if (may_be_verb_) add_verbs();
      if (const Option* argument = next_argument(); argument != nullptr) add_values(*argument, last_, {});
    }
    found_.no_space = !found_.candidates.empty() && !found_.files &&
                      std::ranges::all_of(found_.candidates, [](const Candidate& one) { return one.text.ends_with('='); });
    return std::move(found_);
  }

 private:
  void walk() {
    std::size_t at = 0;
    // `rodeo help NOUN VERB`
    if (!words_.empty() && words_.front() == "help") {
      only_verbs_ = true;
      at = 1;
    }
    for (; at < words_.size(); ++at) {
      const auto verb = std::ranges::find(command_->verbs(), words_[at], [](const auto& one) { return one->name(); });
      if (verb == command_->verbs().end()) break;
      command_ = verb->get();
      path_ += " " + command_->name();
    }
    may_be_verb_ = at == words_.size();
    for (; at < words_.size(); ++at) read(words_[at]);
  }

  /// Takes one word after the verb.
  void read(const std::string& word) {
    if (awaits_ != nullptr) {
      awaits_ = nullptr;
    } else if (!ended_ && word == "--") {
      ended_ = true;
    } else if (!ended_ && word.starts_with('-') && word.size() > 1) {
      const std::size_t equals = word.find('=');
      const Option* option = named(word.substr(0, equals));
      if (option == nullptr) return;
      given_.push_back(option);
      if (equals == std::string::npos && !option->is_flag() && !option->may_stand_alone()) awaits_ = option;
    } else {
      ++arguments_;
    }
  }

  const Option* named(const std::string& name) const {
    for (const auto* options : {&command_->options(), &common_options()}) {
      for (const auto& option : *options) {
        if (const auto names = option->names(); std::ranges::find(names, name) != names.end()) return option.get();
      }
    }
    return nullptr;
  }

  /// The positional argument at the cursor.
  const Option* next_argument() const {
    std::size_t number = 0;
    for (const auto& option : command_->options()) {
      if (!option->positional()) continue;
      if (number == arguments_ || option->is_many()) return option.get();
      ++number;
    }
    return nullptr;
  }

  void add(std::string text, std::string help) {
    if (text.starts_with(last_)) found_.candidates.push_back({std::move(text), std::move(help)});
  }

  void add_verbs() {
    for (const auto& verb : command_->verbs()) add(verb->name(), verb->help());
  }

  void add_options() {
    for (const auto* options : {&command_->options(), &common_options()}) {
      for (const auto& option : *options) {
        if (option->positional()) continue;
        if (!option->is_many() && std::ranges::find(given_, option.get()) != given_.end()) continue;
        const auto names = option->names();
        // One name for each option: the long one, unless the user has typed a short one.
        const auto name = std::ranges::find_if(names, [&](const std::string& one) { return one.starts_with("--"); });
        if (name != names.end()) add(*name, option->help());
        const bool typed = std::ranges::find(names, last_) != names.end() && !last_.starts_with("--");
        if (typed || name == names.end()) add(names.front(), option->help());
      }
    }
  }

  void add_values(const Option& option, std::string_view typed, std::string_view before) {
    const ValueKind kind = value_kind(path_, option);
    const auto offer = [&](std::string_view text, std::string help) {
      if (text.starts_with(typed)) found_.candidates.push_back({std::string(before).append(text), std::move(help)});
    };
    switch (kind) {
      case ValueKind::unknown: return;
      case ValueKind::file: found_.files = true; return;
      case ValueKind::directory: found_.directories = true; return;
      case ValueKind::choice:
        for (const std::string_view choice : choices_of(option)) {
          if (choice == "FILE") found_.files = true;
          if (!stands_for_something(choice)) offer(choice, {});
        }
        return;
      case ValueKind::card:
      case ValueKind::key:
      case ValueKind::name:
        for (Candidate& one : values_(kind, typed)) offer(one.text, std::move(one.help));
        return;
    }
  }

  const Command* command_;
  std::string path_;
  std::span<const std::string> words_;
  const std::string& last_;
  const ValueSource& values_;

  bool only_verbs_ = false;
  bool may_be_verb_ = false;
  bool ended_ = false;  // after `--`
  const Option* awaits_ = nullptr;
  std::size_t arguments_ = 0;
  std::vector<const Option*> given_;
  Completion found_;
};

}  // namespace

ValueKind value_kind(std::string_view path, const Option& option) {
  const auto names = option.names();
  const auto is = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  const std::string& value = option.value_name();
  const std::string& what = option.positional() ? names.front() : value;
  if (option.is_flag()) return ValueKind::unknown;
  if (value.find('|') != std::string::npos) return ValueKind::choice;
  if (is("--id") && path.starts_with("rodeo card")) return ValueKind::card;
  if (is("--set") && path != "rodeo card config" && path != "rodeo plugin test") return ValueKind::key;
  if (path == "rodeo explain" && option.positional()) return ValueKind::name;
  if (is("--directory")) return ValueKind::directory;
  if (is("--out") || is("--plot")) return ValueKind::file;
  constexpr std::string_view kFiles[] = {"FILE", "FILES", "CONFIG", "RECORDING", "RESULTS", "PATH", "OUT", "LIB", "SYSTEM"};
  constexpr std::string_view kDirectories[] = {"DIR", "DIRECTORY"};
  if (std::ranges::find(kDirectories, what) != std::end(kDirectories)) return ValueKind::directory;
  if (std::ranges::find(kFiles, what) != std::end(kFiles)) return ValueKind::file;
  return ValueKind::unknown;
}

Completion complete(const Command& root, std::span<const std::string> words, const ValueSource& values) {
  static const std::vector<std::string> kNothing{""};
  return Place(root, words.empty() ? std::span(kNothing) : words, values).complete();
}

}  // namespace rodeo::cli
