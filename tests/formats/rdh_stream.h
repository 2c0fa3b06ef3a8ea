// Makes files of RDH pages like those of detector endpoints: links with shared or separate packet counters, frames every few
// orbits, files with some of the links (docs/reference/formats/rdh.md, "Rules that are learnt").
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "formats/rdh.h"

namespace rodeo::formats::testing {

/// The data of one endpoint: in each orbit a frame of each link; the pages of the links are sent in turn.
struct RdhStream {
  std::vector<std::uint8_t> links{0, 1, 2};
  std::uint16_t cru = 183;
  std::uint8_t endpoint = 0;
  bool shared_packet_counter = false;
  bool page_by_page = true;  ///< links take turns after each page; false: after each frame
  std::vector<std::uint32_t> orbits{100, 101, 102, 103};
  std::uint32_t pages = 3;  ///< pages of a frame; the last page has only a header
  std::uint16_t payload = 96;
  std::uint8_t first_packet = 0;
  std::uint32_t time_frame = rdh_trigger::kHeartbeat;  ///< additional trigger bits of the first frame of a time frame

  struct Page {
    Rdh header;
    std::uint8_t link = 0;
  };

  /// All pages in the order in which the endpoint sends them.
  std::vector<Page> sent() const {
    std::vector<Page> all;
    std::uint8_t shared = first_packet;
    std::map<std::uint8_t, std::uint8_t> own;
    const auto page = [&](std::uint32_t orbit, std::uint8_t link, std::uint32_t number) {
      const bool last = number + 1 == pages;
      const auto size = static_cast<std::uint16_t>(kRdhBytes + (last ? 0 : payload));
      std::uint8_t& packet = shared_packet_counter ? shared : own.try_emplace(link, first_packet).first->second;
      const RdhFields fields{
          .fee_id = static_cast<std::uint16_t>(endpoint << 8 | link),
          .system_id = 32,
          .offset_next = size,
          .memory_size = size,
          .link_id = link,
          .packet_counter = packet++,
          .cru_id = cru,
          .endpoint = endpoint,
          .orbit = orbit,
          .data_format = 2,
          .trigger_type = rdh_trigger::kOrbit | rdh_trigger::kHeartbeat | (orbit == orbits.front() ? time_frame : 0U),
          .page_number = static_cast<std::uint16_t>(number),
          .stop = last};
      all.push_back({fields.header(), link});
    };
    for (const std::uint32_t orbit : orbits) {
      if (page_by_page) {
        for (std::uint32_t number = 0; number < pages; ++number) {
          for (const std::uint8_t link : links) page(orbit, link, number);
        }
      } else {
        for (const std::uint8_t link : links) {
          for (std::uint32_t number = 0; number < pages; ++number) page(orbit, link, number);
        }
      }
    }
    return all;
  }

  /// The pages of some links as a file, link by link.
  std::vector<std::byte> file(const std::vector<std::uint8_t>& of) const {
    std::vector<std::byte> bytes;
    const std::vector<Page> all = sent();
    for (const std::uint8_t link : of) {
      for (const Page& page : all) {
        if (page.link == link) append(bytes, page.header);
      }
    }
    return bytes;
  }
  std::vector<std::byte> file() const { return file(links); }

  static void append(std::vector<std::byte>& bytes, const Rdh& header) {
    const std::size_t at = bytes.size();
    bytes.resize(at + header.offset_next());
    header.write(bytes.data() + at);
    std::uint32_t state = header.orbit() * 2654435761U + header.page_number();
    for (std::size_t i = at + kRdhBytes; i < bytes.size(); ++i) {
      state = state * 1664525U + 1013904223U;
      bytes[i] = static_cast<std::byte>(state >> 24);
    }
  }
};

/// Orbits of triggers, of which most (`usual` in 10) come one orbit after the other.
inline std::vector<std::uint32_t> mostly_next(std::uint32_t count, std::uint32_t usual = 6) {
  std::vector<std::uint32_t> orbits;
  std::uint32_t orbit = 0xffffff00U;  // orbits wrap
  for (std::uint32_t i = 0; i < count; ++i) orbits.push_back(orbit += i * 7 % 10 < usual ? 1 : 2 + i * i * 2654435761U % 97);
  return orbits;
}

/// `count` orbits from `first` on, each `step` after the previous one.
inline std::vector<std::uint32_t> every(std::uint32_t step, std::uint32_t count, std::uint32_t first = 0x3e390f80) {
  std::vector<std::uint32_t> orbits;
  for (std::uint32_t i = 0; i < count; ++i) orbits.push_back(first + i * step);
  return orbits;
}

/// Orbits of random triggers.
inline std::vector<std::uint32_t> at_random(std::uint32_t count) {
  std::vector<std::uint32_t> orbits;
  std::uint32_t orbit = 77;
  for (std::uint32_t i = 0; i < count; ++i) orbits.push_back(orbit += 1 + i * i * 2654435761U % 97);
  return orbits;
}

}  // namespace rodeo::formats::testing
