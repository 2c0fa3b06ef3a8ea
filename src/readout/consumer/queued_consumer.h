// QueuedConsumer: the scalable base of consumers. A bounded queue feeds a configurable number of threads (software ROD
// paper, section VI.C; slides "ROBFragmentConsumer interface").
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
  unsigned threads = 1;         ///< 0: the inserting thread does the work
  std::size_t capacity = 1024;  ///< fragments; rounded up to a power of two
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  int first_cpu = -1;  ///< thread i is pinned to CPU first_cpu + i; -1: not pinned
};

/// Settings of every queued consumer. The defaults are those of the struct that has the queue.
const Settings<QueueSettings>& queue_settings();
/// The settings of a consumer that always has one thread.
const Settings<QueueSettings>& one_thread_settings();

/// Queue, threads, back-pressure, failure and statistics of a consumer; its workers process the fragments. A derived class
/// must call stop() in its destructor, because the threads use its members.
class QueuedConsumer : public FragmentConsumer {
 public:
  explicit QueuedConsumer(QueueSettings settings);
  ~QueuedConsumer() override;

  /// Any thread. Blocks with back-off while the queue is full. Otherwise takes tens of nanoseconds: one queue operation, no
  /// clock, no lock.
  void insert(FragmentPtr fragment) override { enqueue(std::move(fragment)); }

  void start() override;

  /// Processes the queue, in order, then joins the threads. Further calls have no effect.
  void stop() override;

  void give_up() override { given_up_.store(true, std::memory_order_release); }

  void link(FragmentConsumer* next) override;

  /// Any thread, during and after the run.
  Status status() const override;

 protected:
  /// The work of one thread. start() makes it on the application's thread; one thread at a time uses it.
  class Worker {
   public:
    virtual ~Worker() = default;
    /// Owns the fragment, and passes it on or releases it. Exceptions are caught and counted, and the fragment is then lost:
    /// a worker that can still use the fragment must catch them itself.
    virtual void work(FragmentPtr fragment) = 0;
    /// Called while the queue is empty. With `ending` the queue stays empty, and the result true ends the thread.
    virtual bool on_idle(bool ending) { return ending; }
  };
  virtual std::unique_ptr<Worker> make_worker(unsigned index) = 0;

  void enqueue(FragmentPtr fragment) {
    if (inline_) {
      work_inline(std::move(fragment));
    } else if (!queue_.try_push(std::move(fragment))) [[unlikely]] {
      wait_and_push(std::move(fragment));  // a refused push leaves the fragment in place
    }
  }

  /// False if the queue is full; the caller then keeps the fragment. Not for threads = 0.
  bool try_enqueue(FragmentPtr& fragment) { return queue_.try_push(std::move(fragment)); }

  /// Passes a fragment to the next consumer, or to the end of the list, which releases it. A next one always exists, so no
  /// test is needed (slides: the test costs more than the call).
  void pass_on(FragmentPtr fragment) { next_->insert(std::move(fragment)); }

  /// Says that the run must stop for this reason. The first reason stays. Any thread.
  void fail(std::string why);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// True after give_up().
  bool gives_up() const { return given_up_.load(std::memory_order_acquire); }

  const QueueSettings& settings() const { return settings_; }
  /// Number of workers that start() makes.
  unsigned seats() const { return static_cast<unsigned>(seats_.size()); }

 private:
  enum class Count : std::uint8_t { consumed, exceptions, given_up, count };

  // The place of one of the consumer's own threads or, with threads = 0, of one inserting thread at a time.
  struct alignas(base::kCacheLine) Seat {
    base::CounterBlock<Count> counters;
    base::LatencyHistogram latency;
    std::uint32_t timed = 0;  // number of fragments with a time
    std::unique_ptr<Worker> worker;
    std::atomic_flag busy;
    base::ThreadCpu cpu;
    std::thread thread;
  };

  void wait_and_push(FragmentPtr fragment);
  void work_inline(FragmentPtr fragment);
  void process(Seat& seat, FragmentPtr fragment);
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
