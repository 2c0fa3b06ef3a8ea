#include "farm/node/selection_pool.h"

#include <utility>

#include "base/clock.h"
#include "base/named_counters.h"

namespace rodeo::farm {

SelectionPool::SelectionPool(std::function<std::unique_ptr<EventSelection>()> make, std::uint32_t threads,
                             std::uint32_t most, base::IdlePolicy idle)
    : make_(std::move(make)), threads_(threads), idle_(idle), waiting_(most), done_(most) {}

SelectionPool::~SelectionPool() {
  leaving_.store(true, std::memory_order_release);
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();  // If the system has no more threads, the last worker has none.
  }
}

void SelectionPool::start() {
  for (std::uint32_t i = 0; i < threads_; ++i) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.thread = std::thread([this, &worker] { run(worker); });
  }
  std::unique_lock lock(mutex_);
  for (const auto& worker : workers_) {
    made_.wait(lock, [&] { return worker->made; });
    if (worker->failure) std::rethrow_exception(worker->failure);
  }
  first_robs_ = workers_.front()->selection->first_robs();
}

void SelectionPool::submit(SelectionJob& job) {
  job.error.clear();
  job.selected = {};
  job.began_ns.store(0, std::memory_order_relaxed);
  while (!waiting_.try_push(&job)) base::cpu_relax();
}

SelectionJob* SelectionPool::next_finished() {
  SelectionJob* job = nullptr;
  return done_.try_pop(job) ? job : nullptr;
}

void SelectionPool::run(Worker& worker) {
  worker.cpu.attach();
  base::set_thread_name("selection");
  std::unique_ptr<EventSelection> made;
  std::exception_ptr failure;
  try {
    made = make_();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    worker.selection = std::move(made);
    worker.failure = failure;
    worker.made = true;
  }
  made_.notify_all();
  base::Backoff backoff(idle_);
  while (!failure && !leaving_.load(std::memory_order_acquire)) {
    SelectionJob* job = nullptr;
    if (!waiting_.try_pop(job)) {
      backoff.idle();
      continue;
    }
    backoff.reset();
    job->began_ns.store(base::steady_now_ns(), std::memory_order_relaxed);
    try {
      job->selected = worker.selection->select(job->event);
    } catch (const std::exception& thrown) {
      job->error = thrown.what();
      if (job->error.empty()) job->error = "it threw an exception without a message";
    } catch (...) {
      job->error = "it threw something other than a std::exception";
    }
    while (!done_.try_push(auto(job))) base::cpu_relax();
  }
  // The selection must end in this thread, because its Python process ends with the thread.
  {
    const std::lock_guard lock(mutex_);
    made = std::move(worker.selection);
  }
  made.reset();
  worker.cpu.detach();
}

double SelectionPool::cpu_seconds() const {
  double sum = 0;
  for (const auto& worker : workers_) sum += worker->cpu.seconds();
  return sum;
}

std::vector<NamedCounter> SelectionPool::counters() const {
  std::vector<NamedCounter> sum;
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_) {
    if (worker->selection == nullptr) continue;
    for (const NamedCounter& counter : worker->selection->counters()) base::add_counter(sum, counter);
  }
  return sum;
}

}  // namespace rodeo::farm
