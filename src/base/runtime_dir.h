// The directory of sockets and locks that processes of one user share: $RODEO_RUNTIME_DIR, else $XDG_RUNTIME_DIR/rodeo if
// that directory exists and belongs to the user, else /tmp/rodeo-UID.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace rodeo::base {

/// The directory's name; does not make or check it.
std::filesystem::path runtime_directory_name();

/// The directory, made with mode 0700 if it did not exist. Refused (base.runtime_dir) if it belongs to another user or
/// others may write to it: sockets in it control running readouts.
Result<std::filesystem::path> runtime_directory();

/// The path of a Unix socket in the runtime directory. Refused if the name holds a slash or the path is longer than the 107
/// characters that a socket address takes.
Result<std::filesystem::path> runtime_socket(std::string_view file_name);

}  // namespace rodeo::base
