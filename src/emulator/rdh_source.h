// The data of a CRU's or C-RORC's link: heartbeat frames as RDH pages with counting payload, or the internal generator's
// pattern.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/provable.h"
#include "formats/superpage_check.h"

namespace rodeo::emulator {

struct RdhSourceSettings {
  std::uint8_t version = 7;
  formats::PagePattern payload = formats::PagePattern::provable;  ///< provable, ddg or words
  std::size_t page_bytes = 8192;                                  ///< largest page, a multiple of 32
  std::size_t frame_bytes =
      65536;  ///< payload of a heartbeat frame of one link, a multiple of 32; takes as many pages as needed
  std::uint32_t first_orbit = 0x1000;
  std::uint64_t seed = 1;  ///< seed of provable payload
};

/// The state of one link. For one thread. Owns no memory.
class RdhSource {
 public:
  struct Identity {
    std::uint8_t link = 0;
    std::uint8_t endpoint = 0;
    std::uint16_t cru_id = 0;
    std::uint16_t fee_id = 0;
    std::uint8_t system_id = 0;
  };

  RdhSource() = default;
  explicit RdhSource(RdhSourceSettings settings) : settings_(settings), provable_(settings.seed) {}

  void identify(Identity identity) { identity_ = identity; }
  /// Starts a run: packet counters and frames start again; with `generator` also the payload's counter.
  void restart(bool generator = true);

  /// The number of the current frame if in_frame(), else of the next one.
  std::uint64_t frame() const { return frame_; }
  bool in_frame() const { return in_frame_; }
  /// Skips frames: the next one is `frame`. Call only between frames.
  void skip_to(std::uint64_t frame) { frame_ = frame; }

  /// True if the next page must be the first of a superpage: it begins a time frame, or the run.
  bool begins_superpage(std::uint32_t time_frame_length) const;
  /// Bytes that the next page takes in a superpage.
  std::size_t next_page_bytes(bool dynamic_offset) const;
  /// Writes the next page into `page`, which has room for next_page_bytes(); returns this size. A frame must be due.
  std::size_t write_page(std::byte* page, bool dynamic_offset, std::uint32_t time_frame_length);

  /// True if a fault damaged the last page, so that its end cannot be found.
  bool page_is_damaged() const { return damaged_; }

  /// Writes the bare pattern of the internal generator; `bytes` a multiple of 32.
  void write_pattern(std::byte* memory, std::size_t bytes);
  void reset_counter() { counter_ = 0; }

  std::uint32_t orbit_of(std::uint64_t frame) const { return settings_.first_orbit + static_cast<std::uint32_t>(frame); }

  // Faults of the next page.
  void skip_packet_counter() { ++packet_counter_; }
  void corrupt_header() { corrupt_ = true; }
  void truncate_page() { truncate_ = true; }
  void inject_error() { inject_ = true; }

 private:
  std::size_t payload_of_page() const;

  RdhSourceSettings settings_;
  formats::Provable provable_{1};
  Identity identity_;
  std::uint64_t frame_ = 0;
  bool in_frame_ = false;
  std::size_t frame_left_ = 0;  // payload bytes that are left
  std::uint16_t page_of_frame_ = 0;
  std::uint8_t packet_counter_ = 0;
  std::uint32_t counter_ = 0;
  std::uint64_t last_frame_ = 0;  // the last frame written
  bool start_ = false;            // the current frame is the run's first
  bool any_ = false;              // a frame was written
  bool corrupt_ = false;
  bool truncate_ = false;
  bool inject_ = false;
  bool damaged_ = false;
};

}  // namespace rodeo::emulator
