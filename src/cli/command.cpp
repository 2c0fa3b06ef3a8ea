#include "cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/fd_socket.h"
#include "base/log.h"
#include "base/log_file.h"
#include "base/nearest.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cli/wrapped.h"

namespace rodeo::cli {

namespace {

constexpr std::string_view kExitCodes =
    "0 done, 1 failed, 2 usage, 3 invalid configuration, 4 unreachable or timed out, 5 refused (state or lock), "
    "6 partial (one of several failed, or the loss exceeds its limit), 7 data did not verify";

// The description follows on the same line, unless the option is longer than this.
constexpr std::size_t kLongestLeft = 30;

Error bad_value(std::string_view text, std::string_view expected) {
  return {"cli.bad_value", fmt::format("\"{}\" is not {}", text, expected)};
}

template <typename T>
Result<void> read_number(std::string_view text, T& value, std::string_view expected) {
  T number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::unexpected(bad_value(text, expected));
  value = number;
  return {};
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> list;
  std::size_t from = 0;
  while (from <= names.size()) {
    const std::size_t comma = std::min(names.find(',', from), names.size());
    list.push_back(names.substr(from, comma - from));
    from = comma + 1;
  }
  return list;
}

}  // namespace

namespace detail {

Result<void> read(std::string_view text, std::string& value) {
  value = text;
  return {};
}
Result<void> read(std::string_view text, double& value) {
  double number = 0;
  RODEO_TRY(read_number(text, number, "a number"));
  if (!std::isfinite(number)) return std::unexpected(bad_value(text, "a finite number"));
  value = number;
  return {};
}
Result<void> read(std::string_view text, std::int64_t& value) { return read_number(text, value, "a whole number"); }
Result<void> read(std::string_view text, std::uint64_t& value) {
  return read_number(text, value, "a whole number, zero or more");
}
Result<void> read(std::string_view text, int& value) { return read_number(text, value, "a whole number"); }
Result<void> read(std::string_view text, unsigned& value) {
  return read_number(text, value, "a whole number, zero or more");
}

std::string show(const std::string& value) { return value; }
std::string show(double value) { return fmt::format("{}", value); }
std::string show(std::int64_t value) { return fmt::format("{}", value); }
std::string show(std::uint64_t value) { return fmt::format("{}", value); }
std::string show(int value) { return fmt::format("{}", value); }
std::string show(unsigned value) { return fmt::format("{}", value); }

Result<std::uint64_t> read_size(std::string_view text) { return base::parse_size(text); }
Result<double> read_rate(std::string_view text) { return base::parse_rate_hz(text); }
Result<double> read_bit_rate(std::string_view text) { return base::parse_bits_per_second(text); }
Result<std::chrono::nanoseconds> read_duration(std::string_view text) { return base::parse_duration(text); }

namespace {
/// The value as a user types it: without the blank before the unit.
std::string typed(std::string text) {
  std::erase(text, ' ');
  return text;
}
}  // namespace

std::string show_size(std::uint64_t bytes) { return typed(base::format_size(bytes)); }
std::string show_rate(double rate_hz) { return typed(base::format_quantity(rate_hz, "Hz")); }
std::string show_bit_rate(double bits_per_second) { return typed(base::format_quantity(bits_per_second, "bps")); }
std::string show_duration(std::chrono::nanoseconds duration) { return typed(base::format_duration(duration)); }

}  // namespace detail

Command& Command::verb(std::string name, std::string help) {
  return *verbs_.emplace_back(std::make_unique<Command>(std::move(name), std::move(help)));
}

Command& Command::example(std::string command, std::string says) {
  examples_.emplace_back(std::move(command), std::move(says));
  return *this;
}

Command& Command::paragraph(std::string text) {
  paragraphs_.push_back(std::move(text));
  return *this;
}

Command& Command::run(Action action) {
  action_ = std::move(action);
  return *this;
}

Option& Command::add(std::string names, std::string help, std::function<Result<void>(std::string_view)> assign) {
  Option& added = *options_.emplace_back(std::make_unique<Option>());
  added.names_ = std::move(names);
  added.help_ = std::move(help);
  added.assign_ = std::move(assign);
  return added;
}

Option& Command::flag(std::string names, bool& value, std::string help) {
  Option& added = add(std::move(names), std::move(help), [&value](std::string_view) -> Result<void> {
    value = true;
    return {};
  });
  added.flag_ = true;
  return added;
}

Option& Command::choice(std::string names, std::string& value, const std::vector<std::string>& choices, std::string help) {
  std::string list;
  for (const std::string& choice : choices) list.append(list.empty() ? "" : "|").append(choice);
  Option& added = add(std::move(names), std::move(help), [&value, choices, list](std::string_view text) -> Result<void> {
    const auto found = std::ranges::find_if(choices, [&](const std::string& one) { return equal_in_any_case(one, text); });
    if (found != choices.end()) {
      value = *found;
      return {};
    }
    Error error = bad_value(text, "one of " + list);
    error.next = base::did_you_mean(text, choices);
    return std::unexpected(std::move(error));
  });
  added.fallback_ = value;
  return added.value_name(list);
}

Option& Command::output(OutputFormat& format, std::string names) {
  Option& added = add(std::move(names), "How data is printed", [&format](std::string_view text) -> Result<void> {
    for (const auto& [name, one] :
         {std::pair{"table", OutputFormat::table}, {"json", OutputFormat::json}, {"csv", OutputFormat::csv}}) {
      if (!equal_in_any_case(name, text)) continue;
      format = one;
      return {};
    }
    return std::unexpected(bad_value(text, "one of table, json, csv"));
  });
  added.fallback_ = "table";
  return added.value_name("table|json|csv");
}

Option& Command::json_file(std::string& file) {
  // Verbs that print text for people have no table; `-o json` still works as elsewhere.
  const bool has_output = std::ranges::any_of(options_, [](const auto& one) { return one->names_.starts_with("-o"); });
  if (!has_output) {
    add("-o,--output", "json: the result on stdout, as with --json -", [&file](std::string_view text) -> Result<void> {
      if (text != "table" && text != "json") return std::unexpected(bad_value(text, "one of table, json"));
      if (text == "json") file = "-";
      return {};
    }).value_name("table|json");
  }
  // Check the file now: the result may take an hour.
  return add("--json", "Write the result as JSON to FILE; - is stdout",
             [&file](std::string_view text) -> Result<void> {
               file = text;
               return check_json_target(file);
             })
      .value_name("FILE");
}

Command& Command::passes_on(std::vector<std::string>& rest) {
  rest_ = &rest;
  return *this;
}

Option& Command::described(std::string names, std::string value_name, std::string help, bool many, bool flag) {
  Option& added = add(std::move(names), std::move(help), nullptr);
  added.value_name_ = std::move(value_name);
  added.many_ = many;
  added.flag_ = flag;
  return added;
}

Command& Command::described_by(std::function<void(Command&)> describe) {
  describe_ = std::move(describe);
  return *this;
}

void Command::describe() {
  if (const auto describe = std::exchange(describe_, nullptr); describe) describe(*this);
  for (const auto& verb : verbs_) verb->describe();
}

void Command::describe(std::string_view name) {
  for (const auto& verb : verbs_) {
    if (verb->name_ == name) verb->describe();
  }
}

std::vector<std::string> Option::names() const { return split_names(names_); }

const std::vector<std::unique_ptr<Option>>& common_options() {
  static const Command holder = [] {
    Command common("", "");
    common.described("--log", "debug|info|warning|error|off", "Log level (default RODEO_LOG, or info)");
    common.described("-h,--help", "", "This text", false, true);
    return common;
  }();
  return holder.options();
}

std::string_view exit_status_text() { return kExitCodes; }

/// Finds the verb of a command line, reads its options with the option library, and writes help.
class Parser {
 public:
  Parser(const Command& root, std::vector<std::string> arguments) : root_(root), arguments_(std::move(arguments)) {}

