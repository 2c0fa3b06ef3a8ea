// Slices: a worker's parts of events, in recycled buffers of its own huge-page arena.
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

/// One buffer of a slice. A slice that needs more continues in `extension`.
struct Slice {
  std::byte* data = nullptr;
  std::uint32_t used = 0;  ///< bytes of chunk records, set when the slice or the buffer is closed
  Slice* extension = nullptr;
  Slice* next_free = nullptr;
  RecyclePool<Slice>* pool = nullptr;
};

/// Returns a slice and its extensions to their pool. Any thread.
inline void give_back(Slice* slice) noexcept {
  while (slice != nullptr) {
    Slice* extension = slice->extension;
    // Only if needed, because a write takes the cache line from its owner.
    if (extension != nullptr) slice->extension = nullptr;
    slice->pool->give_back(slice);
    slice = extension;
  }
}

/// Data of an open event in addition to its slot.
struct OpenEvent {
  Slice* first = nullptr;
  Slice* last = nullptr;
  std::uint64_t opened_at = 0;  ///< event clock of the worker when the event was opened, ns
  std::uint32_t extensions = 0;
  L1Id l1id;
  std::uint32_t rounds = 0;  ///< rounds in the event's global id
  std::uint8_t trigger_type = 0;
};

/// Buffers of one worker. Only the owner thread may use it, except give_back().
class SliceStore {
 public:
  struct Settings {
    std::size_t buffer_bytes = 16 * 1024;  ///< size of a buffer for chunk records
    std::size_t buffers = 1024;
    std::uint32_t max_extensions = 4;  ///< most buffers of a slice after its first
  };
  enum class Outcome : std::uint8_t {
    appended,
    truncated,  ///< the chunk is appended in part; the record and the slot are flagged
    overflow,   ///< nothing is appended: there is no room even for a header
    no_buffer,  ///< nothing has changed: the pool is empty
  };

  static Result<std::unique_ptr<SliceStore>> create(const Settings& settings);

  RecyclePool<Slice>& pool() { return pool_; }
  const base::Arena& arena() const { return arena_; }

  /// Gives the event its first buffer; false if the pool is empty.
  bool open(EventSlot& slot, OpenEvent& event);

  /// Appends one chunk the slow way: opens the event, adds extensions, and cuts a chunk that does not fit in any buffer. If
  /// the chunk is truncated, `fits` is set to the number of bytes appended.
  Outcome append(EventSlot& slot, OpenEvent& event, ChunkHeader header, std::span<const std::byte> chunk, std::size_t& fits);

  /// Ends the slice: notes the number of bytes in each of its buffers.
  void close(EventSlot& slot, OpenEvent& event);

  /// The highest number of buffers of one event.
  std::size_t most_buffers() const { return std::size_t{1} + settings_.max_extensions; }

  /// Number of buffers in events that are still open.
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
