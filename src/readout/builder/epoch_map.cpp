#include "readout/builder/epoch_map.h"

#include <algorithm>

namespace rodeo::readout {
namespace {

// Sequence numbers start well above zero, so that "before the first event" is still a number.
constexpr Sequence kOrigin = Sequence{1} << 32;

}  // namespace

std::optional<Epoch> EpochMap::newest() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return std::nullopt;
  return epochs_[(count_ - 1) % kRemembered];
}

std::optional<Sequence> EpochMap::run_first() const {
  const std::lock_guard lock(mutex_);
  return count_ == 0 ? std::nullopt : std::optional(run_first_);
}

Epoch EpochMap::start(std::uint32_t ecr, std::uint32_t l1) {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) {
    epochs_[0] = Epoch{ecr, kOrigin, kOrigin + l1 - gap_, kOrigin + l1};
    run_first_ = epochs_[0].first;
    highest_ = kOrigin + l1;
    count_ = 1;
    opened_.store(count_, std::memory_order_release);
    if (on_start_) on_start_(epochs_[0].first);
  }
  return epochs_[(count_ - 1) % kRemembered];
}

std::optional<Epoch> EpochMap::find(std::uint64_t resets) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < std::min(count_, kRemembered); ++i) {
    if (epochs_[i].resets == resets) return epochs_[i];
  }
  return std::nullopt;
}

std::optional<Epoch> EpochMap::after(std::uint64_t resets) const {
  const std::lock_guard lock(mutex_);
  std::optional<Epoch> next;
  for (std::size_t i = 0; i < std::min(count_, kRemembered); ++i) {
    if (epochs_[i].resets > resets && (!next || epochs_[i].resets < next->resets)) next = epochs_[i];
  }
  return next;
}

Epoch EpochMap::at(Sequence sequence) const {
  const std::lock_guard lock(mutex_);
  const std::size_t oldest = count_ > kRemembered ? count_ - kRemembered : 0;
  Epoch found = epochs_[oldest % kRemembered];
  for (std::size_t i = oldest; i < count_; ++i) {
    if (epochs_[i % kRemembered].first <= sequence) found = epochs_[i % kRemembered];
  }
  return found;
}

Epoch EpochMap::open(std::uint64_t resets, std::uint32_t first_l1) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < std::min(count_, kRemembered); ++i) {
    if (epochs_[i].resets == resets) return epochs_[i];
  }
  for (const WorkerProgress& worker : workers_) highest_ = std::max(highest_, worker.head.load(std::memory_order_acquire));
  const Sequence first = highest_ + 1 + gap_;
  const Epoch epoch{resets, first, first, first + first_l1};
  highest_ = first + first_l1;
  epochs_[count_ % kRemembered] = epoch;
  ++count_;
  opened_.store(count_, std::memory_order_release);
  return epoch;
}

}  // namespace rodeo::readout