  int run() {
    const Command* command = &root_;
    path_ = root_.name_;
    understand_what_others_say();
    while (command->rest_ == nullptr) {
      const Command* next = next_verb(*command);
      if (next == nullptr) break;
      command = next;
      path_ += " " + next->name_;
    }
    if (command->rest_ != nullptr) return pass_on(*command);
    if (asked_for_help_ && position_ < arguments_.size()) return complain(missing_verb(*command));
    if (asked_for_help_ || wants_help(*command)) {
      print(help(*command));
      return all_printed() ? 0 : not_printed();
    }
    if (!command->action_) return complain(missing_verb(*command));
    if (const auto read = read_options(*command); !read) return complain(read.error());
    return act(*command);
  }

 private:
  /// `rodeo help NOUN VERB` is `rodeo NOUN VERB --help`, `rodeo --version` is `rodeo version`.
  void understand_what_others_say() {
    if (arguments_.empty()) return;
    if (arguments_.front() == "--version" || arguments_.front() == "-V") arguments_.front() = "version";
    asked_for_help_ = arguments_.front() == "help";
    if (asked_for_help_) position_ = 1;
  }

  /// The verb that the next argument names; consumes it.
  const Command* next_verb(const Command& command) {
    if (position_ == arguments_.size()) return nullptr;
    for (const auto& verb : command.verbs_) {
      if (verb->name_ != arguments_[position_]) continue;
      ++position_;
      return verb.get();
    }
    return nullptr;
  }

