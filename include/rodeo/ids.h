// Strong identifiers of links, sources of fragments, and triggers, used everywhere outside the hot path.
// Layouts: ATLAS FELIX identifier (FID) version 1 and raw event format v5; see docs/reference/formats/identifiers.md.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace rodeo {

/// A FELIX identifier: the name of a link, unique in the whole system.
/// Bits: version 63..60 | detector 59..52 | connector 51..36 | virtual 35 | link 34..22 | e-link 21..16 | direction 15 |
/// protocol 14..8 | stream 7..0.
struct Fid {
  std::uint64_t value = 0;

  static constexpr std::uint64_t kVersion = 1;

  /// The to-host FID of one E-link (version 1, protocol and stream zero).
  static constexpr Fid of(std::uint32_t detector, std::uint32_t connector, std::uint32_t link, std::uint32_t elink) {
    return Fid{kVersion << 60 | std::uint64_t{detector & 0xffU} << 52 | std::uint64_t{connector & 0xffffU} << 36 |
               std::uint64_t{link & 0x1fffU} << 22 | std::uint64_t{elink & 0x3fU} << 16};
  }

  constexpr std::uint32_t version() const { return static_cast<std::uint32_t>(value >> 60); }
  constexpr std::uint32_t detector() const { return static_cast<std::uint32_t>(value >> 52 & 0xffU); }
  constexpr std::uint32_t connector() const { return static_cast<std::uint32_t>(value >> 36 & 0xffffU); }
  constexpr bool is_virtual() const { return (value >> 35 & 1U) != 0; }
  constexpr std::uint32_t link() const { return static_cast<std::uint32_t>(value >> 22 & 0x1fffU); }
  constexpr std::uint32_t elink() const { return static_cast<std::uint32_t>(value >> 16 & 0x3fU); }
  constexpr bool to_frontend() const { return (value >> 15 & 1U) != 0; }
  constexpr std::uint32_t protocol() const { return static_cast<std::uint32_t>(value >> 8 & 0x7fU); }
  constexpr std::uint32_t stream() const { return static_cast<std::uint32_t>(value & 0xffU); }

  /// The 32-bit resource id in chunk headers, unless the configuration gives another: bits 47..16 of the FID
  /// (low 12 bits of the connector, virtual, link, e-link).
  constexpr std::uint32_t default_link_id() const { return static_cast<std::uint32_t>(value >> 16); }

  auto operator<=>(const Fid&) const = default;
};

/// Source id of a ROB, ROD or event: optional byte << 24 | subdetector << 16 | module.
struct SourceId {
  std::uint32_t value = 0;

  constexpr std::uint8_t subdetector() const { return static_cast<std::uint8_t>(value >> 16); }
  constexpr std::uint16_t module() const { return static_cast<std::uint16_t>(value); }

  auto operator<=>(const SourceId&) const = default;
};

/// Extended Level-1 id: event counter reset (ECR) counter, 8 bits << 24 | L1 id, 24 bits, which restarts at each ECR.
struct L1Id {
  std::uint32_t value = 0;

  static constexpr L1Id of(std::uint32_t ecr, std::uint32_t l1) { return L1Id{ecr << 24 | (l1 & 0xffffffU)}; }
  constexpr std::uint32_t ecr() const { return value >> 24; }
  constexpr std::uint32_t l1() const { return value & 0xffffffU; }

  auto operator<=>(const L1Id&) const = default;
};

/// Number of a link within one process, without gaps; used in the hot path.
using LinkIndex = std::uint16_t;

/// Position of an event in the order of accepted triggers, unwrapped to 64 bits; increases over a whole run. A reset of the
/// event counter may skip numbers.
using Sequence = std::uint64_t;

}  // namespace rodeo

template <>
struct std::hash<rodeo::Fid> {
  std::size_t operator()(rodeo::Fid fid) const noexcept { return std::hash<std::uint64_t>{}(fid.value); }
};
