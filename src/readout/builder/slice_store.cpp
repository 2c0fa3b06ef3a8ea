#include "readout/builder/slice_store.h"

#include <algorithm>

namespace rodeo::readout {
namespace {

constexpr std::size_t kLine = base::kCacheLine;

}  // namespace

Result<std::unique_ptr<SliceStore>> SliceStore::create(const Settings& settings) {
  auto store = std::unique_ptr<SliceStore>(new SliceStore(settings));
  // With an odd number of cache lines per buffer, equal offsets in neighbouring events are in different cache sets.
  const std::size_t lines = (settings.buffer_bytes + kStoreSlack + kLine - 1) / kLine | 1;
  const std::size_t stride = lines * kLine;
  auto arena = RODEO_TRY_WITHIN(base::Arena::create(stride * settings.buffers), "slice buffers of a builder's worker");
  store->arena_ = std::move(arena);
  store->slices_ = std::make_unique<Slice[]>(settings.buffers);
  for (std::size_t i = settings.buffers; i-- > 0;) {
    Slice& slice = store->slices_[i];
    slice.data = store->arena_.data() + i * stride;
    slice.pool = &store->pool_;
    store->pool_.add(&slice);
  }
  return store;
}

bool SliceStore::open(EventSlot& slot, OpenEvent& event) {
  Slice* slice = pool_.acquire();
  if (slice == nullptr) return false;
  event.first = event.last = slice;
  ++open_buffers_;
  slot.write = slice->data;
  slot.end = slice->data + settings_.buffer_bytes;
  return true;
}

bool SliceStore::extend(EventSlot& slot, OpenEvent& event) {
  Slice* slice = pool_.acquire();
  if (slice == nullptr) return false;
  event.last->used = static_cast<std::uint32_t>(slot.write - event.last->data);
  event.last->extension = slice;
  event.last = slice;
  ++event.extensions;
  ++open_buffers_;
  slot.write = slice->data;
  slot.end = slice->data + settings_.buffer_bytes;
  return true;
}

SliceStore::Outcome SliceStore::append(EventSlot& slot, OpenEvent& event, ChunkHeader header,
                                       std::span<const std::byte> chunk, std::size_t& fits) {
  if (slot.write == nullptr && !open(slot, event)) return Outcome::no_buffer;
  const auto room = [&] { return static_cast<std::size_t>(slot.end - slot.write); };
  const std::size_t wanted = chunk_record_bytes(chunk.size());
  if (room() < wanted && event.extensions < settings_.max_extensions && !extend(slot, event)) return Outcome::no_buffer;
  if (room() >= wanted) {
    slot.write = store_chunk(slot.write, header, chunk);
    return Outcome::appended;
  }
  // No buffer has room for the whole chunk: appends what fits, and flags it.
  slot.flags |= slot_flag::kTruncated;
  if (room() < sizeof header) return Outcome::overflow;
  header.rodeo_status |= chunk_flag::kTruncated;
  constexpr std::size_t kMostHeader = chunk_header_bytes(kLongChunkBytes);
  const std::size_t fit = room() > kMostHeader ? (room() - kMostHeader) / 4 * 4 : 0;
  fits = std::min(fit, chunk.size());
  slot.write = store_chunk(slot.write, header, chunk.first(fits));
  return Outcome::truncated;
}

void SliceStore::close(EventSlot& slot, OpenEvent& event) {
  if (event.last == nullptr) return;
  event.last->used = static_cast<std::uint32_t>(slot.write - event.last->data);
  open_buffers_ -= 1 + event.extensions;
}

}  // namespace rodeo::readout
