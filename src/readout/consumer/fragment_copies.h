// Copies of fragments with the payload in one contiguous buffer, for consumers that must not keep or change the builder's
// memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/bounded_queue.h"
#include "rodeo/fragment.h"

namespace rodeo::readout {

/// A fixed number of fragments with `payload_bytes` of memory each, allocated at construction. A copy returns to the pool
/// with its last reference. All copies must return before the pool is destroyed. Any thread; nothing blocks.
class FragmentCopies final : public FragmentOwner {
 public:
  /// Throws SetupError if there is not enough memory.
  FragmentCopies(std::size_t count, std::size_t payload_bytes);
  ~FragmentCopies();

  std::size_t payload_bytes() const { return payload_bytes_; }
  std::size_t free() const { return free_.size(); }

  /// A writable copy with one part; null if no copy is free or the payload is too large.
  FragmentPtr copy(const Fragment& original);

  void reclaim(Fragment& fragment) noexcept override;

 private:
  struct Copy {
    Fragment fragment;
    FragmentPart part;
    std::byte* memory = nullptr;
    std::vector<std::uint32_t> absent;  ///< both bitmaps; they grow to the size of the largest fragment's
  };

  const std::size_t count_;
  const std::size_t payload_bytes_;
  base::Arena arena_;
  std::unique_ptr<Copy[]> copies_;
  base::BoundedQueue<Copy*> free_;
};

/// Copies the header data of a fragment, not its payload, owner or references. Its bitmaps stay in the original's memory.
void copy_identity(const Fragment& from, Fragment& to);

}  // namespace rodeo::readout
