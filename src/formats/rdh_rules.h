// What differs between detectors that send RDH pages, learnt from the pages themselves: whose pages a packet counter counts, and how many orbits lie
// between two heartbeat frames (docs/formats/rdh.md, "Rules that are learnt").
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rodeo::formats {

/// Whether each link of an endpoint counts its own pages, or all links of the endpoint share one packet counter. Told of every page that follows the one
/// before it in the order of its link: by its number within a frame, or as the first page behind a stop bit.
class PacketCounterRule {
 public:
  /// `follows`: the packet counter is the next one.
  void within_frame(bool follows) {
    within_.add(follows);
    certain_ = certain_ || std::popcount(within_.recent) >= 8;
  }
  void between_frames(bool follows) {
    between_.add(follows);
    certain_ = certain_ || std::popcount(between_.recent & 0xffffU) >= 12;
    in_a_row_ = follows ? in_a_row_ + 1 : 0;
  }

  /// A gap in the counter of a link says nothing. Of a few pages that may be judged otherwise when more have come.
  bool shared() const {
    return certain_ || (within_.other >= 2 && within_.other * 8 > within_.next) ||
           (between_.other >= 4 && between_.other > between_.next);
  }
  /// The same beyond doubt: it stays so.
  bool certainly_shared() const { return certain_; }
  /// Many frames in a row followed each other: gaps before them were losses of the link.
  bool settled() const { return in_a_row_ >= 8 && !shared(); }
  /// At the end of all pages.
  bool own() const { return !shared() && between_.next + within_.next >= between_.other + within_.other; }

 private:
  // No page is missing within a frame whose page numbers follow each other: other steps there are a shared counter, or a flipped bit now and then. Between
  // frames they may be frames that were lost, unless they are the usual case.
  struct Steps {
    std::uint64_t next = 0;
    std::uint64_t other = 0;
    std::uint32_t recent = 0;  // a bit for each of the last steps: another one
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

/// How many orbits lie between a frame and the next one of its link: 1 in continuous data, another number if frames are sent every so many orbits, any
/// number in triggered data. The rule is the step that more than half of all steps have.
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

  /// Nothing: steps differ, so that no step is wrong; or there is none.
  std::optional<std::uint32_t> step() const { return leader_times_ * 2 > steps_ ? std::optional(leader_) : std::nullopt; }
  std::uint64_t steps() const { return steps_; }
  /// How many steps are not by the rule.
  std::uint64_t others() const { return step() ? steps_ - leader_times_ : 0; }

 private:
  struct Count {
    std::uint32_t step = 0;
    std::uint64_t times = 0;
  };
  /// The count of a step; that of a rare one goes to a new one when all are taken. A step of more than half keeps its count.
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

}  // namespace rodeo::formats
