#include "formats/rdh_payload.h"

namespace rodeo::formats {

RdhFrameFinding verify_rdh_frame(const Provable& provable, std::span<const std::byte> frame, std::uint32_t link,
                                 std::uint32_t orbits) {
  using enum RdhFrameFinding;
  if (frame.size() < kRdhBytes) return bad_header;
  const std::uint32_t first_orbit = Rdh::read(frame.data()).orbit();
  std::uint32_t done_orbits = 0;
  std::uint32_t page_number = 0;
  for (std::size_t at = 0; at < frame.size();) {
    if (frame.size() - at < kRdhBytes) return bad_header;
    const Rdh page = Rdh::read(frame.data() + at);
    if (!page.plausible() || page.memory_size() > frame.size() - at) return bad_header;
    if (page.link_id() != link || done_orbits == orbits || page.orbit() != first_orbit + done_orbits ||
        page.page_number() != page_number) {
      return wrong_page;
    }
    if (!rdh_payload_matches(provable, page, frame.subspan(at + kRdhBytes, page.memory_size() - kRdhBytes)))
      return wrong_payload;
    ++page_number;
    if (page.stop()) {
      ++done_orbits;
      page_number = 0;
    }
    // The last page ends without its padding.
    if (page.memory_size() == frame.size() - at) break;
    if (page.offset_next() > frame.size() - at) return bad_header;
    at += page.offset_next();
  }
  if (page_number != 0 || done_orbits == 0) return no_stop;
  return done_orbits == orbits ? good : fewer_orbits;
}

}  // namespace rodeo::formats
