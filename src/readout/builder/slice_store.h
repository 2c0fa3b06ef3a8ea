// Slices: a worker's part of one event, in recycled buffers of its own huge-page arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/arena.h"
#include "readout/builder/append_kernel.h"
#include "readout/builder/event_slot.h"
#include "readout/builder/recycle_pool.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// One buffer of a slice; a slice that outgrows its first goes on in `extension`.
struct Slice {
  std::byte* data = nullptr;
  std::uint32_t used = 0;  ///< bytes of chunk records, set when the slice or the buffer is closed
  Slice* extension = nullptr;
  Slice* next_free = nullptr;
  RecyclePool<Slice>* pool = nullptr;
};

/// Gives back a slice with its extensions. Any thread.
inline void give_back(Slice* slice) noexcept {
  while (slice != nullptr) {
    Slice* extension = slice->extension;
    if (extension != nullptr) slice->extension = nullptr;  // a write would take the line away from its owner
    slice->pool->give(slice);
    slice = extension;
  }
}

/// What a worker keeps of an open event besides its slot.
struct OpenEvent {
  Slice* first = nullptr;
  Slice* last = nullptr;
  std::uint64_t opened_at = 0;  ///< on the worker's event clock, ns
  std::uint32_t extensions = 0;
  L1Id l1id;
  std::uint32_t rounds = 0;  ///< of its global id
  std::uint8_t trigger_type = 0;
};

/// Buffers of one worker. Owner thread only, except give_back().
class SliceStore {
 public:
  struct Settings {
    std::size_t buffer_bytes = 16 * 1024;  ///< room for chunk records in each buffer
    std::size_t buffers = 1024;
    std::uint32_t max_extensions = 4;  ///< buffers that a slice may add to its first
  };
  enum class Outcome : std::uint8_t {
    appended,
    truncated,  ///< what fits was appended; the record and the slot say so
    overflow,   ///< nothing was appended: not even a header fits any more
    no_buffer,  ///< nothing has changed: the pool is empty
  };

  static Result<std::unique_ptr<SliceStore>> create(const Settings& settings);

  RecyclePool<Slice>& pool() { return pool_; }
  const base::Arena& arena() const { return arena_; }

  /// Gives the event its first buffer; false if there is none.
  bool open(EventSlot& slot, OpenEvent& event);

  /// Appends one chunk the slow way: opens, extends, and cuts what does not fit in any extension. Where it is truncated, `fits` is set to the bytes that
  /// were appended.
  Outcome append(EventSlot& slot, OpenEvent& event, ChunkHeader header, std::span<const std::byte> chunk, std::size_t& fits);

  /// Ends the slice: its buffers say how much they hold.
  void close(EventSlot& slot, OpenEvent& event);

  /// Buffers that one event may take.
  std::size_t most_buffers() const { return std::size_t{1} + settings_.max_extensions; }

  /// Buffers that belong to events which are still open.
  std::size_t open_buffers() const { return open_buffers_; }

 private:
  explicit SliceStore(const Settings& settings) : settings_(settings) {}
  bool extend(EventSlot& slot, OpenEvent& event);

  const Settings settings_;
  base::Arena arena_;
  std::unique_ptr<Slice[]> slices_;
  RecyclePool<Slice> pool_;
  std::size_t open_buffers_ = 0;
};

}  // namespace rodeo::readout
