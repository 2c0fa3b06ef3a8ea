// The command line as a tree of verbs: nouns add themselves, declare options, and name the function to run. Help starts with
// examples.
// Only command.cpp includes the option library, so verbs compile fast.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/codes.h"
#include "cli/output.h"

namespace rodeo::cli {

/// The action of a verb. The error it returns, or the SetupError it throws, is printed and decides the exit status.
using Action = std::function<Result<ExitCode>()>;

/// One option or positional argument of a verb.
class Option {
 public:
  Option& required() {
    required_ = true;
    return *this;
  }
  /// Allows an empty value, which otherwise is an error.
  Option& may_be_empty() {
    may_be_empty_ = true;
    return *this;
  }
  /// The name of the value in --help: "HZ" in `--rate HZ`.
  Option& value_name(std::string name) {
    value_name_ = std::move(name);
    return *this;
  }

  /// The option's earlier name. It still works, with a notice on stderr, and no help shows it: for one minor version.
  Option& renamed_from(std::string name) {
    old_name_ = std::move(name);
    return *this;
  }

  // Used by help, completion and manual pages.
  std::vector<std::string> names() const;  ///< "-o", "--output"; a name without dashes is a positional argument
  bool positional() const { return !names_.starts_with('-'); }
  const std::string& help() const { return help_; }
  const std::string& value_name() const { return value_name_; }
  const std::string& fallback() const { return fallback_; }  ///< the default as a user types it; empty: none
  bool is_flag() const { return flag_; }
  bool is_many() const { return many_; }
  bool is_required() const { return required_; }
  /// With a value name like "[=FRACTION]", an option stands alone (its value is then empty) or as --name=VALUE.
  bool may_stand_alone() const { return value_name_.starts_with("[="); }

 private:
  friend class Command;
  friend class Parser;

