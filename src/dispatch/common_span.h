// Without a trigger, readouts say which events there are. Those of the run are from the first number that all readouts can have to the last one.
//
//   a readout tells its first number      the begin is the highest of these, once all that live have told it, or `wait_ns` after the first that has
//   it ends by itself                     the end is the lowest of the last numbers of those that have ended
//   the run is stopped                    the end is the lowest of the newest numbers of those that bring something
//   it dies, or is started anew           begin and end stay: what the others have of the run is not thrown away
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rodeo::dispatch {

/// Which readouts have an event: a bit for each, by number.
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

/// Pure: time is an argument. One thread. Readouts are numbers from 0.
class CommonSpan {
 public:
  enum class Place : std::uint8_t { unknown, before, within, after };

  CommonSpan(std::uint32_t readouts, std::uint64_t wait_ns) : wait_ns_(wait_ns), readouts_(readouts) {}

  // What readouts say.

  void first(std::uint32_t readout, std::uint64_t id) {
    if (!readouts_[readout].first) readouts_[readout].first = id;
  }
  void newest(std::uint32_t readout, std::uint64_t id) { readouts_[readout].newest = id; }
  /// It is another process now.
  void started_anew(std::uint32_t readout) { readouts_[readout] = {}; }
  void lives(std::uint32_t readout, bool lives) { readouts_[readout].lives = lives; }
  /// It has told all that it holds, and newest() is its last number.
  void ended(std::uint32_t readout);

  /// Looks at the time. True once: the begin is known from now on.
  bool look(std::uint64_t now_ns);
  /// No number comes in behind those that all have now.
  void stop();

  bool begin_known() const { return begin_.has_value(); }
  Place of(std::uint64_t id) const {
    if (!begin_) return Place::unknown;
    if (id < *begin_) return Place::before;
    return id > end_ ? Place::after : Place::within;
  }
  /// Every readout that may have it, does.
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
  std::uint64_t told_ns_ = UINT64_MAX;  // when the first of them was found to have told its first number
  std::optional<std::uint64_t> begin_;
  std::uint64_t end_ = UINT64_MAX;
};

}  // namespace rodeo::dispatch
