// Threads that run a selection on events. The node's thread submits the events and takes them back.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/thread.h"
#include "rodeo/selection.h"

namespace rodeo::farm {

/// One event on its way through a selection. The caller of submit() owns it before submit() and after next_finished().
struct SelectionJob {
  std::uint32_t slot = 0;
  WholeEvent event = {};
  Selected selected = {};
  std::string error = {};                  ///< Text of the exception; empty: none.
  std::atomic<std::uint64_t> began_ns{0};  ///< Start on the steady clock; 0: the event waits.
};

/// The node's thread calls all functions except counters().
class SelectionPool {
 public:
  /// Each thread calls `make` once. `most` limits the jobs at a time.
  SelectionPool(std::function<std::unique_ptr<EventSelection>()> make, std::uint32_t threads, std::uint32_t most,
                base::IdlePolicy idle);
  /// Waits for the jobs that are being processed.
  ~SelectionPool();

  /// Starts the threads and waits until each has its selection. Throws what `make` threw.
  void start();
  const std::vector<SourceId>& first_robs() const { return first_robs_; }

  /// Never submit more than `most` jobs at a time.
  void submit(SelectionJob& job);
  /// Returns a finished job, or nullptr.
  SelectionJob* next_finished();

  double cpu_seconds() const;
  /// Returns sums over all threads.
  std::vector<NamedCounter> counters() const;

 private:
  struct Worker {
    base::ThreadCpu cpu;
    std::unique_ptr<EventSelection> selection;  // mutex_ guards it until it is made; then it is constant.
    std::exception_ptr failure;
    bool made = false;
    std::thread thread;
  };

  void run(Worker& worker);

  const std::function<std::unique_ptr<EventSelection>()> make_;
  const std::uint32_t threads_;
  const base::IdlePolicy idle_;
  base::BoundedQueue<SelectionJob*> waiting_;
  base::BoundedQueue<SelectionJob*> done_;
  std::atomic<bool> leaving_{false};
  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<SourceId> first_robs_;
};

}  // namespace rodeo::farm
