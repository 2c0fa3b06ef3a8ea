// Who assigns Level-1 ids: offered triggers pass busy and dead time, those that are left get consecutive ids, and every follower is told the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace rodeo::emulator {

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
  unsigned wait_for = 1;                         ///< nothing is offered before so many followers are ready
  std::uint64_t seed = 1;
};

/// Consecutive triggers of one ECR period: id of trigger i is l1id + i (24 bits go round, the ECR counter stays).
struct TriggerRange {
  std::uint64_t sequence = 0;  ///< of the first, counted from the begin of the run
  std::uint32_t l1id = 0;      ///< of the first, with the ECR counter
  std::uint32_t count = 0;
  std::uint32_t orbit = 0;  ///< when the first was accepted

  std::uint32_t l1id_of(std::uint32_t i) const { return (l1id & 0xff000000U) | ((l1id + i) & 0xffffffU); }
  bool operator==(const TriggerRange&) const = default;
};

struct TriggerReport {
  double seconds = 0;  ///< since the first trigger could have been
  std::uint64_t offered = 0;
  std::uint64_t accepted = 0;
  std::uint64_t vetoed_busy = 0;
  std::uint64_t vetoed_simple = 0;
  std::uint64_t vetoed_complex = 0;
  std::uint32_t ecrs = 0;
  std::string busy_follower;  ///< who held triggers back most; empty: nobody
  double dead_time_fraction() const {
    return offered == 0 ? 0 : static_cast<double>(offered - accepted) / static_cast<double>(offered);
  }
};

/// Time is an argument (steady nanoseconds), so that a test decides it. Thread-safe.
class TriggerAuthority {
 public:
  using Follower = std::size_t;

  explicit TriggerAuthority(TriggerSettings settings) : settings_(settings), random_(settings.seed) {}

  /// Nothing is offered, and nothing counts as dead time, for 100 ms: endpoints that are switched off one after the other end with the same trigger.
  void pause(std::uint64_t now_ns);

  /// A follower has room for `capacity` triggers that it has not done yet. It is busy when they are that many, and not looked at until it is ready.
  Follower join(std::string name, std::uint64_t capacity);
  /// A follower that is not ready holds nobody up and misses what is accepted meanwhile.
  void set_ready(Follower follower, bool ready, std::uint64_t now_ns);
  void leave(Follower follower);
  /// Appends up to `most` triggers that this follower has not had, in order, and returns how many.
  std::uint64_t take(Follower follower, std::uint64_t most, std::uint64_t now_ns, std::vector<TriggerRange>& out);
  /// The follower has dealt with so many more, in order.
  void done(Follower follower, std::uint64_t count);
  /// Busy for another reason than its capacity.
  void set_busy(Follower follower, bool busy);

  /// Offers the triggers whose time has come. take() does it too.
  void advance(std::uint64_t now_ns);
  bool ended() const;
  TriggerReport report() const;

 private:
  struct FollowerState {
    std::string name;
    std::uint64_t capacity = 0;
    std::uint64_t taken = 0;  // sequence of the next one to hand out
    std::uint64_t done = 0;   // sequence below which all are done
    std::uint64_t held_up = 0;
    bool ready = false;
    bool busy = false;
    bool here = false;
  };

  void advance_locked(std::uint64_t now_ns);
  FollowerState* busy_follower();
  std::uint64_t room() const;
  void accept(std::uint64_t count, std::uint64_t time_ns);
  void event_counter_reset();
  void forget();
  bool started() const { return start_ns_ != 0; }
  double gap_ns();

  const TriggerSettings settings_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<FollowerState> followers_;
  std::deque<TriggerRange> ranges_;  // from the oldest that somebody still wants
  std::uint64_t start_ns_ = 0;
  std::uint64_t now_ns_ = 0;
  double next_ns_ = 0;
  std::uint64_t next_ecr_ns_ = 0;
  std::uint64_t paused_until_ns_ = 0;
  std::uint64_t since_ecr_ = 0;
  double last_accepted_ns_ = -1e300;
  double bucket_ = 0;
  double bucket_at_ns_ = 0;
  std::uint32_t next_l1id_ = 0;
  TriggerReport report_;
};

/// One follower's end, whoever the authority is: this process's or another's. One thread.
class TriggerSource {
 public:
  virtual ~TriggerSource() = default;
  virtual void set_ready(bool ready) = 0;
  virtual std::uint64_t take(std::uint64_t most, std::vector<TriggerRange>& out) = 0;
  virtual void done(std::uint64_t count) = 0;
  virtual void set_busy(bool busy) = 0;
  /// A card's source is being switched off: nothing is offered for a moment, in which those of its other endpoints follow.
  virtual void pause() = 0;
};

/// Follows an authority in the same process, which must live longer.
class LocalTriggerSource final : public TriggerSource {
 public:
  LocalTriggerSource(TriggerAuthority& authority, std::string name, std::uint64_t capacity)
      : authority_(authority), follower_(authority.join(std::move(name), capacity)) {}
  ~LocalTriggerSource() override { authority_.leave(follower_); }
  void set_ready(bool ready) override;
  std::uint64_t take(std::uint64_t most, std::vector<TriggerRange>& out) override;
  void done(std::uint64_t count) override { authority_.done(follower_, count); }
  void set_busy(bool busy) override { authority_.set_busy(follower_, busy); }
  void pause() override;

 private:
  TriggerAuthority& authority_;
  TriggerAuthority::Follower follower_;
};

/// Orbits of the LHC since `start`: 3564 bunch crossings of 24.95 ns.
inline constexpr double kOrbitNs = 1e9 / 11245.5;

}  // namespace rodeo::emulator
