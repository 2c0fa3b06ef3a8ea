#include "formats/event_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/checksum.h"
#include "formats/event_ids.h"
#include "formats/fid.h"
#include "formats/rod_data.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {

struct EventChecker::Place {
  const std::string& event;
  std::string rob;           // ", ROB 0x00610001", or nothing
  std::uint64_t offset = 0;  // place of the event in the file
  bool exact = true;         // offsets inside the event are offsets in the file (it is not compressed)
  Findings& findings;

  void report(std::uint64_t at, const std::string& what) const {
    findings.add(exact ? offset + at : offset, fmt::format("{}{}: {}", event, rob, what));
  }
};

namespace {

std::string differs(const char* field, std::uint64_t found, const char* from, std::uint64_t expected) {
  return fmt::format("{} is {:#x}, but the {} has {:#x}", field, found, from, expected);
}

constexpr std::uint32_t kTruncatedRob = 0x08000000;

}  // namespace

EventTotals& EventTotals::operator+=(const EventTotals& more) {
  for (std::uint64_t EventTotals::* const count :
       {&EventTotals::events, &EventTotals::unproven_headers, &EventTotals::robs, &EventTotals::incomplete_robs,
        &EventTotals::missing_links, &EventTotals::robs_without_removed, &EventTotals::removed_links, &EventTotals::chunks,
        &EventTotals::flagged_chunks, &EventTotals::wrong_chunks, &EventTotals::wrong_in_flagged,
        &EventTotals::proven_chunks, &EventTotals::rod_data_bytes, &EventTotals::events_with_checksum,
        &EventTotals::robs_with_checksum})
    this->*count += more.*count;
  return *this;
}

EventChecker::EventChecker(const EventExpectations& expectations) : expectations_(expectations) {
  if (expectations_.provable) {
    const ProvableMark& mark = *expectations_.provable;
    provable_.emplace(mark.seed, mark.crc, mark.l1id_bits);
  }
}

bool EventChecker::check(std::span<const std::byte> bytes, std::uint64_t offset, const std::string& name,
                         Findings& findings) {
  const std::uint64_t before = findings.total();
  Place place{name, {}, offset, true, findings};
  ++totals_.events;
  const Decoded<FullEventView> event = decode_full_event(bytes);
  if (!event) {
    place.report(event.error().offset, event.error().what());
    return false;
  }
  if (event->header_not_proven()) ++totals_.unproven_headers;
  if (event->words.size() * kWordBytes != bytes.size()) {
    place.report(kWordBytes, fmt::format("event size is {} bytes, its data block has {}", event->words.size() * kWordBytes,
                                         bytes.size()));
  }
  if (event->checksum_type == ChecksumType::adler32) ++totals_.events_with_checksum;
  if (!event->checksum_holds()) {
    place.report(
        event->words.size() * kWordBytes - kWordBytes,
        DecodeError{DecodeFault::checksum, 0, "event checksum", adler32(event->payload.bytes()), event->checksum}.what());
  }
  if (expectations_.ours && !event->header_not_proven() && expectations_.run_number &&
      event->run_number != *expectations_.run_number) {
    place.report(0, differs("run number", event->run_number, "file", *expectations_.run_number));
  }
  const Decoded<WordView> robs = event->robs(buffer_);
  if (!robs) {
    place.report(robs.error().offset, robs.error().what());
    return false;
  }
  place.exact = event->compression == Compression::none;
  const std::size_t payload_offset = event->header_words * kWordBytes;
  const Decoded<void> all =
      for_each_rob(*robs, [&](const RobView& rob, std::size_t at) { check_rob(rob, *event, payload_offset + at, place); });
  if (!all) place.report(payload_offset + all.error().offset, all.error().what());
  return findings.total() == before;
}

void EventChecker::check_rob(const RobView& rob, const FullEventView& event, std::size_t offset, const Place& in_event) {
  Place place = in_event;
  place.rob = ", ROB " + to_text(rob.source_id);
  ++totals_.robs;
  if (rob.checksum_type == ChecksumType::adler32) ++totals_.robs_with_checksum;
  if (!rob.checksum_holds()) {
    place.report(offset + (rob.words.size() - 1) * kWordBytes,
                 DecodeError{DecodeFault::checksum, 0, "ROB checksum", adler32(rob.payload.bytes()), rob.checksum}.what());
  }
  const std::uint32_t status = rob.status.empty() ? 0 : rob.status[0];
  if (status != 0) ++totals_.incomplete_robs;
  const Decoded<RodView> rod = rob.rod();
  if (!rod) {
    // A truncated ROD whose status says so arrived truncated from its source: the file is not damaged.
    if (expectations_.ours || (status & kTruncatedRob) == 0) place.report(offset + rod.error().offset, rod.error().what());
    return;
  }
  totals_.rod_data_bytes += rod->data.bytes().size();
  if (!expectations_.ours) return;
  if (rod->header.source_id != rob.source_id) {
    place.report(offset, differs("ROD source id", rod->header.source_id.value, "ROB", rob.source_id.value));
  }
  check_rod(*rod, event, offset + rob.payload_offset_bytes(), place);
}

