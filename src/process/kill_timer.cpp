#include "process/kill_timer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>

#include "base/log.h"
#include "base/thread.h"

namespace rodeo::process {
namespace {

// Added to the limit: time for giving up, for the report and for destructors.
constexpr std::chrono::seconds kMoment{3};
constexpr int kFailed = 1;

}  // namespace

void KillTimer::begin() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::jthread([this](const std::stop_token& over) {
      base::set_thread_name("last-resort");
      std::mutex mutex;
      std::condition_variable_any woken;
      std::unique_lock lock(mutex);
      woken.wait_for(lock, over, limit_ + kMoment, [] { return false; });
      if (over.stop_requested()) return;
      const std::string text = fmt::format("{} did not end within {:g} s (stop_limit) and did not abort: it is killed\n",
                                           name_, std::chrono::duration<double>(limit_).count());
      (void)!::write(STDERR_FILENO, text.data(), text.size());
      ::_exit(kFailed);
    });
  } catch (const std::system_error& error) {
    base::log_warning("{} may not end within its stop_limit: cannot start a thread: {}", name_, error.what());
  }
}

}  // namespace rodeo::process