  bool wants_help(const Command& command) const {
    for (std::size_t i = position_; i < arguments_.size() && arguments_[i] != "--"; ++i) {
      if (arguments_[i] == "--help" || arguments_[i] == "-h") return true;
    }
    // Users who do not know --help yet try `rodeo data help`.
    return !command.action_ && position_ < arguments_.size() && arguments_[position_] == "help";
  }

  /// Passes `rodeo help NOUN VERB` on as --help to the program that reads the rest.
  int pass_on(const Command& command) const {
    command.rest_->assign(arguments_.begin() + static_cast<std::ptrdiff_t>(position_), arguments_.end());
    if (asked_for_help_) command.rest_->emplace_back("--help");
    return act(command);
  }

  Error missing_verb(const Command& command) const {
    std::vector<std::string> names;
    std::string list;
    for (const auto& verb : command.verbs_) {
      names.push_back(verb->name_);
      list += (list.empty() ? "" : ", ") + verb->name_;
    }
    if (position_ == arguments_.size())
      return {"cli.missing_verb", fmt::format("{}: a verb is missing: {}", path_, list), {}, hint()};
    const std::string& given = arguments_[position_];
    if (given.starts_with('-')) return {"cli.usage", fmt::format("{}: a verb comes before {}", path_, given), {}, hint()};
    std::string next = base::did_you_mean(given, names);
    next = next.empty() ? fmt::format("the verbs are: {}    {}", list, hint()) : next + "    " + hint();
    return {"cli.unknown_verb", fmt::format("{}: there is no verb `{}`", path_, given), {}, std::move(next)};
  }

