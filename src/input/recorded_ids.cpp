#include "input/recorded_ids.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace rodeo::input {

// Narrow ids may step forwards or backwards: the shorter step counts.
std::int64_t RecordedIds::step(std::uint32_t before, std::uint32_t now) const {
  const std::int64_t turn = std::int64_t{field_.mask()} + 1;
  const std::int64_t forward = (now - before) & field_.mask();
  return forward >= turn / 2 ? forward - turn : forward;
}

bool RecordedIds::near(std::uint32_t before, std::uint32_t now) const {
  // A step of nearly half a turn is ambiguous.
  if (field_.bits < 32)
    return std::abs(step(before, now)) <= std::min<std::int64_t>(kLargestStep, (std::int64_t{field_.mask()} + 1) * 3 / 8);
  const L1Id a{before};
  const L1Id b{now};
  if (a.ecr() == b.ecr())
    return std::abs(static_cast<std::int64_t>(a.l1()) - static_cast<std::int64_t>(b.l1())) <= kLargestStep;
  return ((a.ecr() + 1) & 0xffU) == b.ecr() && b.l1() <= kLargestStep;
}

// Unwraps narrow ids: each link's ids follow each other.
std::optional<std::int64_t> RecordedIds::follow(Follower& follower, std::uint32_t id) const {
  if (!follower.begun) follower = {.last = *first_, .position = 0, .begun = true};
  if (!near(follower.last, id)) {
    const auto before = std::exchange(follower.far, id);
    if (!before || !near(*before, id)) return std::nullopt;
  }
  follower.far.reset();
  follower.position += step(std::exchange(follower.last, id), id);
  return follower.position;
}

void RecordedIds::learn(LinkIndex link, std::span<const std::byte> chunk) {
  if (!field_.in(chunk)) return;
  const std::uint32_t id = field_.read(chunk);
  if (!seen_) seen_ = id;
  Follower& follower = learning_[link];
  const bool believed = follower.begun && near(follower.last, id);
  if (believed && !first_) {
    first_ = follower.last;
    if (field_.bits < 32) std::ranges::fill(learning_, Follower{});
  }
  if (field_.bits < 32 && first_) {
    if (const auto position = follow(follower, id)) {
      lowest_ = std::min(lowest_, *position);
      highest_ = std::max(highest_, *position);
    }
    return;
  }
  if (believed) {
    for (const L1Id one : {L1Id{follower.last}, L1Id{id}}) {
      Epoch& epoch = epochs_[one.ecr()];
      epoch.first = std::min(epoch.used ? epoch.first : one.l1(), one.l1());
      epoch.last = std::max(epoch.last, one.l1());
      epoch.used = true;
    }
  }
  follower.last = id;
  follower.begun = true;
}

void RecordedIds::end_learning() {
  learning_ = {};
  // A recording of one event has no step from chunk to chunk that could confirm its id.
  if (!first_) first_ = seen_;
  if (!first_) return;
  if (field_.bits < 32) {
    span_ = static_cast<std::uint64_t>(highest_ - lowest_ + 1);
    return;
  }
  // Begin with the epoch that has no predecessor. If all epochs are used, begin with that of the recording's first id.
  std::uint32_t begin = L1Id{*first_}.ecr();
  for (int i = 0; i < 255 && epochs_[(begin - 1) & 0xffU].used; ++i) begin = (begin - 1) & 0xffU;
  for (std::uint32_t i = 0; i < 256; ++i) {
    Epoch& epoch = epochs_[(begin + i) & 0xffU];
    if (!epoch.used) continue;
    if (span_ > 0) epoch.first = 0;  // only the first epoch may begin in the middle
    epoch.base = span_;
    span_ += epoch.last - epoch.first + 1;
  }
  if (span_ == 0) {
    const L1Id only{*first_};
    epochs_[only.ecr()] = {.used = true, .first = only.l1(), .last = only.l1(), .base = 0};
    span_ = 1;
  }
}

std::optional<std::uint64_t> RecordedIds::position(Follower& follower, std::span<const std::byte> chunk) const {
  if (!field_.in(chunk) || !first_) return std::nullopt;
  const std::uint32_t id = field_.read(chunk);
  if (field_.bits == 32) return position_of(id);
  const auto position = follow(follower, id);
  // An id before the first learnt one has no position.
  if (!position || *position < lowest_ || *position > highest_) return std::nullopt;
  return static_cast<std::uint64_t>(*position - lowest_);
}

// The position of an id with the ECR counter.
std::optional<std::uint64_t> RecordedIds::position_of(std::uint32_t id) const {
  const Epoch& epoch = epochs_[L1Id{id}.ecr()];
  const std::uint32_t l1 = L1Id{id}.l1();
  if (!epoch.used || l1 < epoch.first || l1 > epoch.last) return std::nullopt;
  return epoch.base + (l1 - epoch.first);
}

std::optional<std::int64_t> RecordedIds::distance(std::uint32_t from, std::uint32_t to) const {
  if (field_.bits < 32) return step(from, to);
  const auto first = position_of(from);
  const auto second = position_of(to);
  if (!first || !second) return std::nullopt;
  return static_cast<std::int64_t>(*second) - static_cast<std::int64_t>(*first);
}

}  // namespace rodeo::input
