// Converts a file's text to the value of a declared key, and a declaration to text.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "rodeo/parameters.h"
#include "settings/toml_file.h"

namespace rodeo::settings {

/// Checks type, range and choice, and converts to the base unit. `path` is the whole name for messages
/// ("readout.builder.timeout"); relative paths start at `directory`. Errors: config.wrong_type, config.out_of_range,
/// config.bad_choice, config.bad_value; their `where` is empty.
Result<Parameters::Value> convert_value(const Key& key, const RawValue& raw, const std::string& path,
                                        const std::filesystem::path& directory);

/// The value of a key that is not set. Error config.bad_default: the declaration is wrong.
Result<Parameters::Value> default_value(const Key& key, const std::string& path, const std::filesystem::path& directory);

/// A number in the base unit, for exchange between programs: bytes, hertz, seconds. Texts and booleans as written; no lists.
std::string base_text(KeyType type, const Parameters::Value& value);

/// "duration", "list of FIDs".
std::string type_name(KeyType type);

/// "1 to 64", "at least 1 us"; empty if there is no limit.
std::string range_text(const Key& key);

/// "duration, default 10ms", "integer, required".
std::string summary(const Key& key);

/// The default as written in a file, with quotes if needed.
std::string default_text(const Key& key);

}  // namespace rodeo::settings
