// Free strings that protect Rodeo's own event files: a CRC-32 over the whole file, and the rule of provable payload.
// Defined by Rodeo, not by ATLAS; foreign readers ignore them. Specified in docs/reference/formats/eventstorage-file.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/event_ids.h"

namespace rodeo::formats {

struct DecodedFileHeader;

inline constexpr std::string_view kRodeoPrefix = "Rodeo-";
inline constexpr std::string_view kCrcKey = "Rodeo-CRC32";
/// Every file of Rodeo has it; then the CRC string must exist, too. 1: the events are Rodeo's; 0: Rodeo wrote the file with
/// events of another writer (recovered from a foreign file).
inline constexpr std::string_view kFormatKey = "Rodeo-Format";
inline constexpr std::string_view kProvableKey = "Rodeo-Payload";
/// In a file recovered from a damaged one: the list of what was saved.
inline constexpr std::string_view kRecoveredKey = "Rodeo-Recovered";
/// "whole" in files of a farm's recorder: events have any number of ROBs and their own stream tags, and are not ordered.
inline constexpr std::string_view kWholeEventsKey = "Rodeo-Events";
/// In a file of merged or filtered events: the sources and conditions.
inline constexpr std::string_view kMergedKey = "Rodeo-Merged";
inline constexpr std::string_view kFilteredKey = "Rodeo-Filtered";
/// "Rodeo-Ids=global LAYOUT": global ids never repeat within the run (docs/reference/formats/identifiers.md); LAYOUT is the
/// text of IdLayout::text() and says how L1 ids count. A farm's files have no layout.
inline constexpr std::string_view kIdsKey = "Rodeo-Ids";
inline constexpr std::string_view kGlobalIds = "global";
/// One string for each ROB: its source id, and its links in the order of the bitmaps in ROD status words.
inline constexpr std::string_view kLinksKey = "Rodeo-Links";
inline constexpr std::size_t kCrcDigits = 8;

/// "Rodeo-CRC32=00000000": the value while a file is being written.
std::string open_crc_string();

/// The CRC as eight lower-case hex digits.
std::array<char, kCrcDigits> crc_digits(std::uint32_t crc);

/// The value of exactly eight lower-case hex digits.
std::optional<std::uint32_t> read_crc_digits(std::string_view digits);

/// "Rodeo-Payload=provable seed=N crc=0|1 [l1id_bits=N | l1id_counter=32] [trigger=l1id]": chunks are as formats::Provable
/// makes them.
struct ProvableMark {
  std::uint64_t seed = 0;
  bool crc = false;
  std::uint32_t l1id_bits = 32;    ///< bits of the L1 id in chunks
  std::uint32_t l1id_counter = 0;  ///< 32: the L1 ids in chunks are a 32-bit counter without resets
  bool full_trigger = true;        ///< false ("trigger=l1id"): fragments have another BCID and trigger type than the payload

  std::string text() const;

  /// Parses the text after "Rodeo-Payload="; nothing for any other text.
  static std::optional<ProvableMark> parse(std::string_view value);

  bool operator==(const ProvableMark&) const = default;
};

/// The contents of Rodeo-Ids; `layout` is empty if it has none.
struct IdsMark {
  std::optional<IdLayout> layout = {};

  std::string text() const;
  /// Parses the text after "Rodeo-Ids="; nothing for any other text.
  static std::optional<IdsMark> parse(std::string_view value);
};

/// The layout with which tools show extended L1 ids that may or may not have a reset counter.
inline constexpr IdLayout kOneNumber{.bits = 32, .has_resets = false};

/// The layout of the L1 ids in a file with these records; nothing if the file does not have it.
std::optional<IdLayout> layout_of(const DecodedFileHeader& header);

/// Computes the digest of a file from its bytes in order, with '0' for the CRC digits. One thread at a time.
class FileDigest {
 public:
  void update(std::span<const std::byte> bytes);

  std::uint64_t bytes() const { return bytes_; }

  /// The value of the CRC string.
  std::uint32_t crc32() const { return crc_; }

  /// Adler-32 of the file after the digits are written: the value for catalogues.
  std::uint32_t adler32_when_sealed(std::size_t crc_offset) const;

 private:
  std::uint64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
  std::uint32_t adler_ = 1;
};

}  // namespace rodeo::formats
