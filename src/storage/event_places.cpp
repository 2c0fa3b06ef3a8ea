#include "storage/event_places.h"

#include "base/mapped_file.h"
#include "formats/checksum.h"
#include "formats/full_event.h"

namespace rodeo::storage {

using namespace formats;

Decoded<EventPlaces> EventPlaces::open(std::span<const std::byte> file) {
  return EventPlaces(file, RODEO_TRY(EventFileReader::open(file)));
}

// Finds the next block; false at the end of the blocks, whatever the reason.
bool EventPlaces::step() {
  const Decoded<std::optional<EventBlock>> next = reader_.next();
  if (!next || !*next) {
    complete_ = true;
    end_ = reader_.end();
    if (!next) damage_ = next.error();
    return false;
  }
  const EventBlock& block = **next;
  const Decoded<FullEventView> event = decode_full_event(reader_.event(block, buffer_));
  places_.push_back({.place = block.offset | (event ? 0 : EventPlace::kDamaged),
                     .bytes = static_cast<std::uint32_t>(block.bytes()),
                     .l1id = event ? event->l1id.value : 0});
  return true;
}

bool EventPlaces::has(std::size_t i) {
  while (i >= places_.size()) {
    if (complete_ || !step()) return false;
  }
  return true;
}

std::size_t EventPlaces::count() {
  while (!complete_) step();
  return places_.size();
}

std::span<const std::byte> EventPlaces::event(std::size_t i, std::vector<std::byte>& buffer) const {
  const EventPlace& place = places_[i];
  return reader_.event(reader_.block(0, place.offset(), place.bytes), buffer);
}

void EventPlaces::go_on(std::span<const std::byte> file) {
  file_ = file;
  reader_.go_on(file);
  complete_ = reader_.end().has_value();
  damage_.reset();
}

std::optional<IndexedFile> EventPlaces::identity(const std::string& path) const {
  const auto state = state_of(path);
  if (!state || state->bytes != file_.size()) return std::nullopt;
  const std::size_t records = reader_.header().size_bytes;
  return IndexedFile{.bytes = file_.size(),
                     .modified_ns = state->modified_ns,
                     .records_crc = crc32(file_.first(records)),
                     .records_bytes = records};
}

bool EventPlaces::load(const std::string& path) {
  const auto index = base::MappedFile::open(index_path(path));
  if (!index) return false;
  const auto file = identity(path);
  if (!file) return false;
  auto places = decode_event_index(index->bytes(), *file);
  if (!places || !index->check()) return false;
  // Only closed files have an index: the end record follows the last event.
  const std::uint64_t behind =
      places->empty() ? file->records_bytes : places->back().offset() + kSeparatorBytes + places->back().bytes;
  const auto end = decode_file_end(file_.subspan(behind));
  if (!end) return false;
  places_ = std::move(*places);
  end_ = *end;
  complete_ = true;
  return true;
}

bool EventPlaces::keep(const std::string& path) {
  count();
  const auto file = end_ ? identity(path) : std::nullopt;
  return file && put_index(path, encode_event_index(*file, places_));
}

}  // namespace rodeo::storage
