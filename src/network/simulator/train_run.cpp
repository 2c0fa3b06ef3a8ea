#include "network/simulator/train_run.h"

#include <algorithm>

namespace rodeo::network {

namespace {

constexpr Picoseconds kMillisecond = 1'000'000'000;
constexpr Picoseconds kFirstInterval = 4 * kMillisecond;
constexpr Picoseconds kLongestInterval = 256 * kMillisecond;
constexpr Picoseconds kLeastPatience = kMillisecond / 4;
constexpr Picoseconds kMostPatience = 64 * kMillisecond;
constexpr Picoseconds kShortStretch = 2 * kMillisecond;

}  // namespace

TrainRun::TrainRun(const Scenario& scenario, const Observers& observers)
    : scenario_(scenario), observers_(observers), interval_(kFirstInterval), patience_(kLeastPatience) {
  mine_.occupancy_interval_ns = observers.occupancy_interval_ns;
  if (observers.occupancy) mine_.occupancy = [this](const OccupancySample& sample) { held_.push_back(sample); };
  if (observers.progress) {
    mine_.progress = [this](std::uint64_t virtual_ns) {
      told_ns_ = std::max(told_ns_, virtual_ns);
      return observers_.progress(told_ns_);
    };
  }
  engine_ = begin();
  saved_.push_back({.engine = nullptr, .time = 0, .held = 0, .exact = true});
}

void TrainRun::run() {
  const Picoseconds end = scenario_.duration_ns * kPicosecondsPerNanosecond;
  while (engine_->now() < end && !engine_->stopped()) {
    if (!engine_->in_trains()) {
      continue_in_packets();
      continue;
    }
    engine_->run(std::max(engine_->now(), saved_.back().time) + interval_);
    if (engine_->stopped()) break;
    if (engine_->disturbed()) {
      restore();
    } else if (engine_->now() < end) {
      interval_ = std::min(2 * interval_, kLongestInterval);
      save(false);
      forget_old();
    }
  }
  if (!engine_->in_trains()) in_packets_ += engine_->now() - packets_since_;
  report(held_.size());
}

/// Reports samples that no return can change any more.
void TrainRun::report(std::size_t samples) {
  for (std::size_t i = 0; i < samples; ++i) observers_.occupancy(held_[i]);
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(samples));
}

void TrainRun::save(bool exact) {
  saved_.push_back({std::make_unique<Engine>(*engine_), engine_->now(), held_.size(), exact});
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): saved_ owns it
}

/// The begin of the data that have an effect: a time before the oldest event under way, with a margin for the error of times
/// with trains.
Picoseconds TrainRun::begin_of_what_matters() const {
  const Picoseconds oldest = engine_->oldest_assigned();
  const Picoseconds spare = (engine_->now() - oldest) / 8 + kMillisecond / 10;
  return oldest > spare ? oldest - spare : 0;
}

/// Deletes saved states to which no return is possible any more.
void TrainRun::forget_old() {
  const Picoseconds begin = begin_of_what_matters();
  while (saved_.size() > 1 && saved_[1].time <= begin) saved_.erase(saved_.begin());
  const std::size_t settled = saved_.front().held;
  report(settled);
  for (Saved& one : saved_) one.held -= settled;
}

void TrainRun::restore() {
  const Picoseconds packets_from = begin_of_what_matters();
  packets_at_least_ = engine_->mattered();
  while (saved_.back().time > packets_from && !saved_.back().exact) saved_.pop_back();
  Saved& from = saved_.back();
  engine_ = from.engine ? std::move(from.engine) : begin();
  held_.resize(from.held);
  const Picoseconds time = from.time;
  saved_.clear();
  if (time < packets_from) engine_->run(packets_from);
  engine_->go(false);
  packets_since_ = engine_->now();
  patience_ = packets_since_ < trains_since_ + kShortStretch ? std::min(2 * patience_, kMostPatience)
                                                             : std::max(patience_ / 2, kLeastPatience);
}

void TrainRun::continue_in_packets() {
  engine_->run(engine_->now() + patience_ / 4);
  report(held_.size());  // a run with packets never returns
  const Picoseconds now = engine_->now();
  if (engine_->stopped() || now < packets_at_least_ || now < engine_->mattered() + patience_ || !engine_->calm()) return;
  in_packets_ += now - packets_since_;
  engine_->go(true);
  trains_since_ = now;
  interval_ = kFirstInterval;
  save(true);
}

Outcome TrainRun::outcome() {
  Outcome out = engine_->outcome();
  out.packet_by_packet_ns = in_packets_ / kPicosecondsPerNanosecond;
  return out;
}

}  // namespace rodeo::network
