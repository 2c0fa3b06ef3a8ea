// Files of superpages, as a CRU or C-RORC wrote them (`rodeo card bench dma --to-file`): their contents, and whether they
// are sound (docs/reference/formats/rdh.md, "Dumps").
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/event_dump.h"
#include "formats/findings.h"
#include "formats/superpage_check.h"

namespace rodeo::formats {

struct SuperpageDumpInfo {
  struct Link {
    std::uint8_t link = 0;
    std::uint16_t cru = 0;
    std::uint8_t endpoint = 0;
    std::uint16_t fee_id = 0;  ///< FEE id of the first page
    std::uint64_t pages = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t heartbeat_frames = 0;  ///< complete frames: pages with the stop bit
    std::uint32_t first_orbit = 0;
    std::uint32_t last_orbit = 0;
  };

  PagePattern pattern = PagePattern::unknown;  ///< pattern of the first payload with a known one
  std::uint32_t time_frame_orbits = 0;         ///< most frequent distance between time frames; 0: fewer than two time frames
  bool shared_packet_counters = false;         ///< the links of some endpoint share their packet counter
  /// Most frequent distance of two frames of a link; nothing if it varies or no link has two frames.
  std::optional<std::uint32_t> orbit_step;
  std::vector<std::uint32_t> orbit_steps;  ///< the steps of all endpoints
  bool orbits_differ = false;              ///< an endpoint has no usual step
  bool orbits_vary = false;                ///< an endpoint has a usual step and many others
  std::vector<Link> links;                 ///< the links by endpoint and number; empty without headers (cru_internal)
  std::array<std::uint64_t, kSuperpageCounters> counters{};
  Findings findings;  ///< offsets are in the file

  std::uint64_t counter(SuperpageCounter which) const { return counters[static_cast<std::size_t>(which)]; }
  bool sound() const { return findings.total() == 0; }
};

/// Distinguishes the endpoints whose pages are in one file. More endpoints than possible mean damaged headers: then all
/// count as one.
class DumpEndpoints {
 public:
  explicit DumpEndpoints(std::span<const std::byte> file);
  /// The number of the page's endpoint: endpoints count from 0 in the order of their first pages.
  std::uint32_t of(const Rdh& page) const;
  std::size_t count() const { return std::max<std::size_t>(numbers_.size(), 1); }
  /// "CRU 0xb7 endpoint 1"; empty if the file has one endpoint.
  std::string name_of(std::uint32_t number) const;

 private:
  static constexpr std::size_t kMost = 64;
  static std::uint32_t key_of(const Rdh& page) { return static_cast<std::uint32_t>(page.endpoint()) << 12 | page.cru_id(); }
  std::map<std::uint32_t, std::uint32_t> numbers_;
};

/// True if the file begins with an RDH that is followed by another at its offset, or with the data of a CRU's internal
/// generator.
bool starts_like_superpages(std::span<const std::byte> file);

/// Checks the whole file with SuperpageCheck, as `rodeo card bench` does. `seed`: seed of provable payload. `worked` gets
/// the number of bytes checked since its last call, at each superpage, and all of them by the end; it may be empty.
SuperpageDumpInfo inspect_superpage_dump(std::span<const std::byte> file, std::uint64_t seed,
                                         const std::function<void(std::uint64_t bytes)>& worked = {});

/// Calls visit(offset of the page in the file) for each page with a plausible header, until it returns false.
void for_each_page(std::span<const std::byte> file, const std::function<bool(std::size_t)>& visit);

/// A page as a tree: every header word with its name, and the payload. The header must be plausible.
DumpNode dump_page(std::span<const std::byte> file, std::size_t offset, std::string title);

}  // namespace rodeo::formats
