#include "readout/extractor/field_extractor.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <isa-l/crc.h>

#include "formats/ttc_packet.h"
#include "rodeo/settings.h"

namespace rodeo::readout {
namespace {

constexpr std::uint16_t kBcidMask = 0xfff;

template <typename T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

class FieldExtractor final : public TriggerExtractor {
 public:
  explicit FieldExtractor(const FieldLayout& layout)
      : layout_(layout),
        mask_(layout.l1id_bits >= 32 ? 0xffffffffU : (1U << layout.l1id_bits) - 1),
        l1id_bytes_(layout.l1id_bits > 16  ? 4
                    : layout.l1id_bits > 8 ? 2
                                           : 1),
        needed_(
            std::max({layout.l1id_offset + l1id_bytes_,
                      layout.bcid_offset < 0 ? 0U : static_cast<std::uint32_t>(layout.bcid_offset) + 2,
                      layout.trigger_type_offset < 0 ? 0U : static_cast<std::uint32_t>(layout.trigger_type_offset) + 1})),
        one_word_(l1id_bytes_ == 4 && layout.bcid_offset == static_cast<std::int32_t>(layout.l1id_offset) + 4 &&
                  needed_ <= layout.l1id_offset + 8) {}

  TriggerFields fields() const override { return fields_of(layout_); }

  std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override {
    if (run.entries == nullptr && run.size >= layout_.l1id_offset + 8 && one_word_) {
      // One load for both fields: the layout of the default format and of most others.
      const std::byte* at = run.data + std::size_t{first} * run.stride + layout_.l1id_offset;
      for (std::uint32_t i = 0; i < n; ++i, at += run.stride) {
        const auto word = read<std::uint64_t>(at);
        l1ids[i] = static_cast<std::uint32_t>(word) & mask_;
        bcids[i] = static_cast<std::uint16_t>(word >> 32 & kBcidMask);
      }
      return n;
    }
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::span<const std::byte> chunk = run.chunk(first + i);
      if (chunk.size() < needed_) return i;
      const std::byte* at = chunk.data() + layout_.l1id_offset;
      const std::uint32_t l1id = l1id_bytes_ == 4   ? read<std::uint32_t>(at)
                                 : l1id_bytes_ == 2 ? read<std::uint16_t>(at)
                                                    : read<std::uint8_t>(at);
      l1ids[i] = l1id & mask_;
      bcids[i] = layout_.bcid_offset < 0
                     ? std::uint16_t{0}
                     : static_cast<std::uint16_t>(read<std::uint16_t>(chunk.data() + layout_.bcid_offset) & kBcidMask);
    }
    return n;
  }

  std::uint8_t trigger_type(std::span<const std::byte> chunk) override {
    if (layout_.trigger_type_offset < 0 || chunk.size() < needed_) return 0;
    return read<std::uint8_t>(chunk.data() + layout_.trigger_type_offset);
  }

