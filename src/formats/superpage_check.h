// Checks the superpages of a CRU or C-RORC, like ReadoutCard's acceptance test and beyond: RDH sizes, packet counters,
// heartbeat frames without a gap, alignment of time frames, payload patterns (docs/reference/formats/rdh.md, "Checking
// superpages"). Learns rules that differ between detectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "formats/provable.h"
#include "formats/rdh.h"
#include "formats/rdh_rules.h"

namespace rodeo::formats {

/// The contents behind the headers.
enum class PagePattern : std::uint8_t {
  unknown,       ///< any bytes: only headers are checked
  ddg,           ///< CRU's data generator: 16 bytes are {c, c, c & 0xffff, 0} in 32-bit words, c + 1 for the next 16
  words,         ///< C-RORC's generator: 32-bit words that count
  cru_internal,  ///< no headers: the eight words of 32 bytes are equal, + 1 for the next 32
  provable,      ///< provable payload in RDH pages, from emulated links
};

enum class SuperpageCounter : std::uint8_t {
  superpages,
  pages,
  bytes,
  bad_header,
  bad_size,
  no_offset,
  beyond_end,
  wrong_link,
  packet_counter,
  orbit,
  page_number,
  time_frame,
  payload,
  count,
};
inline constexpr std::size_t kSuperpageCounters = static_cast<std::size_t>(SuperpageCounter::count);

/// The descriptions, in the order of the enum: the first three counters count data, the others errors.
inline constexpr std::array<base::CounterInfo, kSuperpageCounters> kSuperpageCounterInfo{{
    {"superpages", "superpages", "superpages checked"},
    {"pages", "pages", "pages checked"},
    {"bytes", "bytes", "bytes of the superpages"},
    {"bad_header", "pages", "pages whose RDH has an unknown version or a wrong header size"},
    {"bad_size", "pages", "pages whose memory size is below 64 bytes or above the page"},
    {"no_offset", "superpages", "superpages whose rest was skipped because a page has no offset to the next"},
    {"beyond_end", "superpages", "superpages with a page beyond what the card reported"},
    {"wrong_link", "pages", "pages of another link than their superpage"},
    {"packet_counter", "pages",
     "pages whose packet counter does not follow the last one of the link, where each link counts by itself"},
    {"orbit", "pages", "pages that do not begin the next frame: heartbeat frames before them are missing, or have no end"},
    {"page_number", "pages", "pages whose number in their heartbeat frame does not follow the last one's"},
    {"time_frame", "pages", "pages that begin a time frame, but not a superpage"},
    {"payload", "pages", "pages whose payload is not the pattern"},
}};
constexpr bool is_error(SuperpageCounter counter) { return counter >= SuperpageCounter::bad_header; }

struct SuperpageCheckSettings {
  PagePattern pattern = PagePattern::unknown;
  std::uint32_t page_bytes = kRdhPageBytes;  ///< size of pages without headers; limit of pages with one; a multiple of 32
  std::uint32_t packet_counter_max = 255;    ///< the highest value; the next one is 0
  std::uint32_t every = 1;       ///< checks packet counter and payload of each N-th page, N = `every` from 1 to 255
  bool heartbeat_frames = true;  ///< a link sends frames of one orbit each: orbits and page numbers follow each other
  std::uint32_t time_frame_orbits = 256;  ///< 0: time frames are not checked
  /// After an error, continue from the values found; otherwise every later page has an error, too.
  bool resynchronise = true;
  std::uint64_t seed = 1;              ///< seed of provable payload
  std::size_t most_findings = 10'000;  ///< limit of the findings kept; all are counted
};

/// One error: its place, the expected value, and the value found.
struct SuperpageFinding {
  SuperpageCounter what;
  std::uint8_t link;
  std::uint64_t superpage;  ///< counted from 0 over the whole check
  std::uint32_t offset;     ///< place in the superpage: of the page, or of the first 32 bits of its payload that differ
  std::uint64_t expected;
  std::uint64_t found;
  std::uint32_t endpoint = 0;
};
/// "packet_counter: link 3, superpage 17, byte 8192: expected 5, found 7"; `endpoint` names it before the link, if not
/// empty.
std::string describe(const SuperpageFinding& finding, std::string_view endpoint = {});

/// One thread calls; any thread reads count() and errors(). Superpages may contain any bytes; the work for each page is
/// bounded. Allocates only for findings, for the first superpage of an endpoint, and for changes of the distance between
/// frames.
class SuperpageCheck {
 public:
  explicit SuperpageCheck(const SuperpageCheckSettings& settings);

  /// Checks one superpage of a link, as the card wrote it. Pass the superpages of a link in order. `endpoint`: its links may
  /// share a packet counter.
  void check(std::uint8_t link, std::span<const std::byte> superpage, std::uint32_t endpoint = 0);

  /// The end of the data: judges frames whose distance is unusual by evidence of all links. May be called again. For the
  /// checking thread.
  void finish();

  /// The count by the rules learnt up to now: an apparent error may turn out to be the rule, and the apparent rule an error.
  std::uint64_t count(SuperpageCounter counter) const { return counts_[static_cast<std::size_t>(counter)].get(); }
  std::uint64_t errors() const;
  /// The findings in the order of superpages; at most errors(). For the checking thread.
  std::vector<SuperpageFinding> findings() const;

