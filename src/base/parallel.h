// Runs the same work on several threads: the work is in numbered pieces, and a free thread takes the next one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace rodeo::base {

/// Cores that this process may use; at least 1.
inline unsigned usable_cores() { return std::max(1U, std::thread::hardware_concurrency()); }

/// Calls work() on `threads` threads at once, including the caller's, or on fewer if the system has no more, and waits for
/// all. Rethrows the first exception after all have ended.
template <typename Work>
void on_threads(unsigned threads, Work&& work) {
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i) {
    try {
      helpers.emplace_back(guarded);
    } catch (const std::system_error&) {
      break;  // no more threads: the existing ones do the work
    }
  }
  guarded();
  for (std::thread& helper : helpers) helper.join();
  if (thrown) std::rethrow_exception(thrown);
}

/// Calls work(i) once for each i below `count`, on at most `threads` threads; in any order.
template <typename Work>
void for_each_in_parallel(std::size_t count, unsigned threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  on_threads(static_cast<unsigned>(std::min<std::size_t>(threads, count)), [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  });
}

}  // namespace rodeo::base
