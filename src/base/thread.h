// Threads of a readout: named, pinned on request, polling with a configurable back-off.
#pragma once

#include <ctime>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace rodeo::base {

/// Names the calling thread (cut to the 15 characters that Linux shows).
void set_thread_name(const std::string& name);

/// Pins the calling thread to one CPU; false if the machine has no such CPU or forbids it. A negative CPU leaves the thread
/// unpinned.
bool pin_thread(int cpu);

/// CPU seconds used by the calling thread.
double thread_cpu_seconds();

/// Lets other threads read the CPU time of one thread, even after its end; the thread itself calls attach() and detach().
class ThreadCpu {
 public:
  void attach();
  void detach();
  /// Any thread, any time.
  double seconds() const;

 private:
  std::atomic<clockid_t> clock_{0};
  std::atomic<bool> alive_{false};
  std::atomic<double> final_{0};
};

/// The behaviour of a polling thread when there is nothing to do.
enum class IdlePolicy : std::uint8_t {
  spin,   ///< never leaves the CPU: lowest latency, one core each
  yield,  ///< spins a little, then yields
  sleep,  ///< spins, yields, then sleeps for a 16th of the time without work, 1 ms at most: for laptops
};

/// Progressive waiting: idle() after a poll that found nothing, reset() after one that found something.
class Backoff {
 public:
  explicit Backoff(IdlePolicy policy = IdlePolicy::sleep) : policy_(policy) {}
  void reset() { idle_ = 0, waited_ns_ = 0; }
  void idle();

  /// The sleep after a wait of `waited_ns`: it adds little latency, and an idle thread uses 1 % of a core.
  static constexpr std::uint64_t pause_ns(std::uint64_t waited_ns) {
    return std::clamp<std::uint64_t>(waited_ns / 16, 5'000, 1'000'000);
  }

 private:
  IdlePolicy policy_;
  std::uint32_t idle_ = 0;
  std::uint64_t waited_ns_ = 0;  ///< an estimate, made without a clock
};

/// One pause of a spinning thread.
inline void cpu_relax() { __builtin_ia32_pause(); }

}  // namespace rodeo::base
