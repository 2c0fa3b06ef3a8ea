// The default trigger-information extraction: L1 id, BCID and trigger type at fixed places of the chunk.
#pragma once

#include <cstdint>
#include <memory>

#include "rodeo/plugin.h"

namespace rodeo::readout {

/// The places of trigger information in a chunk (little-endian fields). The defaults are those of the provable payload.
struct FieldLayout {
  std::uint32_t l1id_offset = 0;
  std::uint32_t l1id_bits = 32;          ///< 32: ECR counter and L1 id; 4 to 24: that many low bits of the L1 id
  std::uint32_t l1id_counter = 0;        ///< 32: a counter of 32 bits, without ECR counter
  std::int32_t bcid_offset = 4;          ///< 16 bits, of which the low 12 count; negative: none
  std::int32_t trigger_type_offset = 6;  ///< 8 bits; negative: none
};

std::unique_ptr<TriggerExtractor> make_field_extractor(const FieldLayout& layout);

/// The fields of a trigger that such chunks carry.
TriggerFields fields_of(const FieldLayout& layout);

/// Extracts the trigger's own list from TTC-to-host packets.
std::unique_ptr<TriggerExtractor> make_ttc_extractor();

/// Checks a CRC-32 (IEEE 802.3) in the last four bytes of a chunk, over all bytes before them.
std::unique_ptr<IntegrityChecker> make_crc32_checker();

void register_extractors(Registry& registry);

}  // namespace rodeo::readout
