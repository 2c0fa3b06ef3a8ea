// Provable payload in RDH pages: what emulated cards send and any process can check (docs/formats/rdh.md, "Provable payload").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/provable.h"
#include "formats/rdh.h"

namespace rodeo::formats {

/// What stands for the link in the key of a page's payload: FEE id and number of the page, so that no two pages of an orbit are alike.
constexpr std::uint32_t rdh_payload_link(const Rdh& page) { return page.fee_id() | page.page_number() << 16; }

/// Writes the payload of a page whose header is complete; the orbit is its trigger. `payload` is 8 bytes or more, or empty.
inline void write_rdh_payload(const Provable& provable, const Rdh& page, std::span<std::byte> payload) {
  if (payload.empty()) return;
  const L1Id orbit{page.orbit()};
  Provable::fill(payload.data(), payload.size(), provable.header(orbit), provable.key(rdh_payload_link(page), orbit));
}

/// True if the payload is, byte for byte, what write_rdh_payload() makes for this header.
inline bool rdh_payload_matches(const Provable& provable, const Rdh& page, std::span<const std::byte> payload) {
  if (payload.empty()) return true;
  const L1Id orbit{page.orbit()};
  return provable.matches(payload, provable.header(orbit), provable.key(rdh_payload_link(page), orbit));
}

/// What a frame's walk found.
enum class RdhFrameFinding : std::uint8_t {
  good,
  fewer_orbits,  ///< good as far as it goes, and it ends with a stop bit: the last time frame of a run
  bad_header,
  wrong_page,
  wrong_payload,
  no_stop,
};

/// Proves a frame as RdhFrameDecoder makes it: each header can be one and names `link`, `orbits` of them follow each other, pages are numbered from 0 and
/// end with their stop bit, payloads match.
RdhFrameFinding verify_rdh_frame(const Provable& provable, std::span<const std::byte> frame, std::uint32_t link,
                                 std::uint32_t orbits);

}  // namespace rodeo::formats
