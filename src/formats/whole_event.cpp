#include "formats/whole_event.h"

#include <span>

#include "formats/words.h"

namespace rodeo::formats {

void append_whole_event_header(std::vector<std::byte>& out, const WholeEventHeader& header, std::size_t rob_bytes) {
  constexpr std::size_t kInfoWords = 3;
  const std::size_t header_words = kGenericHeaderWords + 1 + kEventSpecificWords5 + kInfoWords + header.stream_tags.size();
  const std::size_t trailer = header.checksum == ChecksumType::none ? 0 : 1;
  const auto put = [&](std::size_t value) { append_word(out, static_cast<std::uint32_t>(value)); };
  put(kFullEventMarker);
  put(header_words + rob_bytes / kWordBytes + trailer);
  put(header_words);
  put(std::size_t{kEventVersion5} << 16);
  put(0);  // source id of a full event
  put(1);
  put(header.status);
  put(static_cast<std::size_t>(header.checksum));
  put(header.bc_time_s);
  put(header.bc_time_ns);
  put(header.global_id & 0xffffffff);
  put(header.global_id >> 32);
  put(header.run_type);
  put(header.run_number);
  put(header.lumi_block);
  put(header.l1id.value);
  put(header.bcid);
  put(header.trigger_type);
  put(0);                       // the event is not compressed
  put(rob_bytes / kWordBytes);  // words of the payload
  put(0);                       // L1 info
  put(0);                       // L2 info
  put(kInfoWords);
  put(kFarmInfo);
  put(header.scan_step);
  put(header.build_only ? kFarmInfoBuildOnly : 0);
  put(header.stream_tags.size());
  append_bytes(out, std::as_bytes(std::span(header.stream_tags)));
}

}  // namespace rodeo::formats
