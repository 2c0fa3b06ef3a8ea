// Every error code of Rodeo with its meaning and exit status, from explain/error_codes.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rodeo::cli {

/// Exit statuses of the command (documented in `rodeo --help`).
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  invalid_configuration = 3,
  unreachable = 4,  ///< or timed out
  refused = 5,      ///< state or lock
  partial = 6,      ///< one of several failed; the others are reported
  not_verified = 7,
};

struct ErrorCode {
  std::string code;  ///< "room.reason"
  ExitCode exit = ExitCode::failed;
  std::string text;  ///< cause and remedy, whole sentences
};

/// Sorted by code.
std::span<const ErrorCode> error_codes();

/// nullptr if there is no such code. The result stays valid.
const ErrorCode* find_error_code(std::string_view code);

/// The exit status of an error; ExitCode::failed for codes that are not in the file.
ExitCode exit_code_of(std::string_view code);

}  // namespace rodeo::cli
