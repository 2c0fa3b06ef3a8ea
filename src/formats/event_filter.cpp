#include "formats/event_filter.h"

#include <algorithm>
#include <vector>

#include "formats/stream_tags.h"

namespace rodeo::formats {
namespace {

bool within(L1Id id, const std::pair<L1Id, L1Id>& range) {
  const auto [first, last] = range;
  return first <= last ? first <= id && id <= last : first <= id || id <= last;
}

}  // namespace

std::vector<std::string> streams_of(const FullEventView& event) {
  std::vector<std::string> streams;
  for (const StreamTag& tag : decode_stream_tags(stream_tag_text(event.stream_tags)))
    streams.push_back(tag.type + "_" + tag.name);
  return streams;
}

FilterVerdict EventFilter::judge(const FullEventView& event) const {
  using enum FilterVerdict;
  const std::uint32_t bits = event.status.empty() ? 0 : event.status[0];
  if (status == Status::good && bits != 0) return other_status;
  if (status == Status::flagged && bits == 0) return other_status;
  if (status_bits != 0 && (bits & status_bits) == 0) return other_status;
  if (!streams.empty()) {
    const auto has = [&](const std::string& stream) { return streams.contains(stream); };
    if (!std::ranges::any_of(streams_of(event), has)) return other_stream;
  }
  if (!trigger_types.empty() && !trigger_types.contains(event.trigger_type)) return other_trigger_type;
  if (l1ids && !within(event.l1id, *l1ids)) return other_l1id;
  return kept;
}

}  // namespace rodeo::formats
