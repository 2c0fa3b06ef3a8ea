// Configurations of cards in files: our TOML, and the `ini` and `json` files of the public ReadoutCard driver. All three
// have the same sections, so that a file of one kind can be written as another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "card/configuration/settings.h"

namespace rodeo::card {

/// A file as sections of keys: [cru], [crorc] or [felix], [links] for all links, [link0] to [link11] for one.
struct CardFile {
  struct Entry {
    std::string key;
    std::string value;
    std::string where;         ///< file:line:column
    std::string written = {};  ///< the value as the user wrote it, if that is not `value`
  };
  struct Section {
    std::string name;
    std::string where;
    std::vector<Entry> entries;
  };
  std::vector<Section> sections;
};

/// The name's extension gives the format: .toml, .json, .ini or .cfg. Errors: config.unreadable, config.syntax,
/// config.wrong_type.
Result<CardFile> read_card_file(const std::filesystem::path& file);
Result<CardFile> parse_card_file(std::string_view text, const std::filesystem::path& name);

/// All faults of a file that do not depend on the card: unknown sections and keys, impossible values. Sections of links
/// belong to a FELIX card if the file has a section [felix], else to a CRU.
std::vector<Error> check_card_file(const CardFile& file);

/// Changes the settings that the file names; the others (usually read from the card) stay. Skips sections of other types of
/// card. Errors: config.unknown_key (unknown section or key, with the nearest name), config.missing_key (the file has no
/// section for this card). Keys are Rodeo's or upstream's.
Result<void> apply_card_file(const CardFile& file, CardSettings& settings);

/// One setting: "clock", "links.gbt_mux", "link3.fee_id". Errors: config.unknown_key, config.bad_value.
Result<void> set_card_setting(CardSettings& settings, std::string_view name, std::string_view value,
                              const std::string& where);

enum class CardFileFormat : std::uint8_t { toml, ini, json };

/// The whole configuration as a file: TOML with the help of each key in a comment, or a file for upstream's tools.
std::string write_card_file(const CardSettings& settings, CardFileFormat format);
/// The format for the name's extension; TOML for any other extension.
CardFileFormat card_file_format(const std::filesystem::path& file);

}  // namespace rodeo::card
