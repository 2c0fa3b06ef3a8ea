// One sampled event on its way to a reader: header and event (docs/reference/formats/sampling.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "formats/event_ids.h"

namespace rodeo::readout {

inline constexpr std::uint32_t kSampleMagic = 0x504d5352;
inline constexpr std::uint16_t kSampleVersion = 1;
inline constexpr std::size_t kSampleHeaderBytes = 40;
inline constexpr std::uint32_t kLargestSample = 1 << 30;

struct SampleHeader {
  std::uint16_t header_bytes = kSampleHeaderBytes;  ///< size of the header; later versions may have a larger one
  std::uint32_t event_bytes = 0;
  std::uint64_t sequence = 0;
  std::uint64_t unix_ns = 0;
  std::uint64_t missed = 0;    ///< samples that this reader missed since the last one
  formats::IdLayout ids = {};  ///< layout of the event's L1 ids

  bool operator==(const SampleHeader&) const = default;
};

std::array<std::byte, kSampleHeaderBytes> encode_sample_header(const SampleHeader& header);

/// The header; empty if this version cannot read it.
std::optional<SampleHeader> decode_sample_header(std::span<const std::byte, kSampleHeaderBytes> bytes);

}  // namespace rodeo::readout
