// Assigns Level-1 ids: offered triggers pass busy and dead time, the accepted ones get consecutive ids, and all
// followers receive the same triggers.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "formats/trigger_plan.h"
#include "trigger/source.h"

namespace rodeo::trigger {

struct TriggerSettings {
  enum class Spacing : std::uint8_t { periodic, random };

  double rate_hz = 0;  ///< offered triggers a second; 0: a trigger whenever all followers have room
  Spacing spacing = Spacing::random;
  std::chrono::nanoseconds simple_dead_time{0};  ///< dead time after each accepted trigger
  unsigned bucket_triggers = 0;                  ///< complex dead time: size of a leaky bucket in triggers; 0: no bucket
  std::chrono::nanoseconds bucket_period{0};     ///< time in which one trigger leaks out
  std::chrono::nanoseconds ecr_period{0};        ///< interval of event counter resets; 0: never
  std::uint64_t ecr_triggers = 0;                ///< accepted triggers between event counter resets; 0: never
  std::uint64_t limit = 0;                       ///< accepted triggers of the run; 0: no limit
  unsigned wait_for = 1;                         ///< triggers begin when so many functions, here and elsewhere, are ready
  bool hold = false;                             ///< no triggers are offered before release()
  std::uint64_t seed = 1;
  std::uint16_t lumi_block = 1;  ///< luminosity block of the first trigger
  std::chrono::nanoseconds lumi_block_period{
      0};                       ///< length of a block, from the start of triggers on; 0: a block ends on request
  std::uint16_t scan_step = 0;  ///< scan step of the first trigger
  std::chrono::nanoseconds scan_step_period{0};  ///< length of a scan step, as lumi_block_period
};

class TriggerAuthority final : public TriggerHub {
 public:
  explicit TriggerAuthority(TriggerSettings settings);

  void set_ready(Follower follower, bool ready, std::uint64_t now_ns) override;
  std::uint64_t take(Follower follower, std::uint64_t most, std::uint64_t now_ns, std::vector<TriggerRange>& out) override;
  bool hold(std::uint64_t now_ns) override;
  TriggerReport report() const override;

  /// Offers no triggers until release(); this time is not dead time. Returns the number of accepted triggers, which stays
  /// until release(). Repeated calls of both are harmless. Any thread may call it.
  std::uint64_t hold_run(std::uint64_t now_ns);
  /// Offers triggers again as soon as `wait_for` functions are ready, if given; 0 counts as 1.
  void release(std::optional<unsigned> wait_for, std::uint64_t now_ns);

  /// The numbers of the next accepted trigger and of the triggers behind it, until the next change.
  struct Next {
    std::uint64_t sequence = 0;  ///< sequence number of the next trigger
    std::uint16_t lumi_block = 0;
    std::uint16_t scan_step = 0;
  };
  /// Changes luminosity block, scan step, or both with the next trigger: to a number, or (`next`) by one. Their periods
  /// begin again. Any thread may call it.
  struct Advance {
    bool next_lumi_block = false;
    bool next_scan_step = false;
    std::optional<std::uint16_t> lumi_block = {};
    std::optional<std::uint16_t> scan_step = {};
  };
  Next advance_marks(const Advance& advance, std::uint64_t now_ns);
  /// The last kMostMarks marks, oldest first.
  std::vector<TriggerMark> marks() const;
  static constexpr std::size_t kMostMarks = 256;

  // These functions serve a follower in another process, which reports its room itself.

  /// Returns no follower if the name is taken.
  std::optional<Follower> join_peer(std::string name, std::string peer);
  /// Sets the number of its ready functions, and its room for triggers behind the last one that it has taken.
  void set_peer(Follower follower, unsigned ready, bool busy, std::uint64_t room, std::uint64_t now_ns);

  struct Now {
    std::uint64_t sequence;  ///< sequence number of the next trigger
    std::uint64_t time_ns;   ///< time from the start of triggers
    std::uint32_t ecrs;
  };
  Now now() const;

  /// Offers the triggers that are due, as take() does.
  void advance(std::uint64_t now_ns);
  bool ended() const;

 private:
  void set_functions(Follower follower, unsigned ready, std::uint64_t now_ns);
  void advance_locked(std::uint64_t now_ns);
  void accept(std::uint64_t count, std::uint64_t time_ns);
  void mark_until(std::uint64_t time_ns);
  bool dead_at(std::uint64_t time_ns);
  bool started() const { return start_ns_ != 0; }
  bool enough_ready() const { return ledger_.ready_functions() >= wait_for_; }
  void start_if_ready(std::uint64_t now_ns);

  const TriggerSettings settings_;
  formats::TriggerPlan plan_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t offering_ns_ = 0;
  std::uint64_t held_until_ns_ = 0;
  unsigned wait_for_;
  bool held_;
  std::uint64_t last_accepted_ns_ = 0;
  double bucket_ = 0;
  std::uint64_t bucket_at_ns_ = 0;
  std::uint16_t lumi_block_;
  std::uint16_t scan_step_;
  bool mark_next_ = false;  ///< a block or step was requested: the next trigger makes a mark, even with the same number
  std::uint64_t block_since_ns_ = 0;
  std::uint64_t step_since_ns_ = 0;
  std::deque<TriggerMark> marks_;
  TriggerReport report_;
};

}  // namespace rodeo::trigger