 private:
  const FieldLayout layout_;
  const std::uint32_t mask_;
  const std::uint32_t l1id_bytes_;
  const std::uint32_t needed_;
  const bool one_word_;
};

// Reads the header of the provable payload like a simple first version: a function that gets one chunk.
template <std::uint32_t kBits>
TriggerInfo extract_one(std::span<const std::byte> chunk) {
  if (chunk.size() < 8) return {.valid = false};
  const auto word = read<std::uint64_t>(chunk.data());
  constexpr std::uint32_t kMask = kBits == 32 ? 0xffffffffU : (1U << kBits) - 1;
  return {.l1id = static_cast<std::uint32_t>(word) & kMask,
          .bcid = static_cast<std::uint16_t>(word >> 32 & kBcidMask),
          .trigger_type = static_cast<std::uint8_t>(word >> 48)};
}

template <std::size_t... kBits>
ExtractFunction extract_function(std::uint32_t bits, std::index_sequence<kBits...>) {
  static constexpr ExtractFunction kFunctions[] = {&extract_one<static_cast<std::uint32_t>(kBits)>...};
  return kFunctions[bits];
}

std::unique_ptr<TriggerExtractor> make_per_chunk_extractor(const FieldLayout& layout) {
  const TriggerFields fields = fields_of(layout);
  const std::uint32_t bits = layout.l1id_bits;
  const ExtractFunction function = bits == 32 ? &extract_one<32> : extract_function(bits, std::make_index_sequence<25>{});
  return std::make_unique<detail::ExtractorOfFunction>(fields, function);
}

const Settings<FieldLayout>::Lines& l1id_counter() {
  static const auto line = setting(
      &FieldLayout::l1id_counter, "l1id_counter",
      "32: chunks carry a counter of 32 bits that no event counter reset touches. 0: l1id_bits says what they carry.",
      {.maximum = 32});
  return line;
}

const Settings<FieldLayout>::Lines& l1id_bits() {
  static const auto line = setting(
      &FieldLayout::l1id_bits, "l1id_bits",
      "Bits of the L1 id that chunks carry. 32: ECR counter and 24-bit L1 id; 4 to 24: that many low bits of the L1 id.",
      {.minimum = 4, .maximum = 32});
  return line;
}

// The layout, with default values where the parameters give none.
FieldLayout layout_of(const Settings<FieldLayout>& settings, const Parameters& parameters) {
  const FieldLayout layout = settings.read(parameters);
  if (layout.l1id_bits > 24 && layout.l1id_bits != 32)
    throw std::runtime_error("l1id_bits must be 32 (with the ECR counter) or 4 to 24");
  if (layout.l1id_counter != 0 && (layout.l1id_counter != 32 || layout.l1id_bits != 32))
    throw std::runtime_error("l1id_counter must be 32, without l1id_bits, or 0");
  return layout;
}

class Crc32Checker final : public IntegrityChecker {
 public:
  std::uint32_t check(const ChunkRun& run, std::uint32_t first, std::uint32_t n) override {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::span<const std::byte> chunk = run.chunk(first + i);
      if (chunk.size() < 4) return i;
      const std::size_t body = chunk.size() - 4;
      const std::uint32_t crc = crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(chunk.data()), body);
      if (crc != read<std::uint32_t>(chunk.data() + body)) return i;
    }
    return n;
  }
};

}  // namespace

TriggerFields fields_of(const FieldLayout& layout) {
  const bool counter = layout.l1id_counter == 32;
  return {.l1id_bits = static_cast<std::uint8_t>(counter ? 32 : std::min(layout.l1id_bits, 24U)),
          .has_ecr = layout.l1id_bits >= 32 && !counter,
          .has_bcid = layout.bcid_offset >= 0,
          .has_trigger_type = layout.trigger_type_offset >= 0};
}

std::unique_ptr<TriggerExtractor> make_field_extractor(const FieldLayout& layout) {
  return std::make_unique<FieldExtractor>(layout);
}

std::unique_ptr<TriggerExtractor> make_ttc_extractor() { return std::make_unique<formats::TtcTriggerExtractor>(); }

std::unique_ptr<IntegrityChecker> make_crc32_checker() { return std::make_unique<Crc32Checker>(); }

void register_extractors(Registry& registry) {
  using L = FieldLayout;
  constexpr double kFarthest = 65535;
  static const Settings<L> everywhere{
      setting(&L::l1id_offset, "l1id_offset", "Byte at which the L1 id begins.", {.maximum = kFarthest}),
      l1id_bits(),
      l1id_counter(),
      setting(&L::bcid_offset, "bcid_offset", "Byte at which the 16 bits with the BCID begin; -1 if there is none.",
              {.minimum = -1, .maximum = kFarthest}),
      setting(&L::trigger_type_offset, "trigger_type_offset", "Byte of the trigger type; -1 if there is none.",
              {.minimum = -1, .maximum = kFarthest}),
  };
  static const Settings<L> in_place{l1id_bits(), l1id_counter()};
  registry.add_extractor(
      {.name = "rodeo",
       .help = "L1 id, BCID and trigger type at fixed places of the chunk; the defaults are those of the provable payload",
       .keys = everywhere.keys()},
      [](const Parameters& parameters) { return make_field_extractor(layout_of(everywhere, parameters)); });
  registry.add_extractor(
      {.name = "rodeo_per_chunk",
       .help = "Like `rodeo` with its defaults, as a plain function per chunk: shows what such a function costs",
       .keys = in_place.keys()},
      [](const Parameters& parameters) { return make_per_chunk_extractor(layout_of(in_place, parameters)); });
  registry.add_checker({.name = "crc32", .help = "CRC-32 (IEEE 802.3, as zlib's) in the last four bytes of each chunk"},
                       [](const Parameters&) { return make_crc32_checker(); });
}

}  // namespace rodeo::readout
