// Provable payload in RDH pages: emulated cards send it, any process can check it (docs/reference/formats/rdh.md, "Provable
// payload").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/provable.h"
#include "formats/rdh.h"

namespace rodeo::formats {

/// Takes the place of the link in the key of a page's payload: FEE id and page number, so that all pages of an orbit differ.
constexpr std::uint32_t rdh_payload_link(const Rdh& page) { return page.fee_id() | page.page_number() << 16; }

/// Writes the payload of a page whose header is complete; the orbit is its trigger. `payload` is 8 bytes or more, or empty.
inline void write_rdh_payload(const Provable& provable, const Rdh& page, std::span<std::byte> payload) {
  if (payload.empty()) return;
  const L1Id orbit{page.orbit()};
  Provable::fill(payload.data(), payload.size(), provable.header(orbit), provable.key(rdh_payload_link(page), orbit));
}

/// True if the payload equals, byte for byte, the output of write_rdh_payload() for this header.
inline bool rdh_payload_matches(const Provable& provable, const Rdh& page, std::span<const std::byte> payload) {
  if (payload.empty()) return true;
  const L1Id orbit{page.orbit()};
  return provable.matches(payload, provable.header(orbit), provable.key(rdh_payload_link(page), orbit));
}

/// The result of checking a frame.
enum class RdhFrameFinding : std::uint8_t {
  good,
  fewer_orbits,  ///< correct, but it ends early with a stop bit: the last time frame of a run
  bad_header,
  wrong_page,
  wrong_payload,
  no_stop,
};

/// Checks a frame of RdhFrameDecoder: each header is plausible and names `link`, `orbits` consecutive orbits follow each
/// other, pages are numbered from 0 and end with their stop bit, payloads match.
RdhFrameFinding verify_rdh_frame(const Provable& provable, std::span<const std::byte> frame, std::uint32_t link,
                                 std::uint32_t orbits);

}  // namespace rodeo::formats
