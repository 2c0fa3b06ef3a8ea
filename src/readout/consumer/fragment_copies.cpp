#include "readout/consumer/fragment_copies.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "base/error.h"

namespace rodeo::readout {
namespace {

constexpr std::size_t kAlign = 64;

}  // namespace

FragmentCopies::FragmentCopies(std::size_t count, std::size_t payload_bytes)
    : count_(count),
      payload_bytes_((payload_bytes + kAlign - 1) / kAlign * kAlign),
      copies_(std::make_unique<Copy[]>(count)),
      free_(count) {
  Result<base::Arena> arena = base::Arena::create(std::max<std::size_t>(count * payload_bytes_, 1));
  if (!arena) throw SetupError(arena.error().within("no memory for copies of fragments"));
  arena_ = std::move(*arena);
  for (std::size_t i = 0; i < count; ++i) {
    copies_[i].memory = arena_.data() + i * payload_bytes_;
    free_.try_push(&copies_[i]);
  }
}

FragmentCopies::~FragmentCopies() { assert(free_.size() == count_ && "a copy outlives its memory"); }

FragmentPtr FragmentCopies::copy(const Fragment& original) {
  const std::size_t size = original.payload_bytes();
  Copy* copy = nullptr;
  if (size > payload_bytes_ || !free_.try_pop(copy)) return {};
  Fragment& fragment = copy->fragment;
  copy_identity(original, fragment);
  if (original.missing != 0 || original.removed != 0) {
    const auto keep = [&](std::span<const std::uint32_t> bitmap) {
      copy->absent.insert(copy->absent.end(), bitmap.begin(), bitmap.end());
    };
    copy->absent.clear();
    keep(original.missing_links);
    keep(original.removed_links);
    fragment.missing_links = std::span(copy->absent).first(original.missing_links.size());
    fragment.removed_links = std::span(copy->absent).last(original.removed_links.size());
  }
  original.copy_to(copy->memory);
  copy->part = {copy->memory, size};
  fragment.parts = &copy->part;
  fragment.part_count = 1;
  fragment.writable = true;
  fragment.owner = this;
  fragment.references.store(1, std::memory_order_relaxed);
  return FragmentPtr::adopt(&fragment);
}

void FragmentCopies::reclaim(Fragment& fragment) noexcept {
  static_assert(offsetof(Copy, fragment) == 0);
  free_.try_push(reinterpret_cast<Copy*>(&fragment));
}

void copy_identity(const Fragment& from, Fragment& to) {
  to.sequence = from.sequence;
  to.global_id = from.global_id;
  to.l1id = from.l1id;
  to.source_id = from.source_id;
  to.bcid = from.bcid;
  to.trigger_type = from.trigger_type;
  to.writable = from.writable;
  to.status = from.status;
  to.chunks = from.chunks;
  to.missing = from.missing;
  to.removed = from.removed;
  to.link_ids = from.link_ids;
  to.missing_links = from.missing_links;
  to.removed_links = from.removed_links;
  to.handed_over_ns = from.handed_over_ns;
}

}  // namespace rodeo::readout
