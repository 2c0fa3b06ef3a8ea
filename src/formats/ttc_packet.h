// TTC-to-host packets: the trigger's own list of L1 ids (docs/reference/formats/ttc-packet.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/decode_error.h"
#include "rodeo/ids.h"
#include "rodeo/trigger.h"

namespace rodeo::formats {

struct TtcPacket {
  static constexpr std::size_t kFormat1Bytes = 20;
  static constexpr std::size_t kFormat2Bytes = 26;
  static constexpr std::size_t kTaggedBytes = 27;

  L1Id l1id;               ///< L1 id with the ECR counter (XL1ID)
  std::uint16_t bcid = 0;  ///< 12 bits
  std::uint16_t trigger_type = 0;
  std::uint32_t orbit = 0;
  std::uint32_t l0id = 0;
  std::optional<std::uint64_t> l1a_counter;  ///< 48 bits; not in format 1
  std::optional<std::uint8_t> trigger_tag;   ///< Phase 2 only; needs an l1a_counter

  /// 20, 26 or 27: depends on the optional fields.
  std::size_t size_bytes() const { return trigger_tag ? kTaggedBytes : l1a_counter ? kFormat2Bytes : kFormat1Bytes; }

  /// Writes size_bytes() bytes to the front of `chunk`, which must have room for them, and returns their number.
  std::size_t write(std::span<std::byte> chunk) const;

  /// Decodes a packet. Accepts any bytes.
  static Decoded<TtcPacket> read(std::span<const std::byte> chunk);

  bool operator==(const TtcPacket&) const = default;
};

/// Reads extended L1 id, BCID and trigger type from chunks that are TTC packets. Chunks that read() refuses are
/// malformed.
class TtcTriggerExtractor final : public TriggerExtractor {
 public:
  TriggerFields fields() const override { return {24, true, true, true}; }
  std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override;
  std::uint8_t trigger_type(std::span<const std::byte> chunk) override;
};

}  // namespace rodeo::formats
