// Events under way, in memory of a fixed size. Each is in one queue and in the list of its node.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/event.h"

namespace rodeo::dispatch {

enum class State : std::uint8_t {
  free,
  waiting,   ///< Waits for its first node.
  again,     ///< Waits for another node.
  assigned,  ///< Assigned to `node`.
  decided,   ///< Decided, not cleared yet.
};

struct Slot {
  Event event = {};
  std::uint64_t assigned_ns = 0;
  std::uint64_t first_assigned_ns = 0;  ///< 0: never assigned.
  std::uint32_t node = UINT32_MAX;      ///< The node that has the event, had it last or decided it; UINT32_MAX: none.
  State state = State::free;
  bool build_only = false;
  bool ahead = false;  ///< The event goes before others while it waits for its first node.
  std::uint32_t previous = UINT32_MAX, next = UINT32_MAX;            // Links of the queue of its state.
  std::uint32_t node_previous = UINT32_MAX, node_next = UINT32_MAX;  // Links of the list of its node.
};

/// A list through slots. The parameters name the pair of links.
template <std::uint32_t Slot::* Previous, std::uint32_t Slot::* Next>
class SlotList {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  bool empty() const { return head_ == kNone; }
  std::uint32_t front() const { return head_; }
  std::uint32_t size() const { return size_; }

  void push_back(std::vector<Slot>& slots, std::uint32_t slot) {
    slots[slot].*Previous = tail_;
    slots[slot].*Next = kNone;
    (tail_ == kNone ? head_ : slots[tail_].*Next) = slot;
    tail_ = slot;
    ++size_;
  }
  void push_front(std::vector<Slot>& slots, std::uint32_t slot) {
    slots[slot].*Previous = kNone;
    slots[slot].*Next = head_;
    (head_ == kNone ? tail_ : slots[head_].*Previous) = slot;
    head_ = slot;
    ++size_;
  }
  void remove(std::vector<Slot>& slots, std::uint32_t slot) {
    const std::uint32_t before = slots[slot].*Previous;
    const std::uint32_t after = slots[slot].*Next;
    (before == kNone ? head_ : slots[before].*Next) = after;
    (after == kNone ? tail_ : slots[after].*Previous) = before;
    --size_;
  }

 private:
  std::uint32_t head_ = kNone;
  std::uint32_t tail_ = kNone;
  std::uint32_t size_ = 0;
};

using SlotQueue = SlotList<&Slot::previous, &Slot::next>;
using NodeSlots = SlotList<&Slot::node_previous, &Slot::node_next>;

}  // namespace rodeo::dispatch
