#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

namespace rodeo::base {
namespace {

constexpr std::uint32_t kSpins = 64;
constexpr std::uint32_t kYields = 16;
constexpr std::uint64_t kTimerSlackNs = 50'000;  // a sleep takes up to this much longer: PR_SET_TIMERSLACK(2const)

double seconds_of(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void set_thread_name(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); }

bool pin_thread(int cpu) {
  if (cpu < 0) return true;
  if (cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

void ThreadCpu::attach() {
  clockid_t clock{};
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  clock_.store(clock, std::memory_order_relaxed);
  alive_.store(true, std::memory_order_release);
}

void ThreadCpu::detach() {
  final_.store(thread_cpu_seconds(), std::memory_order_relaxed);
  alive_.store(false, std::memory_order_release);
}

double ThreadCpu::seconds() const {
  // If the thread ends between the two lines, clock_gettime fails or returns its last time, which detach() has stored.
  if (alive_.load(std::memory_order_acquire)) return seconds_of(clock_.load(std::memory_order_relaxed));
  return final_.load(std::memory_order_relaxed);
}

void Backoff::idle() {
  ++idle_;
  if (policy_ == IdlePolicy::spin || idle_ <= kSpins) {
    cpu_relax();
    return;
  }
  if (policy_ == IdlePolicy::yield || idle_ <= kSpins + kYields) {
    sched_yield();
    return;
  }
  const std::uint64_t asleep = pause_ns(waited_ns_);
  waited_ns_ += asleep + kTimerSlackNs;
  const timespec pause{0, static_cast<long>(asleep)};
  nanosleep(&pause, nullptr);
}

}  // namespace rodeo::base
