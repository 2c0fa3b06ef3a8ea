// Free strings by which Rodeo protects its own event files: a CRC-32 over the whole file, and how the payload proves itself.
// Ours, not ATLAS's; foreign readers pass over them. Specified in docs/formats/eventstorage-file.md.
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
/// In every file of ours, and then the CRC string must be there too. 1: events are Rodeo's; 0: Rodeo wrote the file around events of
/// others (recovered from a foreign file).
inline constexpr std::string_view kFormatKey = "Rodeo-Format";
inline constexpr std::string_view kProvableKey = "Rodeo-Payload";
/// In a file made of a damaged one: what was saved.
inline constexpr std::string_view kRecoveredKey = "Rodeo-Recovered";
/// In files of a farm's recorder ("whole"): events have any number of ROBs, each its own stream tags, and are in no order.
inline constexpr std::string_view kWholeEventsKey = "Rodeo-Events";
/// In a file of events that were merged from several files, or chosen from others: from what, and how.
inline constexpr std::string_view kMergedKey = "Rodeo-Merged";
inline constexpr std::string_view kFilteredKey = "Rodeo-Filtered";
/// "Rodeo-Ids=global LAYOUT": global ids never repeat within the run (docs/formats/identifiers.md), and how L1 ids count, as IdLayout::text(). In files
/// of a farm without the layout.
inline constexpr std::string_view kIdsKey = "Rodeo-Ids";
inline constexpr std::string_view kGlobalIds = "global";
/// Once for each ROB: its source id, and its links in the order of the bitmaps in ROD status words.
inline constexpr std::string_view kLinksKey = "Rodeo-Links";
inline constexpr std::size_t kCrcDigits = 8;

/// "Rodeo-CRC32=00000000", as it is while a file is written.
std::string open_crc_string();

/// Eight lower-case hex digits.
std::array<char, kCrcDigits> crc_digits(std::uint32_t crc);

/// The value of exactly eight lower-case hex digits.
std::optional<std::uint32_t> read_crc_digits(std::string_view digits);

/// "Rodeo-Payload=provable seed=N crc=0|1 [l1id_bits=N | l1id_counter=32] [trigger=l1id]": chunks are those of formats::Provable.
struct ProvableMark {
  std::uint64_t seed = 0;
  bool crc = false;
  std::uint32_t l1id_bits = 32;    ///< of the L1 id in chunks
  std::uint32_t l1id_counter = 0;  ///< 32: these are a counter of 32 bits without resets
  bool full_trigger = true;  ///< false ("trigger=l1id"): BCID and trigger type of the fragments are not those of the payload

  std::string text() const;

  /// Reads what stands behind "Rodeo-Payload="; nothing if it is anything else.
  static std::optional<ProvableMark> parse(std::string_view value);

  bool operator==(const ProvableMark&) const = default;
};

/// What Rodeo-Ids says; `layout` is nothing where it is not said.
struct IdsMark {
  std::optional<IdLayout> layout = {};

  std::string text() const;
  /// Reads what stands behind "Rodeo-Ids="; nothing if it is anything else.
  static std::optional<IdsMark> parse(std::string_view value);
};

/// How L1 ids count in a file with these records; with a reset counter where it is not said.
IdLayout layout_of(const DecodedFileHeader& header);

/// Digest of a file while its bytes pass by, in order, with '0' for the CRC digits. One thread at a time.
class FileDigest {
 public:
  void update(std::span<const std::byte> bytes);

  std::uint64_t bytes() const { return bytes_; }

  /// What belongs into the CRC string.
  std::uint32_t crc32() const { return crc_; }

  /// Adler-32 of the file as it is once the digits are written: the value for catalogues.
  std::uint32_t adler32_when_sealed(std::size_t crc_offset) const;

 private:
  std::uint64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
  std::uint32_t adler_ = 1;
};

}  // namespace rodeo::formats
