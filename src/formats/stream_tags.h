// Stream tags: the data streams of an event, as text packed into words of the event header
// (docs/reference/formats/event.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/words.h"

namespace rodeo::formats {

struct StreamTag {
  std::string name = "Main";     ///< without quotes and angle brackets
  std::string type = "physics";  ///< physics, calibration, debug, express, monitoring, reserved, unknown
  bool obeys_lumi_block = true;
  std::vector<std::uint32_t> robs = {};  ///< partial events: only these ROBs
  std::vector<std::uint8_t> dets = {};   ///< partial events: only these subdetectors

  bool operator==(const StreamTag&) const = default;
};

/// The tags as text, padded with NUL to words.
std::vector<std::uint32_t> encode_stream_tags(std::span<const StreamTag> tags);

/// The tags in a text; malformed parts are skipped. Accepts any bytes.
std::vector<StreamTag> decode_stream_tags(std::string_view text);

/// The text without its padding; unprintable bytes are kept.
std::string stream_tag_text(WordView words);

}  // namespace rodeo::formats
