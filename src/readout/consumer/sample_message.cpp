#include "readout/consumer/sample_message.h"

#include <cstring>

namespace rodeo::readout {
namespace {

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::array<std::byte, kSampleHeaderBytes> encode_sample_header(const SampleHeader& header) {
  std::array<std::byte, kSampleHeaderBytes> out{};
  store(out.data(), kSampleMagic);
  store(out.data() + 4, kSampleVersion);
  store(out.data() + 6, header.header_bytes);
  store(out.data() + 8, header.event_bytes);
  store(out.data() + 12, std::uint32_t{header.ids.has_resets ? std::uint8_t{0} : header.ids.bits});
  store(out.data() + 16, header.sequence);
  store(out.data() + 24, header.unix_ns);
  store(out.data() + 32, header.missed);
  return out;
}

std::optional<SampleHeader> decode_sample_header(std::span<const std::byte, kSampleHeaderBytes> bytes) {
  if (load<std::uint32_t>(bytes.data()) != kSampleMagic) return std::nullopt;
  if (load<std::uint16_t>(bytes.data() + 4) != kSampleVersion) return std::nullopt;
  const auto plain_bits = load<std::uint32_t>(bytes.data() + 12);
  if (plain_bits > 32) return std::nullopt;
  SampleHeader header{.header_bytes = load<std::uint16_t>(bytes.data() + 6),
                      .event_bytes = load<std::uint32_t>(bytes.data() + 8),
                      .sequence = load<std::uint64_t>(bytes.data() + 16),
                      .unix_ns = load<std::uint64_t>(bytes.data() + 24),
                      .missed = load<std::uint64_t>(bytes.data() + 32)};
  if (plain_bits != 0) header.ids = {.bits = static_cast<std::uint8_t>(plain_bits), .has_resets = false};
  if (header.header_bytes < kSampleHeaderBytes || header.event_bytes > kLargestSample) return std::nullopt;
  return header;
}

}  // namespace rodeo::readout