  Result<void> read_options(const Command& command) {
    CLI::App app;
    app.set_help_flag();
    app.allow_windows_style_options(false);
    std::string level;
    app.add_option("--log", level);
    std::vector<std::vector<std::string>> values(command.options_.size());
    std::vector<CLI::Option*> given;
    std::vector<std::string> known = {"--log", "--help"};
    for (std::size_t i = 0; i < command.options_.size(); ++i) {
      const Option& option = *command.options_[i];
      const bool positional = !option.names_.starts_with('-');
      for (std::string& name : split_names(option.names_)) known.push_back(std::move(name));
      const std::string names = option.names_ + (option.old_name_.empty() ? "" : "," + option.old_name_);
      if (option.flag_ || option.may_stand_alone()) {
        CLI::Option* added = app.add_flag(names);
        if (!option.may_stand_alone()) added->disable_flag_override();
        given.push_back(added);
        continue;
      }
      CLI::Option* added = app.add_option(names, values[i]);
      added->required(option.required_)->allow_extra_args(option.many_ && positional);
      added->multi_option_policy(option.many_ ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
      if (!option.many_) added->expected(1);
      given.push_back(added);
    }
    say_new_names(command);
    if (auto empty = value_left_out(known)) return std::unexpected(std::move(*empty));
    try {
      app.parse(std::vector<std::string>(arguments_.rbegin(), arguments_.rend() - static_cast<std::ptrdiff_t>(position_)));
    } catch (const CLI::ExtrasError&) {
      return std::unexpected(unexpected_argument(app, known));
    } catch (const CLI::ParseError& failure) {
      // A mistyped option is the likely reason for a missing one.
      if (!app.remaining().empty()) return std::unexpected(unexpected_argument(app, known));
      return usage_error(fmt::format("{}: {}", path_, failure.what()), hint());
    }
    if (!level.empty()) {
      const auto wanted = base::log_level_of(level, base::LogLevel::off);
      if (wanted == base::LogLevel::off && level != "off") {
        return std::unexpected(bad_value(level, "one of debug, info, warning, error, off").within(path_ + ": --log"));
      }
      base::set_log_level(wanted);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Option& option = *command.options_[i];
      if ((option.flag_ || option.may_stand_alone()) && given[i]->count() > 0) {
        values[i] = {given[i]->results().back()};
        if (values[i].front() == "true") values[i] = {""};  // it stands alone
      }
      for (const std::string& value : values[i]) {
        if (const auto read = read_value(option, value); !read) {
          Error error = read.error().within(fmt::format("{}: {}", path_, name_given(option)));
          error.next += (error.next.empty() ? "" : "    ") + hint();
          error.code = "cli.bad_value";
          return std::unexpected(std::move(error));
        }
      }
    }
    return {};
  }

  /// One line for each option that was given by its earlier name.
  void say_new_names(const Command& command) const {
    for (const auto& option : command.options_) {
      if (option->old_name_.empty()) continue;
      for (std::size_t i = position_; i < arguments_.size() && arguments_[i] != "--"; ++i) {
        if (arguments_[i].substr(0, arguments_[i].find('=')) != option->old_name_) continue;
        say("note: {} is now {}; the old name works until the next minor version\n", option->old_name_,
            split_names(option->names_).back());
        break;
      }
    }
  }

  static Result<void> read_value(const Option& option, const std::string& value) {
    if (value.empty() && !option.may_be_empty_ && !option.flag_ && !option.may_stand_alone())
      return std::unexpected(empty_value());
    const bool sized = option.value_name_ == "SIZE" && option.names_.find("bytes") == std::string::npos;
    return sized && is_bare(value) ? no_unit(value) : option.assign_(value);
  }

  static Error empty_value() { return {"cli.bad_value", "the value is empty"}; }

  /// Refuses `--name=` without a value: the option library would take the next argument as the value.
  std::optional<Error> value_left_out(const std::vector<std::string>& known) const {
    for (std::size_t i = position_; i < arguments_.size() && arguments_[i] != "--"; ++i) {
      const std::string name = arguments_[i].substr(0, arguments_[i].find('='));
      if (arguments_[i] != name + "=" || std::ranges::find(known, name) == known.end()) continue;
      Error error = empty_value().within(fmt::format("{}: {}", path_, name));
      error.next = "give a value after the `=`, or leave out the option    " + hint();
      return error;
    }
    return std::nullopt;
  }

  /// A number other than zero, without a unit.
  static bool is_bare(std::string_view text) {
    return text.find_first_not_of("0123456789.") == std::string_view::npos &&
           text.find_first_of("123456789") != std::string_view::npos;
  }

  /// 5 may mean 5 bytes or 5MB.
  static Result<void> no_unit(const std::string& text) {
    Error error = bad_value(text, "a size: it has no unit");
    error.next = fmt::format("write {0}B, {0}kB or {0}KiB", text);
    return std::unexpected(std::move(error));
  }

  /// The name of the option that the user typed.
  std::string name_given(const Option& option) const {
    const std::vector<std::string> names = split_names(option.names_);
    for (auto argument = arguments_.rbegin(); argument != arguments_.rend(); ++argument) {
      if (const auto name = std::ranges::find(names, argument->substr(0, argument->find('='))); name != names.end())
        return *name;
    }
    return names.back();
  }

  Error unexpected_argument(const CLI::App& app, const std::vector<std::string>& known) const {
    std::string stranger;
    for (const std::string& one : app.remaining()) {
      if (stranger.empty() || (one.starts_with('-') && !stranger.starts_with('-'))) stranger = one;
    }
    const std::string name = stranger.substr(0, stranger.find('='));
    std::string next = name.starts_with('-') ? base::did_you_mean(name, known) : std::string{};
    next += (next.empty() ? "" : "    ") + hint();
    return {"cli.usage",
            fmt::format("{}: {} `{}`", path_, name.starts_with('-') ? "there is no option" : "unexpected argument", name),
            {},
            std::move(next)};
  }

  int act(const Command& command) const {
    try {
      const Result<ExitCode> outcome = command.action_();
      if (!outcome) return complain(outcome.error());
      const int unprinted = all_printed() ? 0 : not_printed();
      return *outcome == ExitCode::done ? unprinted : static_cast<int>(*outcome);
    } catch (const SetupError& failure) {
      return complain(failure.error());
    } catch (const std::exception& failure) {
      return complain({"cli.unexpected", fmt::format("{}: {}", path_, failure.what())});
    }
  }

  static bool all_printed() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }
  int not_printed() const { return complain({"cli.output", "the output could not be written to stdout"}); }

  int complain(const Error& error) const {
    std::fflush(stdout);
    print_error(error);
    return static_cast<int>(exit_code_of(error.code));
  }

  std::string hint() const { return path_ + " --help"; }

