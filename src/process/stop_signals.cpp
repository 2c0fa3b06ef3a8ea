#include "process/stop_signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>

namespace rodeo::process {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> g_count{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use it");
std::array<struct sigaction, kSignals.size()> g_before;
int g_depth = 0;

void count_signal(int) { g_count.fetch_add(1, std::memory_order_relaxed); }

void count_signals() {
  struct sigaction action{};
  action.sa_handler = count_signal;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &g_before[i]);
    // A process started by nohup keeps ignoring SIGHUP and outlives its terminal.
    if (g_before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

void restore_signals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  if (g_depth++ > 0) return;
  g_count = 0;
  count_signals();
}

StopSignals::~StopSignals() {
  if (--g_depth == 0) restore_signals();
}

DefaultSignals::DefaultSignals() {
  if (g_depth > 0) restore_signals();
}

DefaultSignals::~DefaultSignals() {
  if (g_depth > 0) count_signals();
}

void ignore_write_signals() {
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
}

int StopSignals::count() const { return g_count.load(std::memory_order_relaxed); }

}  // namespace rodeo::process
