#include "base/mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace rodeo::base::mapping_guard {
namespace {

// The handler's table: lock-free atomics that are never freed.
struct Watched {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  ///< end of the last page; 0: the entry is not in use
  std::atomic<bool> hit{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

constexpr std::size_t kMost = 4096;
std::array<Watched, kMost> watched;
struct sigaction before;

/// Maps zeros from the faulting page to the end of the mapping: one fault a file, not one a page.
bool fill(std::uintptr_t address) {
  for (Watched& one : watched) {
    const std::uintptr_t end = one.end.load(std::memory_order_acquire);
    if (end == 0 || address >= end || address < one.begin.load(std::memory_order_relaxed)) continue;
    const std::uintptr_t page = address & ~(std::uintptr_t{4096} - 1);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of a fault is a number
    if (::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
               -1, 0) == MAP_FAILED)
      return false;
    one.hit.store(true, std::memory_order_release);
    return true;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool filled = fill(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = error;
  if (filled) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  ::signal(SIGBUS, SIG_DFL);  // the read runs again and ends the process
}

}  // namespace

int watch(std::span<const std::byte> mapping) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigaction(SIGBUS, &action, &before);
  });
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < kMost; ++i) {
    Watched& one = watched[i];
    if (one.taken.load(std::memory_order_relaxed) || one.taken.exchange(true)) continue;
    one.hit.store(false, std::memory_order_relaxed);
    const auto begin = reinterpret_cast<std::uintptr_t>(mapping.data());
    one.begin.store(begin, std::memory_order_relaxed);
    one.end.store((begin + mapping.size() + page - 1) / page * page, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void forget(int number) {
  if (number < 0) return;
  Watched& one = watched[static_cast<std::size_t>(number)];
  one.end.store(0, std::memory_order_release);
  one.taken.store(false, std::memory_order_release);
}

bool was_hit(int number) {
  return number >= 0 && watched[static_cast<std::size_t>(number)].hit.load(std::memory_order_acquire);
}

}  // namespace rodeo::base::mapping_guard
