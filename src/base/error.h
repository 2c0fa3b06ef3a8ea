// Errors of set-up: one clear message with what happened, where, why and what to do next.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace rodeo {

/// An expected failure. `code` is "room.reason" (explained by `rodeo explain`), `what` one sentence with values in it,
/// `where` file:line:column or the object concerned, `next` tells the user what to do; `where` and `next` may be empty.
struct Error {
  std::string code;
  std::string what;
  std::string where = {};
  std::string next = {};

  /// The error with the caller's context in front: "cannot open run.toml: permission denied".
  Error within(std::string_view context) const { return Error{code, std::string(context) + ": " + what, where, next}; }

  /// "error[code]: where: what" and, on a line of its own, `next`.
  std::string message() const;
};

template <typename T>
using Result = std::expected<T, Error>;

/// The value of a Result; if it holds an error, the enclosing function returns the error: `auto file =
/// RODEO_TRY(open(path));`. Not inside a braced list: g++ 12 would not destroy the members made before it.
#define RODEO_TRY(...) RODEO_TRY_AS(RODEO_TRY_NAME(__COUNTER__), (__VA_ARGS__), )
/// RODEO_TRY that adds a context to the error; the context is evaluated only if there is an error:
/// `RODEO_TRY_WITHIN(read(id), fmt::format("card {}", number))`.
#define RODEO_TRY_WITHIN(result, context) RODEO_TRY_AS(RODEO_TRY_NAME(__COUNTER__), (result), .within(context))

#define RODEO_TRY_AS(name, result, with_context)                             \
  __extension__({                                                            \
    auto name = result;                                                      \
    if (!name) return std::unexpected(std::move(name).error() with_context); \
    *std::move(name);                                                        \
  })
#define RODEO_TRY_NAME(number) RODEO_TRY_JOIN(rodeo_try_, number)
#define RODEO_TRY_JOIN(word, number) word##number

/// For set-up code without a sensible return path; the terminal shows Error::message().
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
