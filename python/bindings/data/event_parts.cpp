#include "event_parts.h"

#include "formats/stream_tags.h"

namespace rodeo::python::data {
namespace {

using namespace formats;

struct Taker {
  EventParts& parts;

  void event(const FullEventView& view) const {
    parts.fields = view;
    parts.status = view.status.to_vector();
    parts.stream_tags = stream_tag_text(view.stream_tags);
  }
  void fragment(const RobView& rob, const RodView* rod, const AbsentLinks& absent) const {
    FragmentParts& taken = parts.fragments.emplace_back();
    taken.source_id = rob.source_id.value;
    taken.rob_status = rob.status.empty() ? 0 : rob.status[0];
    taken.first_row = parts.rows.size();
    taken.payload = rob.payload.bytes();
    taken.has_rod = rod != nullptr;
    if (rod == nullptr) return;
    taken.run_number = rod->header.run_number;
    taken.l1id = rod->header.l1id.value;
    taken.bcid = rod->header.bcid;
    taken.trigger_type = rod->header.trigger_type;
    taken.detector_event_type = rod->header.detector_event_type;
    taken.status = rod->status.to_vector();
    taken.missing = absent.missing;
    taken.removed = absent.removed();
    taken.missing_ids = absent.listed.to_vector();
    taken.payload = rod->data.bytes();
  }
  void chunk(const ChunkRecord& record) const {
    FragmentParts& last = parts.fragments.back();
    ++last.rows;
    parts.rows.push_back({.offset = record.bytes.data() - last.payload.data(),
                          .size = static_cast<std::uint32_t>(record.bytes.size()),
                          .link = record.header.link_id,
                          .status = status_of(record.header)});
  }
};

}  // namespace

Decoded<void> EventParts::take_apart(const EventChecks& checks) {
  fragments.clear();
  rows.clear();
  chunk_records = checks.chunk_records;
  return walk_event(raw, checks, plain, Taker{*this});
}

}  // namespace rodeo::python::data
