// Fragment: all data of one event from the links of one ROB, as a scatter list over memory with another owner.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "rodeo/chunk_record.h"
#include "rodeo/ids.h"

namespace rodeo {

/// Generic status bits of a ROD or ROB (raw event format v5), first status word.
namespace fragment_status {
inline constexpr std::uint32_t kBcidMismatch = 0x01;
inline constexpr std::uint32_t kL1IdMismatch = 0x02;
inline constexpr std::uint32_t kTimeout = 0x04;
inline constexpr std::uint32_t kDataCorruption = 0x08;
inline constexpr std::uint32_t kOverflow = 0x10;
inline constexpr std::uint32_t kDummy = 0x20;
/// Defined by Rodeo, in the detector's half of the ROD's word: links that were removed from the build are absent.
inline constexpr std::uint32_t kLinksRemoved = 0x10000;
}  // namespace fragment_status

/// A piece of the ROD data. Parts are multiples of 4 bytes, except in FULL mode, where a chunk's bytes are a part of their
/// own and their padding is in the next part. A chunk header is always in one part, and so are a chunk's bytes.
struct FragmentPart {
  std::byte* data = nullptr;
  std::size_t size = 0;  ///< bytes
};

class Fragment;

/// Frees a fragment's memory when the last reference is dropped. Called once, by any thread; must not block.
class FragmentOwner {
 public:
  virtual void reclaim(Fragment& fragment) noexcept = 0;

 protected:
  ~FragmentOwner() = default;
};

/// One event of one ROB. Reference-counted through FragmentPtr. Only one consumer at a time may write (see
/// FragmentConsumer); holders of a shared reference only read.
class Fragment {
 public:
  // Identity
  Sequence sequence = 0;
  std::uint64_t global_id =
      0;      ///< the same for all fragments of an event; never repeats within a run (docs/reference/formats/identifiers.md)
  L1Id l1id;  ///< the front-ends' count: repeats after 2^24 events without a reset
  SourceId source_id;
  std::uint16_t bcid = 0;
  std::uint8_t trigger_type = 0;
  bool writable = true;  ///< false: parts lie in memory that must not be written (FULL mode, mapped files)

  // Status
  std::uint32_t status = 0;   ///< fragment_status bits
  std::uint32_t chunks = 0;   ///< chunks in the parts
  std::uint32_t missing = 0;  ///< links in the build without a chunk
  std::uint32_t removed = 0;  ///< links without a chunk because they are removed from the build

  // The absent links, if any: bit i % 32 of word i / 32 is link i of link_ids. Not valid if both counts are 0.
  std::span<const std::uint32_t>
      link_ids;  ///< ids of all possible links, in the order of the configuration; the builder owns the memory
  std::span<std::uint32_t> missing_links;
  std::span<std::uint32_t> removed_links;

  // Data
  FragmentPart* parts = nullptr;
  std::uint32_t part_count = 0;
  std::uint64_t handed_over_ns = 0;  ///< steady clock when the last run of this event was handed to the builder

  // Ownership
  FragmentOwner* owner = nullptr;
  std::atomic<std::uint32_t> references{0};

  std::span<FragmentPart> all_parts() const { return {parts, part_count}; }

  /// Bytes of ROD data.
  std::size_t payload_bytes() const {
    std::size_t sum = 0;
    for (const FragmentPart& part : all_parts()) sum += part.size;
    return sum;
  }

  /// Every link in the build has a chunk, and no fault is flagged.
  bool complete() const { return missing == 0 && (status & ~fragment_status::kLinksRemoved) == 0; }

  /// Calls visit(link id) for each link of a bitmap.
  template <typename Visit>
  void for_each_link(std::span<const std::uint32_t> bitmap, Visit&& visit) const {
    for (std::size_t i = 0; i < link_ids.size() && i / 32 < bitmap.size(); ++i) {
      if ((bitmap[i / 32] >> (i % 32) & 1U) != 0) visit(link_ids[i]);
    }
  }

  /// Copies the ROD data to `out` (at least payload_bytes() large): the contiguous view. Returns the bytes written.
  std::size_t copy_to(std::byte* out) const {
    std::size_t at = 0;
    for (const FragmentPart& part : all_parts()) {
      std::memcpy(out + at, part.data, part.size);
      at += part.size;
    }
    return at;
  }

  /// Calls visit(const ChunkHeader&, std::span<std::byte> bytes) for each chunk. Returns false if the parts contradict the
  /// headers (a user's processor broke them).
  template <typename Visit>
  bool for_each_chunk(Visit&& visit) const;
};

/// Owning pointer to a fragment; a copy adds a reference (any thread).
class FragmentPtr {
 public:
  FragmentPtr() = default;
  /// Takes over one reference that the caller holds.
  static FragmentPtr adopt(Fragment* fragment) { return FragmentPtr(fragment); }

  FragmentPtr(const FragmentPtr& other) : fragment_(other.fragment_) {
    if (fragment_ != nullptr) fragment_->references.fetch_add(1, std::memory_order_relaxed);
  }
  FragmentPtr(FragmentPtr&& other) noexcept : fragment_(std::exchange(other.fragment_, nullptr)) {}
  FragmentPtr& operator=(FragmentPtr other) noexcept {
    std::swap(fragment_, other.fragment_);
    return *this;
  }
  ~FragmentPtr() { reset(); }

  void reset() {
    Fragment* fragment = std::exchange(fragment_, nullptr);
    if (fragment == nullptr) return;
    // The holder of the only reference need not decrement it: no other thread can add one.
    if (fragment->references.load(std::memory_order_acquire) == 1 ||
        fragment->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      fragment->owner->reclaim(*fragment);
    }
  }
  /// Returns the pointer with its reference; the caller now holds the reference.
  Fragment* detach() { return std::exchange(fragment_, nullptr); }

  Fragment* get() const { return fragment_; }
  Fragment& operator*() const { return *fragment_; }
  Fragment* operator->() const { return fragment_; }
  explicit operator bool() const { return fragment_ != nullptr; }

 private:
  explicit FragmentPtr(Fragment* fragment) : fragment_(fragment) {}
  Fragment* fragment_ = nullptr;
};

template <typename Visit>
bool Fragment::for_each_chunk(Visit&& visit) const {
  std::size_t part = 0;
  std::size_t at = 0;
  const auto skip_empty = [&] {
    while (part < part_count && at == parts[part].size) {
      ++part;
      at = 0;
    }
  };
  for (skip_empty(); part < part_count; skip_empty()) {
    const ChunkExtent chunk = load_chunk_header({parts[part].data + at, parts[part].size - at});
    if (chunk.header_bytes == 0) return false;
    at += chunk.header_bytes;
    std::byte* bytes = nullptr;
    if (chunk.bytes > 0) {
      skip_empty();
      if (part == part_count || parts[part].size - at < chunk.bytes) return false;
      bytes = parts[part].data + at;
      at += chunk.bytes;
    }
    visit(chunk.header, std::span<std::byte>(bytes, chunk.bytes));
    for (std::size_t padding = chunk_padding_bytes(chunk.bytes); padding > 0;) {
      skip_empty();
      if (part == part_count) return false;
      const std::size_t step = padding < parts[part].size - at ? padding : parts[part].size - at;
      at += step;
      padding -= step;
    }
  }
  return true;
}

}  // namespace rodeo
