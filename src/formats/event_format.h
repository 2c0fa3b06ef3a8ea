// Constants of the ATLAS raw event format (eformat v5; v4 is read too). Specified in docs/reference/formats/event.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rodeo::formats {

inline constexpr std::uint32_t kFullEventMarker = 0xaa1234aa;
inline constexpr std::uint32_t kRobMarker = 0xdd1234dd;
inline constexpr std::uint32_t kRodMarker = 0xee1234ee;

inline constexpr std::uint16_t kEventVersion5 = 0x0500;  ///< major version of full events and ROBs
inline constexpr std::uint16_t kEventVersion4 = 0x0400;
inline constexpr std::uint16_t kRodVersion = 0x0301;

inline constexpr std::size_t kRodHeaderWords = 9;
inline constexpr std::size_t kRodTrailerWords = 3;
inline constexpr std::size_t kGenericHeaderWords = 7;    ///< words of an event or ROB header, without status words
inline constexpr std::size_t kEventSpecificWords5 = 16;  ///< words of a v5 event header, without the variable parts
inline constexpr std::size_t kEventSpecificWords4 = 13;

/// Word numbers in the header of a v5 event with one status word.
namespace event_word {
enum : std::size_t {
  kMarker,
  kSize,
  kHeaderSize,
  kVersion,
  kSourceId,
  kStatusWords,
  kStatus,
  kChecksumType,
  kSeconds,
  kNanoseconds,
  kGlobalIdLow,
  kGlobalIdHigh,
  kRunType,
  kRunNumber,
  kLumiBlock,
  kL1Id,
  kBcid,
  kTriggerType,
  kCompression,
  kUncompressedWords,
  kL1Info,
  kL2Info,
  kHltInfo,
  kStreamTags
};
}  // namespace event_word

enum class ChecksumType : std::uint32_t { none = 0, crc16_ccitt = 1, adler32 = 2 };
enum class Compression : std::uint32_t { none = 0, zlib = 1 };
enum class StatusPosition : std::uint32_t { before_data = 0, after_data = 1 };

namespace run_type {
inline constexpr std::uint32_t kPhysics = 0;
inline constexpr std::uint32_t kCalibration = 1;
inline constexpr std::uint32_t kCosmics = 2;
inline constexpr std::uint32_t kTest = 0xf;
inline constexpr std::uint32_t kSimulation = 0x80000000;  ///< or-ed to the other values
}  // namespace run_type

/// In the first status word of an event, defined by Rodeo: the event was saved from a damaged file, and its header is not
/// proven, or other words contradict it.
inline constexpr std::uint32_t kHeaderNotProven = 0x40000000;

/// The event was merged from several files, and some of its ROBs are in no file. Status words from 1 on are then the number
/// of missing ROBs and their source ids, as far as known.
inline constexpr std::uint32_t kRobsMissing = 0x00800000;

}  // namespace rodeo::formats
