// Groups the RDH pages of superpages into chunks: heartbeat frames, or whole time frames (docs/reference/formats/rdh.md,
// "From pages to chunks").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/counters.h"
#include "formats/decode_buffer.h"
#include "formats/rdh.h"
#include "formats/rdh_rules.h"

namespace rodeo::formats {

enum class RdhFrameCounter : std::uint8_t {
  pages,
  frames,
  joined_frames,
  bad_rdh,
  skipped_bytes,
  wrong_link,
  page_gaps,
  packet_gaps,
  lost_pages,
  no_stop,
  no_begin,
  before_join,
  oversize,
  cut_bytes,
  unfinished,
  short_frames,
  count,
};
inline constexpr std::size_t kRdhFrameCounters = static_cast<std::size_t>(RdhFrameCounter::count);

/// The descriptions, in the order of the enum.
inline constexpr std::array<base::CounterInfo, kRdhFrameCounters> kRdhFrameCounterInfo{{
    {"pages", "pages", "RDH pages seen"},
    {"frames", "frames", "frames handed over"},
    {"joined_frames", "frames", "frames put together from several superpages"},
    {"bad_rdh", "superpages", "superpages whose rest was skipped because a header in them is impossible"},
    {"skipped_bytes", "bytes", "bytes skipped after a bad header"},
    {"wrong_link", "pages", "pages skipped because they name another link than their superpage"},
    {"page_gaps", "gaps", "pages that do not follow the last one of their frame: pages of the frame are missing"},
    {"packet_gaps", "gaps",
     "pages whose packet counter does not follow the link's last one, where each link counts its own"},
    {"lost_pages", "pages", "pages missing at gaps of packet counters (modulo 256, so more may be missing)"},
    {"no_stop", "frames", "frames cut short because another began before their stop bit"},
    {"no_begin", "frames", "frames whose first page is missing"},
    {"before_join", "pages", "pages dropped because their frame began before the stream was joined"},
    {"oversize", "frames", "frames cut to the configured maximum size"},
    {"cut_bytes", "bytes", "bytes cut off frames above the maximum size"},
    {"unfinished", "frames", "frames still open when the stream ended"},
    {"short_frames", "frames", "time frames that the end of the stream cut short between two heartbeat frames"},
}};

/// True if the counter shows damage or loss.
constexpr bool is_anomaly(RdhFrameCounter counter) {
  return counter >= RdhFrameCounter::bad_rdh && counter != RdhFrameCounter::before_join &&
         counter != RdhFrameCounter::cut_bytes && counter != RdhFrameCounter::unfinished &&
         counter != RdhFrameCounter::short_frames;
}

/// The decoder of one endpoint of a card for one worker. A frame is a run of one chunk: all pages of one link from a frame's
/// first RDH to the end of its last payload, with headers and padding between. It points into its superpage or, for a frame
/// in several superpages, into the DecodeBuffer. One thread calls; any thread reads counters(). Superpages may contain any
/// bytes. Never allocates after construction.
class RdhFrameDecoder {
 public:
  struct Options {
    std::uint32_t orbits_per_frame = 1;  ///< 1: heartbeat frames; length of a time frame: whole time frames
    /// Limit for frames in several superpages: longer ones are cut, marked and counted.
    std::uint32_t max_chunk_bytes = 1024 * 1024;
    /// Receives the pieces of joined frames, as places in the superpages, like in BlockDecoder.
    JoinedParts* parts = nullptr;
  };

  /// `links[i]` is the RDH link id (0 to 255) of the link with index i. Throws SetupError if one is named twice or an option
  /// is zero.
  RdhFrameDecoder(const Options& options, std::span<const std::uint8_t> links);

  /// The room that decode() needs to make progress.
  DecodeBuffer::Capacity room() const;
  /// The room that finish() needs.
  DecodeBuffer::Capacity finish_room() const;

  /// Decodes pages of a superpage of `link` from byte `from` on and appends frames to `out`. Returns the number of bytes
  /// taken: fewer than available only if `out` is full; at least one page if `out` is empty and has room(). Call it until
  /// the superpage is done; the superpage must not change while its runs are in use.
  std::size_t decode(std::uint8_t link, std::span<const std::byte> superpage, std::size_t from, DecodeBuffer& out);

  /// Switches a link on or off. Superpages of an unwanted link are skipped, and its open frame is dropped. A link that is
  /// wanted again begins with the next begin of a frame. Call it between two decode().
  void want(LinkIndex link, bool wanted);

  /// Ends the stream: open frames are completed, marked software-truncated; except for time frames
  /// that lack only later orbits. `out` needs finish_room().
  void finish(DecodeBuffer& out);

  const base::CounterBlock<RdhFrameCounter>& counters() const { return counters_; }

 private:
  static constexpr LinkIndex kUnmapped = 0xffff;

  struct Link {
    bool joined = false;
    bool open = false;
    bool stopped = false;  // the last page of the link has the stop bit
    std::uint8_t status = 0;
    std::uint8_t next_packet = 0;
    std::uint32_t orbit = 0;           // orbit of the last page
    std::uint32_t page_number = 0;     // page number of the last page
    std::uint32_t phase = 0;           // orbit of the begin of frames, modulo orbits_per_frame
    std::uint32_t frame = 0;           // the open frame: its orbit divided by orbits_per_frame
    const std::byte* begin = nullptr;  // begin of the open frame in the current superpage
    const std::byte* end = nullptr;    // end of the payload of the last page
    const std::byte* next = nullptr;   // end of the last page, padding included
    std::size_t parked = 0;            // bytes of the frame from earlier superpages
    std::size_t parked_end = 0;        // the part of `parked` up to the end of the last payload
    std::uint64_t length = 0;          // parked and parked_end, if nothing had been cut
    std::uint64_t length_end = 0;
  };

  enum class Order : std::uint8_t { next, gap, other_frame };
  Order order_of(const Link& link, const Rdh& page, std::uint32_t frame) const;
  bool may_follow(const Link& link, const Rdh& page) const;
  void learn_rules(const Link& link, const Rdh& page, Order order);
  void count_packet_gaps();
  bool start_frame(Link& link, const Rdh& page, bool follows);
  void close(Link& link, LinkIndex index, DecodeBuffer& out);
  void park(Link& link, LinkIndex index);
  void hand_over_parts(LinkIndex index, std::size_t parked, std::span<const std::byte> here);
  std::byte* parked_bytes(LinkIndex index) { return parked_.get() + std::size_t{index} * options_.max_chunk_bytes; }

  Options options_;
  std::vector<std::uint8_t> numbers_;  // RDH link id of each link
  std::array<LinkIndex, 256> index_of_link_;
  std::vector<Link> links_;
  std::vector<JoinedParts> open_parts_;  // pieces of each link's open frame, if the options ask for them
  std::unique_ptr<std::byte[]> parked_;
  PacketCounterRule packets_;
  OrbitRule orbits_;
  // Gaps of packet counters. They are losses only if each link has its own counter.
  std::uint64_t doubtful_gaps_ = 0;
  std::uint64_t doubtful_pages_ = 0;
  base::CounterBlock<RdhFrameCounter> counters_;
};

}  // namespace rodeo::formats
