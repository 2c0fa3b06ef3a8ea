// Which events of several writers belong together, while each brings its own one after the other: by id, within a bounded window of order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::storage {

/// Pure: no files, no clock. Holds at most `window` events of each writer, however long the files are. By global id, or by L1 id: those that wrap (256
/// event counter resets) go on counting, as long as neighbouring events are less than half of that apart. One thread.
///
///     while (true) {
///       while (const auto writer = plan.wants()) ... plan.add(*writer, id, event) or plan.end(*writer);
///       const auto together = plan.next();       // in ascending order
///       if (together.empty()) break;
///     }
template <typename Event>
class MergePlan {
 public:
  struct Member {
    std::size_t writer = 0;
    Event event;
  };

  MergePlan(std::size_t writers, std::size_t window) : window_(std::max<std::size_t>(window, 1)), writers_(writers) {}

  /// A writer that must bring its next event, or its end, before next() can decide.
  std::optional<std::size_t> wants() const {
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      if (!writers_[i].ended && writers_[i].waiting.size() < window_) return i;
    }
    return std::nullopt;
  }

  /// The next event of a writer, in the order of its files. False: events of its id or a later one have been given out already, so that it cannot be
  /// put where it belongs; it is not taken.
  bool add(std::size_t writer, L1Id id, Event event) {
    const std::int64_t near = writers_[writer].last ? *writers_[writer].last : reference_.value_or(id.value);
    return add_key(writer, near + static_cast<std::int32_t>(id.value - static_cast<std::uint32_t>(near)), std::move(event));
  }
  bool add(std::size_t writer, std::uint64_t global_id, Event event) {
    return add_key(writer, static_cast<std::int64_t>(global_id), std::move(event));
  }

  void end(std::size_t writer) { writers_[writer].ended = true; }

  /// All events of the lowest id, writer by writer, in each in the order in which they came; empty: no event is left. Only while no writer is
  /// wanted. Valid until the next call.
  std::span<Member> next() {
    together_.clear();
    std::optional<std::int64_t> lowest;
    for (const Writer& writer : writers_) {
      if (!writer.waiting.empty() && (!lowest || writer.waiting.top().key < *lowest)) lowest = writer.waiting.top().key;
    }
    if (!lowest) return {};
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      auto& waiting = writers_[i].waiting;
      for (; !waiting.empty() && waiting.top().key == *lowest; waiting.pop(), --held_)
        together_.push_back({i, std::move(const_cast<Waiting&>(waiting.top()).event)});
    }
    given_ = lowest;
    return together_;
  }

  /// The largest number of events that were held at once.
  std::size_t most_held() const { return most_held_; }

 private:
  bool add_key(std::size_t writer, std::int64_t key, Event event) {
    Writer& of = writers_[writer];
    if (given_ && key <= *given_) return false;
    if (!reference_) reference_ = key;
    of.last = key;
    of.waiting.push({key, order_++, std::move(event)});
    most_held_ = std::max(most_held_, ++held_);
    return true;
  }

  struct Waiting {
    std::int64_t key;
    std::uint64_t order;
    Event event;
    bool operator<(const Waiting& other) const { return key != other.key ? key > other.key : order > other.order; }
  };
  struct Writer {
    std::priority_queue<Waiting> waiting;  // the lowest id on top
    std::optional<std::int64_t> last;      // id, unwrapped
    bool ended = false;
  };

  const std::size_t window_;
  std::vector<Writer> writers_;
  std::optional<std::int64_t> reference_;  // the first id of all
  std::optional<std::int64_t> given_;      // the last that was given out
  std::uint64_t order_ = 0;
  std::size_t held_ = 0;
  std::size_t most_held_ = 0;
  std::vector<Member> together_;
};

}  // namespace rodeo::storage
