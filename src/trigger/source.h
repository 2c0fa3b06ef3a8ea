// Between a card and whoever tells it triggers: the hub of its process, which is the authority or follows one elsewhere.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trigger/ledger.h"

namespace rodeo::trigger {

/// Whom all functions of a process follow. Time is an argument (steady nanoseconds), so that a test decides it. Thread-safe; no call waits.
class TriggerHub {
 public:
  using Follower = TriggerLedger::Follower;
  virtual ~TriggerHub() = default;

  /// A follower has room for `capacity` triggers that it has not done yet. It is busy when they are that many, and not looked at until it is ready.
  Follower join(std::string name, std::uint64_t capacity) {
    const std::lock_guard lock(mutex_);
    return ledger_.join(std::move(name), capacity);
  }
  virtual void leave(Follower follower) {
    const std::lock_guard lock(mutex_);
    ledger_.leave(follower);
  }
  /// A follower that is not ready misses what is accepted meanwhile, and holds nobody up, unless so few are left that triggers are held.
  virtual void set_ready(Follower follower, bool ready, std::uint64_t now_ns) = 0;
  /// Appends up to `most` triggers that this follower has not had, in order, and returns how many.
  virtual std::uint64_t take(Follower follower, std::uint64_t most, std::uint64_t now_ns,
                             std::vector<TriggerRange>& out) = 0;
  /// The follower has dealt with so many more, in order.
  virtual void done(Follower follower, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    ledger_.done(follower, count);
  }
  /// Busy for another reason than its capacity.
  virtual void set_busy(Follower follower, bool busy) {
    const std::lock_guard lock(mutex_);
    ledger_.set_busy(follower, busy);
  }
  /// Nothing is offered, and nothing counts as dead time, for 100 ms from the last call on: functions that are switched off one after the other end with the
  /// same trigger. True once all that was accepted before can be taken and nothing else comes.
  virtual bool hold(std::uint64_t now_ns) = 0;
  virtual TriggerReport report() const = 0;

 protected:
  mutable std::mutex mutex_;  // guards the ledger, and what its hub has besides
  TriggerLedger ledger_;
};

/// One function's end. One thread. The hub must live longer.
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
  /// The function is being switched off. Once this is true and take() gives nothing, it has had all that the others get.
  bool hold() { return hub_.hold(base::steady_now_ns()); }

 private:
  TriggerHub& hub_;
  TriggerHub::Follower follower_;
};

}  // namespace rodeo::trigger
