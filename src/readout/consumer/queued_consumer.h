// QueuedConsumer: the scalable base of consumers - a bounded queue in front of a configurable number of threads (software
// ROD paper, section VI.C; slides "ROBFragmentConsumer interface").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/counters.h"
#include "base/latency_histogram.h"
#include "base/log.h"
#include "base/thread.h"
#include "rodeo/consumer.h"
#include "rodeo/settings.h"

namespace rodeo::readout {

struct QueueSettings {
  std::string name = "consumer";
  unsigned threads = 1;         ///< 0: the work is done in the thread that inserts
  std::size_t capacity = 1024;  ///< fragments; rounded up to a power of two
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  int first_cpu = -1;  ///< thread i is pinned to CPU first_cpu + i; -1: not pinned
};

/// What can be set of every queued consumer; its defaults are those of the struct that has the queue.
const Settings<QueueSettings>& queue_settings();
/// The same of one that always has one thread.
const Settings<QueueSettings>& one_thread_settings();

/// Queue, threads, back-pressure, failure and statistics of a consumer; what it does with a fragment is in its workers.
/// A derived class calls stop() in its destructor: threads use what it owns.
class QueuedConsumer : public FragmentConsumer {
 public:
  explicit QueuedConsumer(QueueSettings settings);
  ~QueuedConsumer() override;

  /// Any thread. Blocks with back-off while the queue is full. Tens of nanoseconds otherwise: one queue operation, no clock,
  /// no lock.
  void insert(FragmentPtr fragment) override { enqueue(std::move(fragment)); }

  void start() override;

  /// Works off the queue, in order, then joins the threads; again is harmless.
  void stop() override;

  void give_up() override { given_up_.store(true, std::memory_order_release); }

  void link(FragmentConsumer* next) override;

  /// Any thread, while running and after.
  Status status() const override;

 protected:
  /// What one thread does. Made by start() on the application's thread, used by one thread at a time.
  class Worker {
   public:
    virtual ~Worker() = default;
    /// Owns the fragment and passes it on (or lets it go). What it throws is caught and counted; the fragment is then gone,
    /// so a worker that can do better catches for itself.
    virtual void work(FragmentPtr fragment) = 0;
    /// Nothing is queued now, and nothing will be any more if the run is `ending`. True then: the thread may end.
    virtual bool rest(bool ending) { return ending; }
  };
  virtual std::unique_ptr<Worker> make_worker(unsigned index) = 0;

  void enqueue(FragmentPtr fragment) {
    if (inline_) {
      work_inline(std::move(fragment));
    } else if (!queue_.try_push(std::move(fragment))) [[unlikely]] {
      wait_and_push(std::move(fragment));  // NOLINT(bugprone-use-after-move): a refused value stays where it is
    }
  }

  /// False, with the fragment still the caller's, if the queue is full. Not for threads = 0.
  bool try_enqueue(FragmentPtr& fragment) { return queue_.try_push(std::move(fragment)); }

  /// Hands a fragment to the next consumer, or lets it go at the end of the list: there is always one, so nothing is tested
  /// here (slides: the test costs more than the call).
  void pass_on(FragmentPtr fragment) { next_->insert(std::move(fragment)); }

  /// The run must stop, and why; the first reason stays. Any thread.
  void fail(std::string why);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// give_up() was called.
  bool gives_up() const { return given_up_.load(std::memory_order_acquire); }

  const QueueSettings& settings() const { return settings_; }
  /// Workers that start() will make.
  unsigned seats() const { return static_cast<unsigned>(seats_.size()); }

 private:
  enum class Count : std::uint8_t { consumed, exceptions, given_up, count };

  // One thread of ours, or, with threads = 0, a place at the bench that one inserting thread at a time takes.
  struct alignas(base::kCacheLine) Seat {
    base::CounterBlock<Count> counters;
    base::LatencyHistogram latency;
    std::uint32_t timed = 0;  // fragments that came with a time
    std::unique_ptr<Worker> worker;
    std::atomic_flag taken;
    base::ThreadCpu cpu;
    std::thread thread;
  };

  void wait_and_push(FragmentPtr fragment);
  void work_inline(FragmentPtr fragment);
  void take(Seat& seat, FragmentPtr fragment);
  void run(Seat& seat, unsigned index);

  const QueueSettings settings_;
  const bool inline_;
  base::BoundedQueue<FragmentPtr> queue_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::atomic<bool> draining_{false};
  std::atomic<bool> given_up_{false};
  alignas(base::kCacheLine) std::atomic<std::uint64_t> stalls_{0};
  base::LogThrottle exception_log_;
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

}  // namespace rodeo::readout
