// Finds the events of several writers that belong together, while each writer brings its events in order: by id, within a
// bounded window.
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

/// Pure: no files, no clock. Holds at most `window` events of each writer, however long the files are. Uses the global id,
/// or the L1 id. L1 ids that wrap (256 event counter resets) continue, if neighbouring events are less than 128 resets
/// apart. One thread.
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

  /// Adds the next event of a writer, in the order of its files. False: next() has already returned events of this or a
  /// later id, so the event cannot be placed and is refused.
  bool add(std::size_t writer, L1Id id, Event event) {
    const std::int64_t near = writers_[writer].last ? *writers_[writer].last : reference_.value_or(id.value);
    return add_key(writer, near + static_cast<std::int32_t>(id.value - static_cast<std::uint32_t>(near)), std::move(event));
  }
  bool add(std::size_t writer, std::uint64_t global_id, Event event) {
    return add_key(writer, static_cast<std::int64_t>(global_id), std::move(event));
  }

  void end(std::size_t writer) { writers_[writer].ended = true; }

  /// All events of the lowest id, by writer, and for each writer in order of arrival; empty: no event is left. Call it only
  /// while wants() returns nothing. Valid until the next call.
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

  /// The highest number of events held at a time.
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
    std::priority_queue<Waiting> waiting;  // events that wait; the lowest id is on top
    std::optional<std::int64_t> last;      // the last id, unwrapped
    bool ended = false;
  };

  const std::size_t window_;
  std::vector<Writer> writers_;
  std::optional<std::int64_t> reference_;  // the first id of all events
  std::optional<std::int64_t> given_;      // the last id that next() returned
  std::uint64_t order_ = 0;
  std::size_t held_ = 0;
  std::size_t most_held_ = 0;
  std::vector<Member> together_;
};

}  // namespace rodeo::storage
