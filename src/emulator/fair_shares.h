// Fair shares of a machine with fewer processors than busy threads: a member that is ahead of the others waits for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>

namespace rodeo::emulator {

/// Members do work of one kind, each on its own thread. With a scheduler alone, their speeds may differ by some tens of per
/// cent for seconds; a bus gives each device its turn. So a member that is ahead of the slowest competitor waits for a
/// moment, and leaves the processor to the others. Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996): a member gets
/// nothing extra for the time in which it was away.
///
/// Members do not wait for a member that rests, has not worked for a while, is far slower, or whose thread gets a processor
/// whenever it is ready, because such a member does not want more. They also do not wait if there are enough processors, or
/// if the kernel does not report how long threads wait. Any thread may call; a member belongs to one thread at a time.
class FairShares {
 public:
  class Member {
   private:
    friend class FairShares;
    std::uint64_t not_counted_ = 0;  // work since the last look; for the member's own thread only
    bool resting_ = true;            // written by the member's own thread, under the lock
    // The lock guards these:
    std::uint64_t done_ = 0;       // amount of work, as if all members had begun with the one that has done least
    std::uint64_t looked_ns_ = 0;  // time of the last look at the others
    double ns_each_ = 0;           // smoothed time of a piece of work, without waiting for others; 0: unknown
    double denied_ = 0;            // smoothed share of the time in which its thread was ready but had no processor
    std::uint64_t denied_ns_ = 0;  // total of this time at the last look
  };

  struct Settings {
    unsigned processors;         ///< processors that the members share
    unsigned threads_each;       ///< threads that a member keeps busy, here and elsewhere
    std::uint64_t look_every;    ///< work between two looks at the others
    std::uint64_t may_be_ahead;  ///< work by which a member may be ahead without waiting
  };

  /// A member that is ahead waits for kWait before it looks again, at most kMostWaits times; then it continues anyway.
  static constexpr std::chrono::microseconds kWait{500};
  static constexpr unsigned kMostWaits = 8;

  explicit FairShares(Settings settings) : settings_(settings) {}

  /// Adds a member. The reference is valid until leave().
  Member& join();
  void leave(Member& member);

  /// Adds `work`. True: call look() now. This is only an addition, without a lock.
  bool worked(Member& member, std::uint64_t work) const {
    member.not_counted_ += work;
    return member.not_counted_ >= settings_.look_every;
  }
  /// True if the member is ahead at this (steady) time: then wait for kWait and look again, at most kMostWaits times.
  /// `denied_ns`: the total time that its thread has waited for a processor, from any start.
  bool look(Member& member, std::uint64_t now_ns, std::uint64_t denied_ns);
  /// Calls worked() and look() with the machine's clock; waits for some milliseconds at most.
  void wait_turn(Member& member, std::uint64_t work);
  /// Says that the member rests: no other waits for it until it works again. Costs nothing if it already rests.
  void rest(Member& member);

 private:
  bool competes(const Member& other, const Member& member, std::uint64_t now_ns) const;
  bool ahead(const Member& member, std::uint64_t now_ns) const;
  void catch_up(Member& member, std::uint64_t now_ns) const;

  const Settings settings_;
  std::mutex mutex_;
  std::list<Member> members_;
};

}  // namespace rodeo::emulator
