// Every error code of Rodeo with its meaning and exit status, from explain/error_codes.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "process/exit_code.h"

namespace rodeo::cli {

using process::ExitCode;

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
