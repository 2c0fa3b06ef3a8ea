// Fragments for tests, in real memory and with a payload that can be checked. The pool counts those that are not returned.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/provable.h"
#include "rodeo/fragment.h"
#include "rodeo/input.h"

namespace rodeo::test {

/// Makes fragments as a builder does: `links` chunks with headers and `chunk_bytes` checkable bytes, in one part per
/// `links_per_part` links. Counts the fragments that are returned.
class FragmentPool final : public FragmentOwner {
 public:
  struct Shape {
    std::uint32_t links = 4;
    std::uint32_t chunk_bytes = 40;
    std::uint32_t links_per_part = 2;
    bool crc = false;
    std::uint64_t seed = 1;
  };

  FragmentPool() : FragmentPool(Shape{}) {}
  explicit FragmentPool(Shape shape) : shape_(shape) {}
  ~FragmentPool() = default;

  const Shape& shape() const { return shape_; }

  /// Link ids are 1000, 1001, ...
  FragmentPtr make(Sequence sequence) const { return make(sequence, shape_.links); }

  FragmentPtr make(Sequence sequence, std::uint32_t present) const {
    auto* held = new Held;
    Fragment& fragment = held->fragment;
    const L1Id l1id{static_cast<std::uint32_t>(sequence)};
    const formats::Provable provable(shape_.seed, shape_.crc);
    const formats::ProvableTrigger trigger = provable.trigger(l1id);
    fragment.sequence = fragment.global_id = sequence;
    fragment.l1id = l1id;
    fragment.source_id = SourceId{0x00610001};
    fragment.bcid = trigger.bcid;
    fragment.trigger_type = trigger.trigger_type;
    fragment.chunks = present;
    const std::size_t step = chunk_record_bytes(shape_.chunk_bytes);
    held->bytes.resize(step * present);
    for (std::uint32_t i = 0; i < present; ++i) {
      std::byte* at = held->bytes.data() + i * step;
      store_chunk_header(at, {.link_id = 1000 + i}, shape_.chunk_bytes);
      provable.write({at + chunk_header_bytes(shape_.chunk_bytes), shape_.chunk_bytes}, 1000 + i, l1id);
    }
    for (std::uint32_t i = 0; i < present; i += shape_.links_per_part) {
      const std::uint32_t n = std::min(shape_.links_per_part, present - i);
      held->parts.push_back({held->bytes.data() + i * step, n * step});
    }
    held->absent.resize(2 * ((shape_.links + 31) / 32));
    for (std::uint32_t i = 0; i < shape_.links; ++i) held->link_ids.push_back(1000 + i);
    fragment.link_ids = held->link_ids;
    fragment.missing_links = std::span(held->absent).first(held->absent.size() / 2);
    fragment.removed_links = std::span(held->absent).last(held->absent.size() / 2);
    for (std::uint32_t i = present; i < shape_.links; ++i) {
      fragment.missing_links[i / 32] |= 1U << (i % 32);
      ++fragment.missing;
    }
    if (fragment.missing > 0) fragment.status |= fragment_status::kTimeout;
    fragment.parts = held->parts.data();
    fragment.part_count = static_cast<std::uint32_t>(held->parts.size());
    fragment.owner = const_cast<FragmentPool*>(this);
    fragment.references = 1;
    made_.fetch_add(1, std::memory_order_relaxed);
    return FragmentPtr::adopt(&fragment);
  }

  void reclaim(Fragment& fragment) noexcept override {
    static_assert(offsetof(Held, fragment) == 0);
    delete reinterpret_cast<Held*>(&fragment);
    returned_.fetch_add(1, std::memory_order_release);
  }

  /// The number of fragments that were made and not returned.
  std::uint64_t out() const { return made_.load(std::memory_order_relaxed) - returned_.load(std::memory_order_acquire); }

 private:
  struct Held {
    Fragment fragment;
    std::vector<std::byte> bytes;
    std::vector<FragmentPart> parts;
    std::vector<std::uint32_t> link_ids;
    std::vector<std::uint32_t> absent;
  };

  const Shape shape_;
  mutable std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> returned_{0};
};

/// The value of a named counter; the test fails if the counter does not exist.
inline std::uint64_t counter_of(const std::vector<NamedCounter>& counters, std::string_view name) {
  for (const NamedCounter& counter : counters) {
    if (counter.name == name) return counter.value;
  }
  throw std::out_of_range("no counter " + std::string(name));
}

}  // namespace rodeo::test
