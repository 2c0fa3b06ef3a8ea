// Errors of set-up: one clear message that says what, where, why and what to do next.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace rodeo {

/// An expected failure. `code` is "room.reason" (explained by `rodeo explain`), `what` one sentence with values in it, `where`
/// file:line:column or the object concerned, `next` what the user can do; `where` and `next` may be empty.
struct Error {
  std::string code;
  std::string what;
  std::string where = {};
  std::string next = {};

  /// The same error seen from one level up: "cannot open run.toml: permission denied".
  Error within(std::string_view context) const { return Error{code, std::string(context) + ": " + what, where, next}; }

  /// "error[code]: where: what" and, on a line of its own, what to do.
  std::string message() const;
};

template <typename T>
using Result = std::expected<T, Error>;

/// For set-up code without a sensible return path; ends in Error::message() on the terminal.
class SetupError : public std::exception {
 public:
  explicit SetupError(Error error) : error_(std::move(error)), message_(error_.message()) {}
  const Error& error() const noexcept { return error_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Error error_;
  std::string message_;
};

}  // namespace rodeo
