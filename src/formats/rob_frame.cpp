#include "formats/rob_frame.h"

#include <algorithm>

#include "formats/rod.h"
#include "formats/words.h"

namespace rodeo::formats {
namespace {

void append_status(const Fragment& fragment, std::vector<std::byte>& out) {
  append_word(out, fragment.status);
  if (fragment.missing == 0 && fragment.removed == 0) return;
  append_word(out, fragment.missing);
  std::size_t listed = 0;
  fragment.for_each_link(fragment.missing_links, [&](std::uint32_t link_id) {
    if (listed++ < kMissingListed) append_word(out, link_id);
  });
  append_bytes(out, std::as_bytes(fragment.missing_links));
  append_bytes(out, std::as_bytes(fragment.removed_links));
}

void append_headers(std::vector<std::byte>& out, const RobFrame& frame, std::size_t rod_words, std::uint32_t status,
                    const RodHeader& rod) {
  const std::size_t words = kRobHeaderWords + rod_words + (frame.checksum == ChecksumType::none ? 0 : 1);
  const std::uint32_t header[kRobHeaderWords] = {kRobMarker,
                                                 static_cast<std::uint32_t>(words),
                                                 kRobHeaderWords,
                                                 std::uint32_t{kEventVersion5} << 16,
                                                 rod.source_id.value,
                                                 1,
                                                 status,
                                                 static_cast<std::uint32_t>(frame.checksum)};
  append_bytes(out, std::as_bytes(std::span(header)));
  std::byte rod_header[kRodHeaderWords * kWordBytes];
  store_rod_header(rod_header, rod);
  append_bytes(out, rod_header);
}

void append_trailer(std::vector<std::byte>& out, std::size_t status_words, std::size_t data_words, StatusPosition position) {
  std::byte trailer[kRodTrailerWords * kWordBytes];
  store_rod_trailer(trailer, status_words, data_words, position);
  append_bytes(out, trailer);
}

}  // namespace

std::size_t rod_status_words(const Fragment& fragment) {
  if (fragment.missing == 0 && fragment.removed == 0) return 1;
  const std::size_t listed = fragment.missing_links.empty() ? 0 : std::min<std::size_t>(fragment.missing, kMissingListed);
  return 2 + listed + fragment.missing_links.size() + fragment.removed_links.size();
}

std::size_t rod_words(const Fragment& fragment, std::size_t data_bytes) {
  return kRodHeaderWords + rod_status_words(fragment) + data_bytes / kWordBytes + kRodTrailerWords;
}

void append_rob_head(std::vector<std::byte>& out, const RobFrame& frame, const Fragment& fragment, L1Id l1id,
                     std::size_t data_bytes) {
  const std::uint32_t status = fragment.status & ~fragment_status::kLinksRemoved;  // this bit has another meaning in a ROB
  append_headers(out, frame, rod_words(fragment, data_bytes), status,
                 {.minor_version = frame.rod_minor_version,
                  .source_id = fragment.source_id,
                  .run_number = frame.run_number,
                  .l1id = l1id,
                  .bcid = fragment.bcid,
                  .trigger_type = fragment.trigger_type,
                  .detector_event_type = frame.detector_event_type});
  if (frame.status_position == StatusPosition::before_data) append_status(fragment, out);
}

void append_rob_tail(std::vector<std::byte>& out, const RobFrame& frame, const Fragment& fragment, std::size_t data_bytes) {
  if (frame.status_position == StatusPosition::after_data) append_status(fragment, out);
  append_trailer(out, rod_status_words(fragment), data_bytes / kWordBytes, frame.status_position);
}

void append_absent_rob(std::vector<std::byte>& out, const RobFrame& frame, SourceId source_id, L1Id l1id,
                       std::uint32_t status) {
  append_headers(out, frame, kRodHeaderWords + 1 + kRodTrailerWords, status,
                 {.minor_version = frame.rod_minor_version,
                  .source_id = source_id,
                  .run_number = frame.run_number,
                  .l1id = l1id,
                  .detector_event_type = frame.detector_event_type});
  append_word(out, status & 0xffff);  // the upper half belongs to the ROB
  append_trailer(out, 1, 0, frame.status_position);
}

}  // namespace rodeo::formats
