#include "readout/builder/full_group.h"

#include <algorithm>

namespace rodeo::readout {
namespace {

constexpr std::size_t kMostStrays = 256;

}  // namespace

FullGroup::FullGroup(std::uint32_t group_number, std::vector<std::size_t> positions, const Sequencer::Settings& settings)
    : number(group_number),
      members(std::move(positions)),
      events(settings.window),
      sequencer(settings),
      turns(members.size()),
      links(std::make_unique<LinkSequence[]>(members.size())) {
  for (std::size_t place = 0; place < members.size(); ++place)
    sequencer.add(links[place], static_cast<std::uint16_t>(members.size()));
  sequencer.set_events(events);
  strays_.reserve(kMostStrays);
}

const Segment& FullGroup::segment_of(Sequence sequence) {
  if (sequence < segment_.first || sequence >= segment_.end || segment_version_ != sequencer.version()) {
    segment_ = sequencer.segment_of(sequence);
    segment_version_ = sequencer.version();
  }
  return segment_;
}

TriggerEntries::Entry FullGroup::entry_of(Sequence sequence) const {
  const TriggerEntries& entries = sequencer.trigger_entries();
  return listed() && sequence < entries.end() ? entries.at(sequence) : TriggerEntries::Entry{};
}

void FullGroup::add_event(Sequence sequence) {
  const Segment& segment = segment_of(sequence);
  const auto is_of_segment = [&](const Stretch& known) { return known.base == segment.base && known.last != 0; };
  const auto known = std::find_if(stretches_.begin(), stretches_.end(), is_of_segment);
  if (known != stretches_.end()) {
    known->last = std::max(known->last, sequence);
    return;
  }
  const bool first_of_run = stretches_.front().last == 0;
  std::shift_right(stretches_.begin(), stretches_.end(), 1);
  stretches_.front() = {segment.base, first_of_run ? sequence : segment.first, sequence};
}

bool FullGroup::is_event(Sequence sequence) const {
  if (listed()) return entry_of(sequence).state != TriggerEntries::kNoEvent;
  return std::any_of(stretches_.begin(), stretches_.end(),
                     [&](const Stretch& stretch) { return sequence >= stretch.first && sequence < stretch.last; });
}

Sequence FullGroup::passed_by_all() const {
  Sequence passed = events.head();
  for (std::size_t place = 0; place < members.size(); ++place) {
    const LinkSequence& link = links[place];
    if (link.removed.load(std::memory_order_relaxed)) continue;
    if (!link.here.load(std::memory_order_relaxed)) return 0;
    passed = std::min(passed, link.position() - link.stride + 1);
  }
  return passed;
}

bool FullGroup::keep_stray(Sequence sequence, const ChunkView& chunk) {
  const bool there = std::any_of(strays_.begin(), strays_.end(), [&](const auto& stray) { return stray.first == sequence; });
  if (there || strays_.size() == kMostStrays) return false;
  chunk.page->references.fetch_add(1, std::memory_order_relaxed);
  strays_.emplace_back(sequence, chunk);
  events.raise(sequence + 1);
  return true;
}

ChunkView FullGroup::last_stray() {
  const ChunkView chunk = strays_.back().second;
  strays_.pop_back();
  return chunk;
}

std::optional<ChunkView> FullGroup::take_stray(Sequence sequence) {
  const auto found =
      std::find_if(strays_.begin(), strays_.end(), [&](const auto& stray) { return stray.first == sequence; });
  if (found == strays_.end()) return std::nullopt;
  const ChunkView chunk = found->second;
  strays_.erase(found);
  return chunk;
}

}  // namespace rodeo::readout
