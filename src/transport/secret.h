// The secret that publishers and subscribers share.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"

namespace rodeo::transport {

/// Returns the text of a file without the end of its line, or nothing for an empty path. Errors transport.secret_file: the
/// file cannot be read, is empty, is longer than 4096 bytes, or other users may read it.
Result<std::string> read_secret(const std::filesystem::path& file);

/// Checks a numerical address at which a process is to listen. Error transport.no_secret: other hosts reach the address, and
/// there is no secret. Error transport.address: peers cannot connect to the address, for example to 0.0.0.0.
Result<void> refuse_open_address(const std::string& address, const std::string& secret);

}  // namespace rodeo::transport
