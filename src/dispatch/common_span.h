// Without a trigger, readouts report which events exist. A run has the events from the first to the last number that all
// readouts can have.
//
//   readouts report first numbers     the begin is the highest, once all living readouts have reported, or `wait_ns` after
//                                     the first report
//   a readout ends by itself          the end is the lowest of the last numbers of readouts that have ended
//   the run is stopped                the end is the lowest of the newest numbers of readouts that bring something
//   a readout dies or is restarted    begin and end stay: the other readouts' events are kept
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rodeo::dispatch {

/// The readouts that have an event: one bit each, by number.
class Holders {
 public:
  void add(std::uint32_t readout) {
    if (bits_.size() <= readout / 64) bits_.resize(readout / 64 + 1);
    bits_[readout / 64] |= std::uint64_t{1} << readout % 64;
  }
  bool has(std::uint32_t readout) const {
    return readout / 64 < bits_.size() && (bits_[readout / 64] >> readout % 64 & 1) != 0;
  }

 private:
  std::vector<std::uint64_t> bits_;
};

/// Pure: time is an argument. One thread. Readouts are numbered from 0.
class CommonSpan {
 public:
  enum class Place : std::uint8_t { unknown, before, within, after };

  CommonSpan(std::uint32_t readouts, std::uint64_t wait_ns) : wait_ns_(wait_ns), readouts_(readouts) {}

  // Reports of readouts.

  void first(std::uint32_t readout, std::uint64_t id) {
    if (!readouts_[readout].first) readouts_[readout].first = id;
  }
  void newest(std::uint32_t readout, std::uint64_t id) { readouts_[readout].newest = id; }
  /// Says that the readout is another process now.
  void started_anew(std::uint32_t readout) { readouts_[readout] = {}; }
  void lives(std::uint32_t readout, bool lives) { readouts_[readout].lives = lives; }
  /// Says that the readout has reported all that it holds; before this, call newest() with its last number.
  void ended(std::uint32_t readout);

  /// Checks the time. True once, when the begin becomes known.
  bool check_time(std::uint64_t now_ns);
  /// Sets the end: the last number that all readouts have now.
  void stop();

  bool begin_known() const { return begin_.has_value(); }
  Place place_of(std::uint64_t id) const {
    if (!begin_) return Place::unknown;
    if (id < *begin_) return Place::before;
    return id > end_ ? Place::after : Place::within;
  }
  /// True if every readout that may have the event has it.
  bool all_have(std::uint64_t id, const Holders& holders) const;

 private:
  struct Readout {
    std::optional<std::uint64_t> first = {};
    std::uint64_t newest = 0;
    bool lives = true;
    bool ended = false;
  };
  void begin();

  const std::uint64_t wait_ns_;
  std::vector<Readout> readouts_;
  std::uint64_t told_ns_ = UINT64_MAX;  // The time when check_time() first found a readout's first number.
  std::optional<std::uint64_t> begin_;
  std::uint64_t end_ = UINT64_MAX;
};

}  // namespace rodeo::dispatch