  std::string help(const Command& command) const {
    const bool colours = colours_on_stdout();
    const std::size_t columns = columns_on_stdout();
    std::string text;
    if (!command.examples_.empty()) {
      text += styled("Examples", Style::strong, colours) + "\n";
      for (const auto& [line, says] : command.examples_)
        text += "  " + wrapped(line, columns, 6, 2, " \\") + "\n      " + wrapped(says, columns, 6, 6) + "\n";
      text += '\n';
    }
    text += styled("Usage", Style::strong, colours) + "\n  " + wrapped(usage(command), columns, 6, 2) + "\n\n" +
            wrapped(command.help_, columns, 0) + "\n";
    if (!command.verbs_.empty()) {
      text += "\n" + styled("Verbs", Style::strong, colours) + "\n";
      std::size_t widest = 0;
      for (const auto& verb : command.verbs_) widest = std::max(widest, verb->name_.size());
      for (const auto& verb : command.verbs_)
        text += fmt::format("  {:{}}  {}\n", verb->name_, widest, wrapped(verb->help_, columns, widest + 4, widest + 4));
    }
    if (command.action_) text += "\n" + styled("Options", Style::strong, colours) + "\n" + options_help(command, columns);
    for (const std::string& paragraph : command.paragraphs_) text += "\n" + wrapped(paragraph, columns, 0) + "\n";
    return text +
           fmt::format("\n{}\n  {}\n", styled("Exit status", Style::strong, colours), wrapped(kExitCodes, columns, 2, 2));
  }

  std::string usage(const Command& command) const {
    std::string text = path_;
    if (!command.verbs_.empty()) text += command.action_ ? " [VERB]" : " VERB";
    if (command.action_) text += " [options]";
    for (const auto& option : command.options_) {
      if (option->names_.starts_with('-')) continue;
      const std::string name = option->names_ + (option->many_ ? "..." : "");
      text += option->required_ ? " " + name : " [" + name + "]";
    }
    return text;
  }

  static std::string options_help(const Command& command, std::size_t columns) {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const auto& option : command.options_) {
      std::string left;
      for (const std::string& name : split_names(option->names_)) left.append(left.empty() ? "" : ", ").append(name);
      if (option->names_.starts_with("--")) left.insert(0, "    ");
      if (!option->flag_ && option->names_.starts_with('-'))
        left.append(option->may_stand_alone() ? "" : " ").append(option->value_name_);
      std::string right = option->help_;
      if (option->required_) right += " (required)";
      if (!option->fallback_.empty()) right += fmt::format(" (default {})", option->fallback_);
      if (option->many_ && option->names_.starts_with('-')) right += " (may be repeated)";
      lines.emplace_back(std::move(left), std::move(right));
    }
    lines.emplace_back("    --log LEVEL", "Log level: debug, info, warning, error, off (default: RODEO_LOG, or info)");
    lines.emplace_back("-h, --help", "This text");
    std::size_t widest = 0;
    for (const auto& [left, right] : lines) widest = std::max(widest, left.size() > kLongestLeft ? 0 : left.size());
    const std::size_t indent = widest + 4;
    std::string text;
    for (const auto& [left, right] : lines) {
      text += left.size() > kLongestLeft ? "  " + wrapped(left, columns, 6, 2) + "\n" + std::string(indent, ' ')
                                         : fmt::format("  {:{}}  ", left, widest);
      text += wrapped(right, columns, indent, indent) + "\n";
    }
    return text;
  }

  const Command& root_;
  std::vector<std::string> arguments_;
  std::size_t position_ = 0;
  bool asked_for_help_ = false;
  std::string path_;
};

std::unexpected<Error> usage_error(std::string what, std::string next) {
  return std::unexpected(Error{"cli.usage", std::move(what), {}, std::move(next)});
}

std::unexpected<Error> value_error(std::string what, std::string next) {
  return std::unexpected(Error{"cli.bad_value", std::move(what), {}, std::move(next)});
}

Result<void> check_seconds(const std::optional<double>& seconds, std::string next) {
  if (!seconds || (*seconds > 0 && *seconds <= 1e9)) return {};
  return value_error(fmt::format("--seconds {}: expected more than 0 and at most 1e9", *seconds), std::move(next));
}

void print_error(const Error& error) {
  std::string text = base::without_control_characters(error.message());
  if (const std::string word = "error"; text.starts_with(word)) {
    text = styled(word, Style::bad, colours_on_stderr()) + text.substr(word.size());
  }
  say("{}\n", text);
  base::log_to_file({base::LogLevel::error,
                     base::Audience::shift,
                     error.where.empty() ? error.what : error.where + ": " + error.what,
                     {{"code", error.code}, {"next", error.next}}});
  // Every code has an explanation: name the command that shows it.
  if (error.next.empty() && find_error_code(error.code) != nullptr) say("  rodeo explain {} says more\n", error.code);
}

Result<ExitCode> report_errors(const std::vector<Error>& errors) {
  for (const Error& error : errors) print_error(error);
  return errors.empty() ? ExitCode::done : exit_code_of(errors.front().code);
}

int run_command(const Command& root, int argc, const char* const* argv) {
  base::occupy_standard_streams();
  return Parser(root, std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)).run();
}

}  // namespace rodeo::cli
