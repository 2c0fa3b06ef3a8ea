// Five ways to bring counts from data threads to a statistics thread (felixcore-statistics-slides). The product uses pull.
// Each design has
//
//     Design design(threads, links);               // `links` links of each thread
//     Design::Thread& of = design.thread(i);       // data thread i
//     auto&& link = of.link(run.link);
//     link.number();                               // number of the link's next chunk on the network; always counted
//     link.count(run);                             // a run (or a chunk as a run of one), once it is in a page
//     of.page_is_over();                           // the input's page is done
//     design.collect();                            // the statistics thread: ten times a second, and once at the end
//     design.at(i, link), design.sum();            // results of collect(), in the same thread
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/bounded_queue.h"
#include "base/thread.h"
#include "transport/link_counters.h"

namespace rodeo::bench {

using transport::LinkTally;

/// The results of the statistics thread: by thread, by link, and in sum.
class CollectedStatistics {
 public:
  CollectedStatistics(std::size_t threads, std::size_t links)
      : collected_(threads, std::vector<LinkTally>(links)), links_(links) {}

  const LinkTally& at(std::size_t thread, std::size_t link) const { return collected_[thread][link]; }
  const LinkTally& sum() const { return sum_; }

 protected:
  /// `read(thread, link)` returns the link's counts up to now.
  template <typename Read>
  void collect_all(Read&& read) {
    sum_ = {};
    for (std::size_t thread = 0; thread < collected_.size(); ++thread) {
      for (std::size_t link = 0; link < links_; ++link) sum_ += collected_[thread][link] = read(thread, link);
    }
  }

  std::vector<std::vector<LinkTally>> collected_;
  std::size_t links_;
  LinkTally sum_;
};

/// A design that counts in addition to the numbers of chunks, which pages always carry.
template <typename Thread>
class Numbered {
 public:
  class Link {
   public:
    Link(Thread& thread, std::uint32_t& number) : thread_(thread), number_(number) {}
    std::uint32_t number() const { return number_; }
    void count(const ChunkRun& run) {
      number_ += run.more_follows ? 0 : run.count;
      thread_.count(run);
    }

   private:
    Thread& thread_;
    std::uint32_t& number_;
  };

  Link link(LinkIndex link) { return {static_cast<Thread&>(*this), numbers_[link]}; }

 private:
  friend Thread;
  explicit Numbered(std::size_t links) : numbers_(links) {}

  std::vector<std::uint32_t> numbers_;
};

/// No counting.
class NoStatistics : public CollectedStatistics {
 public:
  NoStatistics(std::size_t threads, std::size_t links)
      : CollectedStatistics(threads, links), threads_(threads, Thread(links)) {}

  struct Thread : Numbered<Thread> {
    explicit Thread(std::size_t links) : Numbered(links) {}
    void count(const ChunkRun&) {}
    void page_is_over() {}
  };
  Thread& thread(std::size_t i) { return threads_[i]; }
  void collect() {}

 private:
  std::vector<Thread> threads_;
};

/// The product's design: each thread writes its own set, with the numbers of chunks; the statistics thread reads the sets.
class PulledStatistics : public CollectedStatistics {
 public:
  PulledStatistics(std::size_t threads, std::size_t links) : CollectedStatistics(threads, links) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back(links);
  }

  struct Thread {
    explicit Thread(std::size_t links) : counters(links) {}
    transport::LinkCounters& link(LinkIndex link) { return counters[link]; }
    void page_is_over() {}
    std::vector<transport::LinkCounters> counters;
  };
  Thread& thread(std::size_t i) { return threads_[i]; }
  void collect() {
    collect_all([&](std::size_t thread, std::size_t link) { return threads_[thread].counters[link].tally(); });
  }

 private:
  std::deque<Thread> threads_;
};

/// Counters for additions from several threads.
struct SharedTally {
  std::atomic<std::uint64_t> chunks{0}, bytes{0}, errors{0};

  void add(const LinkTally& more) {
    chunks.fetch_add(more.chunks, std::memory_order_relaxed);
    bytes.fetch_add(more.bytes, std::memory_order_relaxed);
    if (more.errors != 0) errors.fetch_add(more.errors, std::memory_order_relaxed);
  }
  LinkTally read() const {
    return {chunks.load(std::memory_order_relaxed), bytes.load(std::memory_order_relaxed),
            errors.load(std::memory_order_relaxed)};
  }
};

