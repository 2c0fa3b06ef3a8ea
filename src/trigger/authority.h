// Who assigns Level-1 ids: offered triggers pass busy and dead time, those that are left get consecutive ids, and every
// follower is told the same.
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

  double rate_hz = 0;  ///< offered; 0: whenever every follower has room
  Spacing spacing = Spacing::random;
  std::chrono::nanoseconds simple_dead_time{0};  ///< after each accepted trigger
  unsigned bucket_triggers = 0;                  ///< complex dead time, a leaky bucket: so many triggers fit; 0: none
  std::chrono::nanoseconds bucket_period{0};     ///< and one leaks out each so often
  std::chrono::nanoseconds ecr_period{0};        ///< event counter reset; 0: never
  std::uint64_t ecr_triggers = 0;                ///< the same by count; 0: never
  std::uint64_t limit = 0;                       ///< accepted triggers of the run; 0: no end
  unsigned wait_for = 1;                         ///< nothing is offered while fewer functions, here and elsewhere, are ready
  bool hold = false;                             ///< nothing is offered before release()
  std::uint64_t seed = 1;
  std::uint16_t lumi_block = 1;  ///< of the first trigger
  std::chrono::nanoseconds lumi_block_period{
      0};                       ///< a block is so long, since the first trigger could have been; 0: until somebody asks
  std::uint16_t scan_step = 0;  ///< of the first trigger
  std::chrono::nanoseconds scan_step_period{0};  ///< the same for steps of a scan
};

class TriggerAuthority final : public TriggerHub {
 public:
  explicit TriggerAuthority(TriggerSettings settings);

  void set_ready(Follower follower, bool ready, std::uint64_t now_ns) override;
  std::uint64_t take(Follower follower, std::uint64_t most, std::uint64_t now_ns, std::vector<TriggerRange>& out) override;
  bool hold(std::uint64_t now_ns) override;
  TriggerReport report() const override;

  /// Nothing is offered from now on until release(), and nothing counts as dead time meanwhile. Returns how many triggers have been accepted: there are
  /// no others until then. Again is harmless, as is release(). Any thread.
  std::uint64_t hold_run(std::uint64_t now_ns);
  /// Triggers are offered again, and to so many functions at least, if `wait_for` says it; 0 counts as 1.
  void release(std::optional<unsigned> wait_for, std::uint64_t now_ns);

  /// What the next accepted trigger has, and those behind it, until the next time.
  struct Next {
    std::uint64_t sequence = 0;  ///< of that trigger
    std::uint16_t lumi_block = 0;
    std::uint16_t scan_step = 0;
  };
  /// Luminosity block or scan step, or both, go on with the next trigger: to a number, or (`next`) by one. What time does to them begins anew. Any thread.
  struct Advance {
    bool next_lumi_block = false;
    bool next_scan_step = false;
    std::optional<std::uint16_t> lumi_block = {};
    std::optional<std::uint16_t> scan_step = {};
  };
  Next advance_marks(const Advance& advance, std::uint64_t now_ns);
  /// The last kMostMarks of them, oldest first.
  std::vector<TriggerMark> marks() const;
  static constexpr std::size_t kMostMarks = 256;

  // A follower in another process: how far it has room is said, not counted.

  /// Nothing if the name is taken.
  std::optional<Follower> join_peer(std::string name, std::string peer);
  /// So many of its functions are ready, and it has room for so many triggers behind those that it has taken.
  void set_peer(Follower follower, unsigned ready, bool busy, std::uint64_t room, std::uint64_t now_ns);

  struct Now {
    std::uint64_t sequence;  ///< of the next trigger
    std::uint64_t time_ns;   ///< since the first trigger could have been
    std::uint32_t ecrs;
  };
  Now now() const;

  /// Offers the triggers whose time has come. take() does it too.
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
  bool mark_next_ = false;  ///< somebody asked for a block or a step: that it begins is a mark, also if its number stays
  std::uint64_t block_since_ns_ = 0;
  std::uint64_t step_since_ns_ = 0;
  std::deque<TriggerMark> marks_;
  TriggerReport report_;
};

}  // namespace rodeo::trigger
