// One full event: the decoder agrees with its slow twin on any bytes, and all other code for events (checks,
// chunk records, the dump, stream tags, merging, filtering, comparing) survives them. Input: the event.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/event_check.h"
#include "formats/event_diff.h"
#include "formats/event_dump.h"
#include "formats/event_filter.h"
#include "formats/event_merge.h"
#include "formats/event_walk.h"
#include "formats/full_event.h"
#include "formats/links_string.h"
#include "formats/rob.h"
#include "formats/rod_data.h"
#include "formats/slow_event.h"
#include "formats/stream_tags.h"
#include "fuzz/check.h"

namespace {

using namespace rodeo::formats;
namespace slow = rodeo::slow;

template <typename Decode>
auto slowly(Decode decode, std::span<const std::byte> bytes) -> std::optional<decltype(decode(slow::Words{}))> {
  try {
    return decode(slow::words_of(bytes));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void check_rob(const RobView& rob) {
  const auto twin = slowly(slow::rob, rob.words.bytes());
  FUZZ_CHECK(twin.has_value() && twin->payload == rob.payload.to_vector() && twin->status == rob.status.to_vector());
  const Decoded<RodView> rod = rob.rod();
  const auto slow_rod = slowly(slow::rod, rob.payload.bytes());
  FUZZ_CHECK(rod.has_value() == slow_rod.has_value());
  if (!rod) return;
  FUZZ_CHECK(rod->status.to_vector() == slow_rod->status && rod->data.to_vector() == slow_rod->data);
  std::size_t chunks = 0;
  const bool whole = for_each_chunk_record(rod->data.bytes(), [&](const ChunkRecord&) { ++chunks; }).has_value();
  const auto slow_chunks = slowly(slow::chunks, rod->data.bytes());
  FUZZ_CHECK(whole == slow_chunks.has_value() && (!whole || chunks == slow_chunks->size()));
}

// Merges the event with itself, filters and compares it: a whole event stays whole.
void check_what_is_made_of_it(std::span<const std::byte> bytes, const FullEventView& event, bool sound) {
  const auto nobody = [](const EventDifference&) {};
  diff_events(bytes, bytes.first(bytes.size() / 2), {}, nobody);
  const EventFilter filter{.streams = {"physics_Main"}};
  FUZZ_CHECK(filter.judge(event) == FilterVerdict::kept || filter.judge(event) == FilterVerdict::other_stream);
  (void)read_links_string("Rodeo-Links=" + stream_tag_text(event.stream_tags));
  if (!sound) return;
  std::vector<std::byte> buffer;
  const EventPiece pieces[] = {{event, *event.robs(buffer)}, {event, *event.robs(buffer)}};
  EventMerger merger({rodeo::SourceId{1}});
  const MergedPieces merged = merger.merge(pieces);
  Findings findings;
  FUZZ_CHECK(EventChecker({}).check(merged.bytes, 0, "merged", findings));
  diff_events(bytes, merged.bytes, {}, nobody);
}

// The walk for readers of columns, which accepts the same events.
bool walks(std::span<const std::byte> bytes, bool chunk_records) {
  struct Counter {
    std::size_t events = 0;
    std::size_t bytes = 0;
    void event(const FullEventView& /*view*/) { ++events; }
    void fragment(const RobView& rob, const RodView* /*rod*/, const AbsentLinks& /*absent*/) const {
      FUZZ_CHECK(events == 1 && !rob.words.empty());
    }
    void chunk(const ChunkRecord& record) { bytes += record.bytes.size(); }
  } counter;
  std::vector<std::byte> buffer;
  const auto whole = walk_event(bytes, {.chunk_records = chunk_records, .checksums = true}, buffer, counter);
  FUZZ_CHECK(whole.has_value() || !whole.error().message().empty());
  FUZZ_CHECK(!whole || counter.events == 1);
  return whole.has_value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Decoded<FullEventView> event = decode_full_event(bytes);
  const auto twin = slowly(slow::event, bytes);
  FUZZ_CHECK(event.has_value() == twin.has_value());
  FUZZ_CHECK(event.has_value() || !event.error().message().empty());

  Findings findings;
  EventChecker foreign({});
  const bool sound = foreign.check(bytes, 0, "event", findings);
  FUZZ_CHECK(sound == (findings.total() == 0));
  EventChecker ours({.ours = true, .run_number = 1, .provable = ProvableMark{.seed = 7}});
  const bool all_ours = ours.check(bytes, 0, "event", findings);
  FUZZ_CHECK(sound || !all_ours);
  FUZZ_CHECK(walks(bytes, false) == sound && (walks(bytes, true) || !all_ours));
  (void)decode_stream_tags(std::string_view(reinterpret_cast<const char*>(data), size));
  FUZZ_CHECK(!render_dump(dump_event(bytes, "event").root, {}).empty());
  if (!event) return 0;

  FUZZ_CHECK(twin->payload == event->payload.to_vector() && twin->checksum == event->checksum);
  (void)stream_tag_text(event->stream_tags);
  std::vector<std::byte> buffer;
  const Decoded<WordView> robs = event->robs(buffer);
  if (robs) (void)for_each_rob(*robs, [](const RobView& rob, std::size_t) { check_rob(rob); });
  check_what_is_made_of_it(bytes, *event, sound);
  return 0;
}
