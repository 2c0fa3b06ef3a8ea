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
    std::string written = {};  ///< the value in words to its author, if not as `value`
  };
  struct Section {
    std::string name;
    std::string where;
    std::vector<Entry> entries;
  };
  std::vector<Section> sections;
};

/// By the name's end: .toml, .json, .ini or .cfg. Errors: config.unreadable, config.syntax, config.wrong_type.
Result<CardFile> read_card_file(const std::filesystem::path& file);
Result<CardFile> parse_card_file(std::string_view text, const std::filesystem::path& name);

/// All that is wrong with a file whatever the card: sections and keys that nobody knows, values that cannot be. Sections of links are taken as a
/// FELIX card's if there is a [felix], else as a CRU's.
std::vector<Error> check_card_file(const CardFile& file);

/// Changes what the file names; the rest of `settings` (as a rule: what the card has) stays. Sections of other types of card
/// are passed over, sections and keys that nobody knows are errors (config.unknown_key, with the nearest), so is a file
/// without a section for this card (config.missing_key). Keys are ours or upstream's.
Result<void> apply_card_file(const CardFile& file, CardSettings& settings);

/// One setting: "clock", "links.gbt_mux", "link3.fee_id". Errors: config.unknown_key, config.bad_value.
Result<void> set_card_setting(CardSettings& settings, std::string_view name, std::string_view value,
                              const std::string& where);

enum class CardFileFormat : std::uint8_t { toml, ini, json };

/// The whole configuration as a file: TOML with the help of each key beside it, or what upstream's tools read.
std::string write_card_file(const CardSettings& settings, CardFileFormat format);
/// By the name's end; TOML for anything else.
CardFileFormat card_file_format(const std::filesystem::path& file);

}  // namespace rodeo::card
