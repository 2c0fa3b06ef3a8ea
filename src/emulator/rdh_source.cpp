#include "emulator/rdh_source.h"

#include <algorithm>

#include "emulator/pattern.h"
#include "formats/rdh.h"
#include "formats/rdh_payload.h"

namespace rodeo::emulator {

namespace trigger = formats::rdh_trigger;

void RdhSource::restart(bool generator) {
  frame_ = last_frame_ = 0;
  in_frame_ = any_ = false;
  packet_counter_ = 0;
  if (generator) counter_ = 0;
  corrupt_ = truncate_ = inject_ = false;
}

bool RdhSource::begins_superpage(std::uint32_t time_frame_length) const {
  if (in_frame_) return false;
  // Frames may have been lost, so compare the time frame of this frame with that of the last one.
  return !any_ || (time_frame_length > 0 && frame_ / time_frame_length != last_frame_ / time_frame_length);
}

/// Payload bytes of the next page; 0 for the last page of a frame, which has only a header.
std::size_t RdhSource::payload_of_page() const {
  const std::size_t left = in_frame_ ? frame_left_ : settings_.frame_bytes;
  return std::min(left, settings_.page_bytes - formats::kRdhBytes);
}

std::size_t RdhSource::next_page_bytes(bool dynamic_offset) const {
  if (!dynamic_offset) return settings_.page_bytes;
  return formats::kRdhBytes + payload_of_page();
}

void RdhSource::write_pattern(std::byte* memory, std::size_t bytes) {
  counter_ = stream_cru_internal(memory, bytes, counter_);
}

std::size_t RdhSource::write_page(std::byte* page, bool dynamic_offset, std::uint32_t time_frame_length) {
  const bool first = !in_frame_;
  if (first) {
    in_frame_ = true;
    frame_left_ = settings_.frame_bytes;
    page_of_frame_ = 0;
    start_ = !any_;
    any_ = true;
    last_frame_ = frame_;
  }
  const std::size_t payload = payload_of_page();
  const std::size_t bytes = next_page_bytes(dynamic_offset);
  formats::RdhFields fields{.version = settings_.version,
                            .fee_id = identity_.fee_id,
                            .system_id = identity_.system_id,
                            .offset_next = static_cast<std::uint16_t>(bytes),
                            .memory_size = static_cast<std::uint16_t>(formats::kRdhBytes + payload),
                            .link_id = identity_.link,
                            .packet_counter = packet_counter_++,
                            .cru_id = identity_.cru_id,
                            .endpoint = identity_.endpoint,
                            .orbit = orbit_of(frame_),
                            .trigger_type = trigger::kOrbit | trigger::kHeartbeat,
                            .page_number = page_of_frame_++,
                            .stop = payload == 0};
  if (time_frame_length > 0 && frame_ % time_frame_length == 0) fields.trigger_type |= trigger::kTimeFrame;
  if (start_) fields.trigger_type |= trigger::kStartOfContinuous;
  const formats::Rdh rdh = fields.header();
  std::byte* const data = page + formats::kRdhBytes;
  switch (settings_.payload) {
    case formats::PagePattern::ddg: counter_ = stream_ddg(data, payload, counter_); break;
    case formats::PagePattern::words: counter_ = stream_words(data, payload, counter_); break;
    default: {
      const L1Id orbit{rdh.orbit()};
      stream_provable(data, payload, provable_.header(orbit), provable_.key(formats::rdh_payload_link(rdh), orbit));
    }
  }
  damaged_ = corrupt_ || (truncate_ && payload > 0);
  if (corrupt_) {
    corrupt_ = false;
    fields.version = 0xee;
  }
  if (truncate_ && payload > 0) {
    truncate_ = false;
    fields.memory_size = static_cast<std::uint16_t>(bytes + 32);
  }
  fields.header().write(page);
  if (inject_ && payload >= 16) {
    inject_ = false;
    _mm_sfence();
    page[formats::kRdhBytes + 8] ^= std::byte{0x80};
  }
  frame_left_ -= payload;
  if (payload == 0) {
    in_frame_ = false;
    ++frame_;
  }
  return bytes;
}

}  // namespace rodeo::emulator
