// The exit statuses of the command.
#pragma once

namespace rodeo::process {

/// `rodeo --help` documents them.
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

}  // namespace rodeo::process