  std::string names_;  ///< "-o,--output", or "FILE" for a positional argument
  std::string old_name_;
  std::string help_;
  std::string value_name_ = "VALUE";
  std::string fallback_;
  bool flag_ = false;
  bool many_ = false;
  bool required_ = false;
  bool may_be_empty_ = false;
  std::function<Result<void>(std::string_view)> assign_;
};

/// A verb, or a noun with verbs below it. References to option values must stay valid until the action has run: keep them in
/// a std::shared_ptr<Options> that the action captures.
class Command {
 public:
  Command(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

  /// Adds a verb below this one.
  Command& verb(std::string name, std::string help);

  /// One line of the examples that --help starts with.
  Command& example(std::string command, std::string says);
  /// A paragraph of --help, below the options.
  Command& paragraph(std::string text);

  /// Names: "-n,--number" for options, "FILE" (no dashes) for positional arguments. T: std::string, double, int, unsigned,
  /// std::int64_t, std::uint64_t, std::optional of one of these (to see whether it was given), or std::vector of one
  /// (repeatable). The value at the time of the declaration is shown as the default.
  template <typename T>
  Option& option(std::string names, T& value, std::string help);
  Option& flag(std::string names, bool& value, std::string help);
  /// One of `choices`.
  Option& choice(std::string names, std::string& value, const std::vector<std::string>& choices, std::string help);

  // Quantities with units, as base/units.h reads them. T: the type named, or std::optional of it.
  template <typename T>
  Option& size(std::string names, T& bytes, std::string help);  ///< std::uint64_t
  template <typename T>
  Option& rate(std::string names, T& rate_hz, std::string help);  ///< double
  template <typename T>
  Option& bit_rate(std::string names, T& bits_per_second, std::string help);  ///< double
  template <typename T>
  Option& duration(std::string names, T& duration, std::string help);  ///< std::chrono::nanoseconds

  /// `-o table|json|csv`. Pass other names if --output has another meaning for the verb.
  Option& output(OutputFormat& format, std::string names = "-o,--output");
  /// `--json FILE`; "-" is stdout. See write_json(). Call it after output(); without output(), `-o json` means `--json -`.
  Option& json_file(std::string& file);

  /// Another program reads all arguments after this verb, including `--help`. Its verbs and options here serve completion
  /// and manual pages only.
  Command& passes_on(std::vector<std::string>& rest);
  /// Describes an option or positional argument of a verb below one that passes_on(). This program does not read it.
  Option& described(std::string names, std::string value_name, std::string help, bool many = false, bool flag = false);
  /// Sets a function that adds a description of this verb. It is called at most once, by describe().
  Command& described_by(std::function<void(Command&)> describe);

  /// Sets the action of this verb. A noun without an action requires a verb.
  Command& run(Action action);

  // Used by help, completion and manual pages; in the order of declaration.
  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  const std::vector<std::pair<std::string, std::string>>& examples() const { return examples_; }
  const std::vector<std::string>& paragraphs() const { return paragraphs_; }
  const std::vector<std::unique_ptr<Option>>& options() const { return options_; }
  const std::vector<std::unique_ptr<Command>>& verbs() const { return verbs_; }
  bool has_action() const { return action_ != nullptr; }
  /// Calls the functions of described_by(), here and below. Not thread-safe.
  void describe();
  /// describe() of the verb with this name only; nothing if there is none.
  void describe(std::string_view name);

 private:
  friend class Parser;

  Option& add(std::string names, std::string help, std::function<Result<void>(std::string_view)> assign);

  std::string name_;
  std::string help_;
  std::vector<std::pair<std::string, std::string>> examples_;
  std::vector<std::string> paragraphs_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<Command>> verbs_;
  Action action_;
  std::vector<std::string>* rest_ = nullptr;
  std::function<void(Command&)> describe_;
};

/// Walks the verbs, reads the options, runs the action; prints help and errors. Returns the exit status.
int run_command(const Command& root, int argc, const char* const* argv);

/// The options of every verb, in the form of declared ones: --log LEVEL and --help.
const std::vector<std::unique_ptr<Option>>& common_options();
/// The meaning of the exit statuses, in one line.
std::string_view exit_status_text();

/// An invalid command line (cli.usage) and an invalid value (cli.bad_value): what is wrong, and what to write instead.
std::unexpected<Error> usage_error(std::string what, std::string next);
std::unexpected<Error> value_error(std::string what, std::string next);
/// Checks that `--seconds`, if given, is more than 0 and at most 1e9. `next`: what to do instead. Error cli.bad_value.
Result<void> check_seconds(const std::optional<double>& seconds, std::string next);

/// Prints an error in the documented form on stderr.
void print_error(const Error& error);

/// Prints all errors, usually of a configuration. The exit status is that of the first.
Result<ExitCode> report_errors(const std::vector<Error>& errors);

namespace detail {

Result<void> read(std::string_view text, std::string& value);
Result<void> read(std::string_view text, double& value);
Result<void> read(std::string_view text, std::int64_t& value);
Result<void> read(std::string_view text, std::uint64_t& value);
Result<void> read(std::string_view text, int& value);
Result<void> read(std::string_view text, unsigned& value);
template <typename T>
Result<void> read(std::string_view text, std::optional<T>& value) {
  T one{};
  RODEO_TRY(read(text, one));
  value = std::move(one);
  return {};
}
template <typename T>
Result<void> read(std::string_view text, std::vector<T>& values) {
  T one{};
  RODEO_TRY(read(text, one));
  values.push_back(std::move(one));
  return {};
}

std::string show(const std::string& value);
std::string show(double value);
std::string show(std::int64_t value);
std::string show(std::uint64_t value);
std::string show(int value);
std::string show(unsigned value);
template <typename T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : std::string{};
}
template <typename T>
std::string show(const std::vector<T>&) {
  return {};
}

template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// Value names for --help: "N", "TEXT".
template <typename T>
std::string value_name() {
  if constexpr (std::is_same_v<T, std::string> || is_vector<T> || std::is_same_v<T, std::optional<std::string>>) {
    return "TEXT";
  } else {
    return "N";
  }
}

Result<std::uint64_t> read_size(std::string_view text);
Result<double> read_rate(std::string_view text);
Result<double> read_bit_rate(std::string_view text);
Result<std::chrono::nanoseconds> read_duration(std::string_view text);
std::string show_size(std::uint64_t bytes);
std::string show_rate(double rate_hz);
std::string show_bit_rate(double bits_per_second);
std::string show_duration(std::chrono::nanoseconds duration);

template <typename T, typename Reader>
auto quantity_reader(T& value, Reader reader) {
  return [&value, reader](std::string_view text) -> Result<void> {
    value = RODEO_TRY(reader(text));
    return {};
  };
}

template <typename T, typename Show>
std::string show_quantity(const T& value, Show show) {
  if constexpr (requires { value.has_value(); }) {
    return value.has_value() ? show(*value) : std::string{};
  } else {
    return show(value);
  }
}

}  // namespace detail

template <typename T>
Option& Command::option(std::string names, T& value, std::string help) {
  Option& added =
      add(std::move(names), std::move(help), [&value](std::string_view text) { return detail::read(text, value); });
  added.many_ = detail::is_vector<T>;
  added.value_name_ = detail::value_name<T>();
  added.fallback_ = detail::show(value);
  return added;
}

template <typename T>
Option& Command::size(std::string names, T& bytes, std::string help) {
  Option& added = add(std::move(names), std::move(help), detail::quantity_reader(bytes, &detail::read_size));
  added.fallback_ = detail::show_quantity(bytes, &detail::show_size);
  return added.value_name("SIZE");
}

template <typename T>
Option& Command::rate(std::string names, T& rate_hz, std::string help) {
  Option& added = add(std::move(names), std::move(help), detail::quantity_reader(rate_hz, &detail::read_rate));
  added.fallback_ = detail::show_quantity(rate_hz, &detail::show_rate);
  return added.value_name("RATE");
}

template <typename T>
Option& Command::bit_rate(std::string names, T& bits_per_second, std::string help) {
  Option& added = add(std::move(names), std::move(help), detail::quantity_reader(bits_per_second, &detail::read_bit_rate));
  added.fallback_ = detail::show_quantity(bits_per_second, &detail::show_bit_rate);
  return added.value_name("BITRATE");
}

template <typename T>
Option& Command::duration(std::string names, T& duration, std::string help) {
  Option& added = add(std::move(names), std::move(help), detail::quantity_reader(duration, &detail::read_duration));
  added.fallback_ = detail::show_quantity(duration, &detail::show_duration);
  return added.value_name("TIME");
}

}  // namespace rodeo::cli
