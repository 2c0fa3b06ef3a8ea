// From what stands in a file to the value of a declared key, and from a declaration to words.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "rodeo/parameters.h"
#include "settings/toml_file.h"

namespace rodeo::settings {

/// Checks type, range and choice, and converts to the base unit. `path` is the whole name for messages ("readout.builder.timeout");
/// relative paths start at `directory`. Errors: config.wrong_type, config.out_of_range, config.bad_choice, config.bad_value; their
/// `where` is empty.
Result<Parameters::Value> convert_value(const Key& key, const RawValue& raw, const std::string& path,
                                        const std::filesystem::path& directory);

/// The value of a key that nobody set. Error config.bad_default: the declaration itself is wrong.
Result<Parameters::Value> default_value(const Key& key, const std::string& path, const std::filesystem::path& directory);

/// A number in the base unit, as programs exchange it: bytes, hertz, seconds. Texts and booleans as they are written; no lists.
std::string base_text(KeyType type, const Parameters::Value& value);

/// "duration", "list of FIDs".
std::string type_name(KeyType type);

/// "1 to 64", "at least 1 us"; empty if there is no limit.
std::string range_text(const Key& key);

/// "duration, default 10ms", "integer, required".
std::string summary(const Key& key);

/// The default as one writes it in a file: with quotes where they are needed.
std::string default_text(const Key& key);

}  // namespace rodeo::settings
