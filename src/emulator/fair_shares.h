// Fair shares of a machine with fewer processors than threads that want one: who is ahead of the others waits for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>

namespace rodeo::emulator {

/// Members that do work of one kind, each on a thread of its own. A scheduler gives them processor time as it finds them, which leaves
/// some tens of per cent between them for seconds; a bus gives each its turn. So whoever is ahead of the slowest of those that compete
/// with it waits for a moment, and the processor is free for them. Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996): what a
/// member has not asked for while it was away, it does not get back.
///
/// Nobody waits for a member that rests, has not worked for a while, is slower by far, or whose thread gets a processor whenever it is
/// ready to run: that one does not want more. And nobody waits at all where there are processors enough, or where the kernel does not
/// say how long threads wait for one. Any thread; a member belongs to one thread at a time.
class FairShares {
 public:
  class Member {
   private:
    friend class FairShares;
    std::uint64_t not_counted_ = 0;  // work since the last look; for the member's own thread only
    bool resting_ = true;            // written by the member's own thread, under the lock
    // Under the lock:
    std::uint64_t done_ = 0;       // work, as if all had begun with the member that has least
    std::uint64_t looked_ns_ = 0;  // at the others, the last time
    double ns_each_ = 0;           // of a piece of work, smoothed, without waiting for others; 0: not known
    double denied_ = 0;            // share of the time in which its thread was ready and had no processor, smoothed
    std::uint64_t denied_ns_ = 0;  // the same, summed, at the last look
  };

  struct Settings {
    unsigned processors;         ///< that the members share
    unsigned threads_each;       ///< that a member keeps busy, here and elsewhere
    std::uint64_t look_every;    ///< of work: how often a member looks at the others
    std::uint64_t may_be_ahead;  ///< of work: without waiting
  };

  /// How long a member that is ahead waits before it looks again, and how often at most before it goes on all the same.
  static constexpr std::chrono::microseconds kWait{500};
  static constexpr unsigned kMostWaits = 8;

  explicit FairShares(Settings settings) : settings_(settings) {}

  /// Valid until it leaves.
  Member& join();
  void leave(Member& member);

  /// `work` more was done. True: it is time to look(). An addition, no lock.
  bool worked(Member& member, std::uint64_t work) const {
    member.not_counted_ += work;
    return member.not_counted_ >= settings_.look_every;
  }
  /// Whether the member is ahead at this time (steady): then it should wait for kWait and look again, kMostWaits times at most.
  /// `denied_ns`: how long its thread has waited for a processor, since any begin.
  bool look(Member& member, std::uint64_t now_ns, std::uint64_t denied_ns);
  /// Both, by the machine's clock, and waits: for some milliseconds at most.
  void take_turn(Member& member, std::uint64_t work);
  /// Nobody waits for this member before it works again. Costs nothing when it rests already.
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
