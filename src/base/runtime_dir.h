// The directory of sockets and locks that processes of one user share: $RODEO_RUNTIME_DIR, else $XDG_RUNTIME_DIR/rodeo where that directory is
// there and the user's own, else /tmp/rodeo-UID.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace rodeo::base {

/// The directory's name; nothing is made or checked.
std::filesystem::path runtime_directory_name();

/// The directory, made with mode 0700 if it was not there. Refused (base.runtime_dir) if it belongs to somebody else or
/// others may write to it: what lies in it steers running readouts.
Result<std::filesystem::path> runtime_directory();

/// The path of a Unix socket in the runtime directory. Refused if the name holds a slash or the path is longer than the 107
/// characters that a socket address takes.
Result<std::filesystem::path> runtime_socket(std::string_view file_name);

}  // namespace rodeo::base
