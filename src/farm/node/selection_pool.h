// Threads that run a selection on events which the node's thread gives them, and takes back.
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

/// One event on its way through a selection. Of who gives it until submit(), and again after take().
struct SelectionJob {
  std::uint32_t slot = 0;
  WholeEvent event = {};
  Selected selected = {};
  std::string error = {};                  ///< what was thrown; empty: nothing
  std::atomic<std::uint64_t> began_ns{0};  ///< steady clock; 0: it waits
};

/// The node's thread, but for counters().
class SelectionPool {
 public:
  /// `make` is called by each thread for itself. `most`: jobs at a time.
  SelectionPool(std::function<std::unique_ptr<EventSelection>()> make, std::uint32_t threads, std::uint32_t most,
                base::IdlePolicy idle);
  /// Waits for jobs that are being worked on.
  ~SelectionPool();

  /// Starts the threads, and waits until each has its selection. Throws what one could not be made for.
  void start();
  const std::vector<SourceId>& first_robs() const { return first_robs_; }

  /// There is room: never more than `most` are given.
  void submit(SelectionJob& job);
  /// One that is done; nullptr: none.
  SelectionJob* take();

  double cpu_seconds() const;
  /// Of all threads together.
  std::vector<NamedCounter> counters() const;

 private:
  struct Worker {
    base::ThreadCpu cpu;
    std::unique_ptr<EventSelection> selection;  // under mutex_ until it is made, then constant
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