void EventChecker::check_rod(const RodView& rod, const FullEventView& event, std::size_t offset, const Place& place) {
  const RodHeader& header = rod.header;
  const auto compare = [&](const char* field, std::uint32_t in_rod, std::uint32_t in_event) {
    if (in_rod != in_event && !event.header_not_proven()) place.report(offset, differs(field, in_rod, "event", in_event));
  };
  compare("ROD L1 id", header.l1id.value, event.l1id.value);
  compare("ROD run number", header.run_number, event.run_number);
  // Fragments of several readouts may disagree; then the event's status has a bit for it. A fragment without chunks need not
  // know its trigger.
  const std::uint32_t event_status = event.status.empty() ? 0 : event.status[0];
  const std::uint32_t rod_status = rod.status.empty() ? 0 : rod.status[0];
  if ((event_status & fragment_status::kBcidMismatch) == 0 && (rod_status & fragment_status::kDummy) == 0) {
    compare("ROD BCID", header.bcid, event.bcid);
    compare("ROD trigger type", header.trigger_type, event.trigger_type);
  }
  check_links(rod, offset, place);
  // Payload is drawn from the global id. In older files, or if the global id may be damaged, the L1 id is used instead.
  const bool trusted = expectations_.global_ids && !event.header_not_proven() && may_be(header.l1id, event.global_id);
  const L1Id id = trusted ? payload_id(event.global_id) : header.l1id;
  const std::uint64_t chunks_before = totals_.chunks;
  check_chunks(
      rod, id,
      static_cast<std::size_t>(offset) + static_cast<std::size_t>(rod.data.bytes().data() - rod.words.bytes().data()),
      place);

  // A fragment without chunks may know only the L1 id of its trigger.
  const bool knows_trigger = totals_.chunks > chunks_before;
  const std::uint32_t status = rod.status.empty() ? 0 : rod.status[0];
  if (!provable_ || !expectations_.provable->full_trigger || !knows_trigger) return;
  const ProvableTrigger trigger = provable_->trigger(id);
  if (header.bcid != trigger.bcid && (status & fragment_status::kBcidMismatch) == 0) {
    place.report(offset, differs("ROD BCID", header.bcid, "trigger", trigger.bcid));
  }
  if (header.trigger_type != trigger.trigger_type && (status & fragment_status::kBcidMismatch) == 0) {
    place.report(offset, differs("ROD trigger type", header.trigger_type, "trigger", trigger.trigger_type));
  }
}

// The status words on absent links must agree with each other and with the first status word.
void EventChecker::check_links(const RodView& rod, std::size_t offset, const Place& place) {
  const std::uint32_t status = rod.status.empty() ? 0 : rod.status[0];
  const std::optional<AbsentLinks> links = absent_links(rod.status);
  if (!links) {
    place.report(offset, "the status words on missing and removed links contradict each other");
    return;
  }
  const std::uint32_t removed = links->removed();
  totals_.missing_links += links->missing;
  totals_.removed_links += removed;
  totals_.robs_without_removed += removed > 0 ? 1 : 0;
  if ((removed > 0) != ((status & fragment_status::kLinksRemoved) != 0)) {
    place.report(offset, fmt::format("{} marked as removed, but the status word says {}",
                                     removed == 1 ? "1 link is" : fmt::format("{} links are", removed),
                                     removed > 0 ? "no link is" : "some links are"));
  }
}

void EventChecker::check_chunks(const RodView& rod, L1Id id, std::size_t offset, const Place& place) {
  link_ids_.clear();
  const std::uint32_t status = rod.status.empty() ? 0 : rod.status[0];
  const bool fragment_flagged =
      (status & (fragment_status::kBcidMismatch | fragment_status::kL1IdMismatch | fragment_status::kDataCorruption)) != 0;
  const Decoded<void> all = for_each_chunk_record(rod.data.bytes(), [&](const ChunkRecord& record) {
    ++totals_.chunks;
    link_ids_.push_back(record.header.link_id);
    const bool flagged = (record.header.rodeo_status | record.header.felix_status) != 0;
    if (!provable_) {
      totals_.flagged_chunks += flagged ? 1 : 0;
    } else if (provable_->matches(record.bytes, record.header.link_id, id)) {
      ++totals_.proven_chunks;
    } else if (flagged) {
      ++totals_.flagged_chunks;
    } else {
      ++totals_.wrong_chunks;
      totals_.wrong_in_flagged += fragment_flagged ? 1 : 0;
      place.report(offset + record.offset,
                   fmt::format("chunk of link id {:#010x} ({} bytes) is not what the link sent for L1 id {:#010x}",
                               record.header.link_id, record.bytes.size(), rod.header.l1id.value));
    }
  });
  if (!all) place.report(offset + all.error().offset, all.error().what());
  if (!provable_) return;
  std::ranges::sort(link_ids_);
  if (const auto twice = std::ranges::adjacent_find(link_ids_); twice != link_ids_.end()) {
    place.report(offset, fmt::format("link id {:#010x} occurs twice", *twice));
  }
}

}  // namespace rodeo::formats