  /// True if the links of some endpoint share their packet counter. For the checking thread, like all functions below.
  bool shares_packet_counters() const;
  /// The orbits from frame to frame, over all endpoints.
  struct OrbitSteps {
    std::set<std::uint32_t> usual;
    bool differ = false;  ///< some endpoint has no usual step
    bool vary = false;    ///< some endpoint has a usual step and many others
  };
  OrbitSteps orbit_steps() const;
  /// The first orbit of a link; nothing if it had no page.
  std::optional<std::uint32_t> first_orbit(std::uint8_t link) const;
  /// Links that fell silent. Apart from their last superpage, which a stop may have flushed, they brought nothing in the
  /// last eighth of the data, and nothing while every link brought four superpages; and their last orbit is the same
  /// distance behind the newest orbit of all links. (A slow link meets only one of these conditions.)
  /// The numbers are endpoint << 8 | link.
  std::vector<std::uint32_t> silent_links() const;

 private:
  struct Link {
    bool packets_known = false;
    bool pattern_known = false;
    bool frame_known = false;
    bool orbit_known = false;
    bool ended = false;  // the last page has the stop bit
    std::optional<std::uint32_t> first_orbit = {};
    std::uint64_t seen_at = 0;   // bytes of all links up to the last superpage of this link
    std::uint64_t alive_at = 0;  // bytes of all links up to the superpage before: a stop may have flushed the last one
    std::uint32_t orbit = 0;     // orbit of the last page
    std::int64_t position = 0;   // orbit of the last page, counted from the first orbit of the endpoint
    OrbitHistory history = {};
    std::uint32_t page_number = 0;  // page number in the heartbeat frame
    std::uint32_t packet = 0;       // packet counter of the last page checked
    std::uint32_t skipped = 0;      // pages since the last page checked
    std::uint32_t last_packet = 0;  // packet counter of the last page
    std::uint32_t next_frame = 0;   // orbit of the next time frame
    std::uint32_t pattern = 0;      // next value of the pattern
  };
  struct Endpoint {
    std::array<Link, 256> links{};
    PacketCounterRule packets;
    std::uint64_t packet_errors = 0;  // they count unless the links share the packet counter
    OrbitRule orbits;
    std::optional<std::uint32_t> first_orbit;
    std::size_t runs = 0;              // runs in the histories of all links
    std::uint64_t missing_frames = 0;  // frames missing by evidence, in earlier histories
  };
  // A finding that is an error by some rules and correct by others.
  struct Doubt {
    SuperpageFinding finding;
    std::uint32_t step = 0;  // orbits of the step
    std::int64_t from = 0;   // the orbit before the step
    bool counter_follows = false;
    bool others_arrived = false;  // other links have frames in the orbits that this link left out
  };

  void check_pages(Link& link, std::uint8_t number, std::span<const std::byte> superpage);
  void check_internal(Link& link, std::uint8_t number, std::span<const std::byte> superpage);
  void check_packet_counter(Link& link, std::uint8_t number, const Rdh& page, std::uint32_t offset);
  void check_heartbeat_frame(Link& link, std::uint8_t number, const Rdh& page, std::uint32_t offset);
  void check_time_frame(Link& link, std::uint8_t number, const Rdh& page, std::uint32_t offset);
  template <typename Write>
  void found_other(std::uint8_t link, std::uint32_t offset, std::span<const std::byte> payload, std::size_t size,
                   Write write);
  void check_payload(Link& link, std::uint8_t number, const Rdh& page, std::span<const std::byte> payload,
                     std::uint32_t offset, bool wanted);
  void add(SuperpageCounter counter, std::uint64_t n = 1) { counts_[static_cast<std::size_t>(counter)].add(n); }
  void found(SuperpageCounter what, std::uint8_t link, std::uint32_t offset, std::uint64_t expected, std::uint64_t value);
  void doubt(SuperpageCounter what, std::uint8_t link, std::uint32_t offset, std::uint64_t expected, std::uint64_t value,
             const OrbitHistory::Run& step = {});
  bool is_error_by_rules(const Doubt& doubt) const;
  static bool others_arrived(const Endpoint& endpoint, const Link& link, std::int64_t from, std::uint32_t step);
  void check_others(Endpoint& endpoint);
  void end_stretch(Endpoint& endpoint);
  void judge();

  SuperpageCheckSettings settings_;
  Provable provable_;
  std::map<std::uint32_t, std::unique_ptr<Endpoint>> endpoints_;
  std::uint32_t endpoint_number_ = 0;  // endpoint of the current superpage
  Endpoint* endpoint_ = nullptr;
  std::uint64_t orbit_errors_ = 0;  // errors that do not depend on the rule
  std::uint32_t orbits_here_ = 0;   // orbits that began in this superpage, one after the other
  std::uint32_t most_orbits_ = 1;   // most orbits in a superpage
  std::uint64_t most_bytes_ = 0;
  std::uint64_t superpage_ = 0;
  std::array<base::Gauge<std::uint64_t>, kSuperpageCounters> counts_;
  std::vector<SuperpageFinding> findings_;
  std::vector<Doubt> doubts_;
  bool doubts_full_ = false;
};

// Writes the patterns. Each function returns the next counter; only whole units of the pattern (16, 4 and 32 bytes) are
// written.
std::uint32_t write_ddg(std::span<std::byte> payload, std::uint32_t counter);
std::uint32_t write_words(std::span<std::byte> payload, std::uint32_t counter);
std::uint32_t write_cru_internal(std::span<std::byte> page, std::uint32_t counter);

/// True if the bytes are the pattern from `counter` on.
bool ddg_matches(std::span<const std::byte> payload, std::uint32_t counter);
bool words_match(std::span<const std::byte> payload, std::uint32_t counter);
bool cru_internal_matches(std::span<const std::byte> page, std::uint32_t counter);

}  // namespace rodeo::formats
