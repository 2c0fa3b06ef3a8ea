// The raw data header (RDH) of ALICE, versions 6 and 7: 64 bytes before the payload of every page
// (docs/reference/formats/rdh.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rodeo::formats {

inline constexpr std::uint32_t kRdhBytes = 64;
/// Bytes of a page with fixed offsets; the maximum with dynamic offsets.
inline constexpr std::uint32_t kRdhPageBytes = 8192;

/// Bits of the trigger type.
namespace rdh_trigger {
inline constexpr std::uint32_t kOrbit = 1U << 0;
inline constexpr std::uint32_t kHeartbeat = 1U << 1;
inline constexpr std::uint32_t kHeartbeatReject = 1U << 2;
inline constexpr std::uint32_t kPhysics = 1U << 4;
inline constexpr std::uint32_t kCalibration = 1U << 6;
inline constexpr std::uint32_t kStartOfTriggered = 1U << 7;
inline constexpr std::uint32_t kEndOfTriggered = 1U << 8;
inline constexpr std::uint32_t kStartOfContinuous = 1U << 9;
inline constexpr std::uint32_t kEndOfContinuous = 1U << 10;
inline constexpr std::uint32_t kTimeFrame = 1U << 11;
}  // namespace rdh_trigger

/// A header, read from or written to little-endian memory. Reading accepts any bytes; plausible() checks whether they can be
/// a header.
struct Rdh {
  std::array<std::uint32_t, 16> words{};

  static Rdh read(const std::byte* at) {
    Rdh header;
    std::memcpy(header.words.data(), at, kRdhBytes);
    return header;
  }
  void write(std::byte* at) const { std::memcpy(at, words.data(), kRdhBytes); }

  constexpr std::uint32_t version() const { return words[0] & 0xffU; }
  constexpr std::uint32_t header_size() const { return words[0] >> 8 & 0xffU; }
  constexpr std::uint32_t fee_id() const { return words[0] >> 16; }
  constexpr std::uint32_t priority() const { return words[1] & 0xffU; }
  constexpr std::uint32_t system_id() const { return words[1] >> 8 & 0xffU; }
  constexpr std::uint32_t offset_next() const { return words[2] & 0xffffU; }  ///< bytes from this header to the next
  constexpr std::uint32_t memory_size() const { return words[2] >> 16; }      ///< bytes of header and payload
  constexpr std::uint32_t link_id() const { return words[3] & 0xffU; }
  constexpr std::uint32_t packet_counter() const { return words[3] >> 8 & 0xffU; }
  constexpr std::uint32_t cru_id() const { return words[3] >> 16 & 0xfffU; }
  constexpr std::uint32_t endpoint() const { return words[3] >> 28; }
  constexpr std::uint32_t bc() const { return words[4] & 0xfffU; }
  constexpr std::uint32_t orbit() const { return words[5]; }
  constexpr std::uint32_t data_format() const { return words[6] & 0xffU; }  ///< version 7
  constexpr std::uint32_t trigger_type() const { return words[8]; }
  /// Number of the page within its heartbeat frame, from 0.
  constexpr std::uint32_t page_number() const { return words[9] & 0xffffU; }
  constexpr bool stop() const { return (words[9] >> 16 & 0xffU) != 0; }  ///< true for the last page of its heartbeat frame
  constexpr std::uint32_t detector_field() const { return words[12]; }

  /// True if a page may begin with these bytes: version and sizes are possible. The caller must check that all bytes of the
  /// page are present.
  constexpr bool plausible() const {
    return (version() == 6 || version() == 7) && header_size() == kRdhBytes && offset_next() >= kRdhBytes &&
           memory_size() >= kRdhBytes && memory_size() <= offset_next();
  }

  bool operator==(const Rdh&) const = default;
};

/// The fields of a header.
struct RdhFields {
  std::uint8_t version = 7;
  std::uint16_t fee_id = 0;
  std::uint8_t system_id = 0;
  std::uint16_t offset_next = kRdhPageBytes;
  std::uint16_t memory_size = kRdhBytes;
  std::uint8_t link_id = 0;
  std::uint8_t packet_counter = 0;
  std::uint16_t cru_id = 0;
  std::uint8_t endpoint = 0;
  std::uint16_t bc = 0;
  std::uint32_t orbit = 0;
  std::uint8_t data_format = 0;
  std::uint32_t trigger_type = 0;
  std::uint16_t page_number = 0;
  bool stop = false;
  std::uint32_t detector_field = 0;

  constexpr Rdh header() const {
    Rdh h;
    h.words[0] = version | kRdhBytes << 8 | std::uint32_t{fee_id} << 16;
    h.words[1] = std::uint32_t{system_id} << 8;
    h.words[2] = offset_next | std::uint32_t{memory_size} << 16;
    h.words[3] = link_id | std::uint32_t{packet_counter} << 8 | (cru_id & 0xfffU) << 16 | std::uint32_t{endpoint} << 28;
    h.words[4] = bc & 0xfffU;
    h.words[5] = orbit;
    h.words[6] = version >= 7 ? data_format : 0U;
    h.words[8] = trigger_type;
    h.words[9] = page_number | (stop ? 1U << 16 : 0U);
    h.words[12] = detector_field;
    return h;
  }
};

}  // namespace rodeo::formats
