// Rules that differ between detectors with RDH pages, learnt from the pages: which pages a packet counter counts, and the
// number of orbits between two heartbeat frames (docs/reference/formats/rdh.md, "Rules that are learnt").
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace rodeo::formats {

/// Learns whether each link of an endpoint counts its own pages, or all links of the endpoint share one packet counter. Call
/// it for every page that follows the previous one of its link: by its number within a frame, or as the first page after a
/// stop bit.
class PacketCounterRule {
 public:
  /// `follows`: the packet counter has the next value.
  void within_frame(bool follows) {
    within_.add(follows);
    certain_ = certain_ || std::popcount(within_.recent) >= 8;
  }
  void between_frames(bool follows) {
    between_.add(follows);
    certain_ = certain_ || std::popcount(between_.recent & 0xffffU) >= 12;
    in_a_row_ = follows ? in_a_row_ + 1 : 0;
  }

  /// The links share a counter, so a gap in the counter of one link means nothing. The first pages may give another result
  /// than more pages do.
  bool shared() const {
    return certain_ || (within_.other >= 2 && within_.other * 8 > within_.next) ||
           (between_.other >= 4 && between_.other > between_.next);
  }
  /// True: the links share a counter, and this result never changes again.
  bool certainly_shared() const { return certain_; }
  /// Many frames in a row followed each other: earlier gaps were losses of the link.
  bool settled() const { return in_a_row_ >= 8 && !shared(); }
  /// The final result, at the end of all pages.
  bool own() const { return !shared() && between_.next + within_.next >= between_.other + within_.other; }

 private:
  // Within a frame with consecutive page numbers no page is missing: other steps of the counter mean a shared counter, or
  // rarely a flipped bit. Between frames, other steps may mean lost frames, unless most steps are such.
  struct Steps {
    std::uint64_t next = 0;
    std::uint64_t other = 0;
    std::uint32_t recent = 0;  // one bit for each of the last steps: 1 if the step was another one
    void add(bool follows) {
      ++(follows ? next : other);
      recent = recent << 1 | (follows ? 0U : 1U);
    }
  };

  Steps within_;
  Steps between_;
  std::uint64_t in_a_row_ = 0;
  bool certain_ = false;
};

/// Learns the number of orbits between a frame and the next one of its link: 1 in continuous data, another constant if
/// frames come less often, any number in triggered data. The rule is the step that has more than half of all counts.
class OrbitRule {
 public:
  /// `step` is at least 1.
  void add(std::uint32_t step) {
    ++steps_;
    if (Count* const count = of(step)) {
      ++count->times;
      if (count->times > leader_times_) {
        leader_times_ = count->times;
        leader_ = step;
      }
    }
  }

  /// Nothing if no frames were compared yet, or if steps differ and all are right.
  std::optional<std::uint32_t> step() const { return leader_times_ * 2 > steps_ ? std::optional(leader_) : std::nullopt; }
  std::uint64_t steps() const { return steps_; }
  /// Number of steps that break the rule.
  std::uint64_t others() const { return step() ? steps_ - leader_times_ : 0; }
  /// True if few steps break the rule, so that each of them is an error. If more steps break it, triggers cause some of
  /// them: then only other evidence makes a step an error.
  bool strict() const { return step() && (others() < kFewOthers || others() * 100 <= steps_); }

 private:
  static constexpr std::uint64_t kFewOthers = 4;

  struct Count {
    std::uint32_t step = 0;
    std::uint64_t times = 0;
  };
  /// The counter of a step. If all counters are in use, a rare step loses its counter; a step with more than half of all
  /// counts never does.
  Count* of(std::uint32_t step) {
    Count* rarest = &counts_[0];
    for (Count& count : counts_) {
      if (count.step == step) return &count;
      if (count.times < rarest->times) rarest = &count;
    }
    if (rarest->times > 1) {
      --rarest->times;
      return nullptr;
    }
    *rarest = {step, 0};
    return rarest;
  }

  std::array<Count, 16> counts_{};
  std::uint64_t steps_ = 0;
  std::uint64_t leader_times_ = 0;
  std::uint32_t leader_ = 0;
};

/// The orbits of the frames of one link, as runs of equal steps. Orbits are counted from a common origin, and do not wrap.
class OrbitHistory {
 public:
  struct Run {
    std::int64_t from = 0;  ///< orbit of a frame; `times` frames follow it, each after `step` orbits
    std::uint32_t step = 0;
    std::uint32_t times = 0;
    bool counter_follows = false;  ///< the packet counter of each frame is the next one of its link
  };

  /// Adds the frame that follows the one at `from`. Returns true for a new run.
  bool add(std::int64_t from, std::uint32_t step, bool counter_follows) {
    if (!runs_.empty()) {
      Run& last = runs_.back();
      if (last.step == step && last.counter_follows == counter_follows && last.times < UINT32_MAX &&
          last.from + std::int64_t{step} * last.times == from) {
        ++last.times;
        return false;
      }
      sorted_ = sorted_ && last.from <= from;
    }
    runs_.push_back({from, step, 1, counter_follows});
    return true;
  }
  void clear() { runs_.clear(), sorted_ = true; }

  const std::vector<Run>& runs() const { return runs_; }
  /// Call it before has_frame(): orbits of damaged headers may go back.
  void sort() {
    if (!std::exchange(sorted_, true)) std::ranges::stable_sort(runs_, {}, &Run::from);
  }
  /// True if a frame lies between two orbits.
  bool has_frame(std::int64_t after, std::int64_t before) const {
    const auto next = std::ranges::upper_bound(runs_, after, {}, &Run::from);
    if (next != runs_.end() && next->from < before) return true;
    if (next == runs_.begin()) return false;
    const Run& run = *std::prev(next);
    const std::int64_t number = (after - run.from) / run.step + 1;
    return number <= run.times && run.from + number * run.step < before;
  }

 private:
  std::vector<Run> runs_;
  bool sorted_ = true;
};

}  // namespace rodeo::formats
