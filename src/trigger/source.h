// Connects a card to the triggers: the hub of its process is the authority itself, or follows an authority elsewhere.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trigger/ledger.h"

namespace rodeo::trigger {

/// The hub that all functions of a process follow. Time is an argument (steady nanoseconds), so that tests can set it. Any
/// thread may call it, and no call blocks.
class TriggerHub {
 public:
  using Follower = TriggerLedger::Follower;
  virtual ~TriggerHub() = default;

  /// Adds a follower with room for `capacity` unfinished triggers; with so many it is busy. It counts only once it is ready.
  Follower join(std::string name, std::uint64_t capacity) {
    const std::lock_guard lock(mutex_);
    return ledger_.join(std::move(name), capacity);
  }
  virtual void leave(Follower follower) {
    const std::lock_guard lock(mutex_);
    ledger_.leave(follower);
  }
  /// A follower that is not ready gets no triggers and delays none, except if fewer functions than required are ready: then
  /// triggers are held.
  virtual void set_ready(Follower follower, bool ready, std::uint64_t now_ns) = 0;
  /// Appends up to `most` triggers that are new for this follower, in order, and returns their number.
  virtual std::uint64_t take(Follower follower, std::uint64_t most, std::uint64_t now_ns,
                             std::vector<TriggerRange>& out) = 0;
  /// The follower has finished `count` more triggers, in order.
  virtual void done(Follower follower, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    ledger_.done(follower, count);
  }
  /// Makes the follower busy for a reason other than its capacity, or ends this.
  virtual void set_busy(Follower follower, bool busy) {
    const std::lock_guard lock(mutex_);
    ledger_.set_busy(follower, busy);
  }
  /// Offers no triggers for 100 ms from the last call on; this is not dead time. Functions that are switched off one after
  /// the other so end with the same trigger. True once everything accepted before can be taken and nothing else comes.
  virtual bool hold(std::uint64_t now_ns) = 0;
  virtual TriggerReport report() const = 0;

 protected:
  mutable std::mutex mutex_;  // guards the ledger and the state of the derived hub
  TriggerLedger ledger_;
};

/// One function's access to the hub. One thread. The hub must outlive it.
class TriggerSource {
 public:
  TriggerSource(TriggerHub& hub, std::string name, std::uint64_t capacity)
      : hub_(hub), follower_(hub.join(std::move(name), capacity)) {}
  ~TriggerSource() { hub_.leave(follower_); }
  TriggerSource(const TriggerSource&) = delete;
  TriggerSource& operator=(const TriggerSource&) = delete;

  void set_ready(bool ready) { hub_.set_ready(follower_, ready, base::steady_now_ns()); }
  std::uint64_t take(std::uint64_t most, std::vector<TriggerRange>& out) {
    return hub_.take(follower_, most, base::steady_now_ns(), out);
  }
  void done(std::uint64_t count) { hub_.done(follower_, count); }
  void set_busy(bool busy) { hub_.set_busy(follower_, busy); }
  /// Call it while the function is being switched off. Once it returns true and take() returns nothing, the function has the
  /// same triggers as all others.
  bool hold() { return hub_.hold(base::steady_now_ns()); }

 private:
  TriggerHub& hub_;
  TriggerHub::Follower follower_;
};

}  // namespace rodeo::trigger