/// One common set: the links of all threads, and their sum.
class SharedSet : public CollectedStatistics {
 public:
  SharedSet(std::size_t threads, std::size_t links) : CollectedStatistics(threads, links), set_(threads * links) {}

  void collect() {
    collect_all([&](std::size_t thread, std::size_t link) { return set_[thread * links_ + link].read(); });
    sum_ = all_.read();
  }

 protected:
  std::vector<SharedTally> set_;
  SharedTally all_;
};

/// Central atomics: every thread adds to the one set.
class CentralStatistics : public SharedSet {
 public:
  CentralStatistics(std::size_t threads, std::size_t links) : SharedSet(threads, links) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back(&set_[i * links], &all_, links);
  }

  struct Thread : Numbered<Thread> {
    Thread(SharedTally* at, SharedTally* sum, std::size_t links) : Numbered(links), mine(at), all(sum) {}
    void count(const ChunkRun& run) {
      const LinkTally more = transport::tally_of(run);
      mine[run.link].add(more);
      all->add(more);
    }
    void page_is_over() {}
    SharedTally* mine;
    SharedTally* all;
  };
  Thread& thread(std::size_t i) { return threads_[i]; }

 private:
  std::vector<Thread> threads_;
};

/// Separate sets, pushed: each thread counts in its own set, and adds it to the common set after every page of the input.
class PushedStatistics : public SharedSet {
 public:
  PushedStatistics(std::size_t threads, std::size_t links) : SharedSet(threads, links) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back(&set_[i * links], &all_, links);
  }

  struct Thread : Numbered<Thread> {
    Thread(SharedTally* at, SharedTally* sum, std::size_t links) : Numbered(links), mine(at), all(sum), own(links) {
      touched.reserve(links);
    }
    void count(const ChunkRun& run) {
      LinkTally& tally = own[run.link];
      if (tally.chunks + tally.bytes == 0) touched.push_back(run.link);
      tally += transport::tally_of(run);
    }
    void page_is_over() {
      LinkTally sum;
      for (const LinkIndex link : touched) {
        mine[link].add(own[link]);
        sum += own[link];
        own[link] = {};
      }
      all->add(sum);
      touched.clear();
    }
    SharedTally* mine;
    SharedTally* all;
    std::vector<LinkTally> own;
    std::vector<LinkIndex> touched;
  };
  Thread& thread(std::size_t i) { return threads_[i]; }

 private:
  std::deque<Thread> threads_;
};

/// FelixCore's first design: each count goes into a concurrent queue (simultaneous counts are several records); the
/// statistics thread adds them up.
class QueuedStatistics : public CollectedStatistics {
  struct Record {
    std::uint64_t LinkTally::* what = nullptr;
    LinkIndex link = 0;
    std::uint32_t value = 0;
  };

 public:
  QueuedStatistics(std::size_t threads, std::size_t links) : CollectedStatistics(threads, links) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back(links);
  }

  class Thread : public Numbered<Thread> {
   public:
    explicit Thread(std::size_t links) : Numbered(links) {}
    void count(const ChunkRun& run) {
      const LinkTally more = transport::tally_of(run);
      push({&LinkTally::chunks, run.link, static_cast<std::uint32_t>(more.chunks)});
      push({&LinkTally::bytes, run.link, static_cast<std::uint32_t>(more.bytes)});
      if (more.errors != 0) push({&LinkTally::errors, run.link, static_cast<std::uint32_t>(more.errors)});
    }
    void page_is_over() {}

   private:
    friend class QueuedStatistics;
    static constexpr std::size_t kRecords = 1 << 16;
    void push(Record record) {
      while (!queue_.try_push(Record(record))) base::cpu_relax();
    }
    base::BoundedQueue<Record> queue_{kRecords};
  };
  Thread& thread(std::size_t i) { return threads_[i]; }

  /// Empties the queues of the records present at the call. Call it often: a data thread may wait for room.
  bool drain() {
    bool some = false;
    for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
      Record record;
      for (std::size_t n = 0; n < Thread::kRecords && threads_[thread].queue_.try_pop(record); ++n) {
        collected_[thread][record.link].*record.what += record.value;
        sum_.*record.what += record.value;
        some = true;
      }
    }
    return some;
  }
  void collect() {
    while (drain()) {
    }
  }

 private:
  std::deque<Thread> threads_;
};

}  // namespace rodeo::bench
