// Ablation: how a consumer knows whether there is a next one (slides, "ROBFragmentConsumer performance optimization": `if
// (m_next)` cost 20 % with two consumers). Each iteration hands one fragment to a list of two consumers, each of which
// queues a reference and passes the fragment on; the queues are emptied in between. Ceiling: the two queues without a list.
#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/bounded_queue.h"
#include "readout/consumer/end_of_list.h"
#include "rodeo/consumer.h"

namespace rodeo::readout {
namespace {

constexpr std::size_t kBatch = 256;  // fragments between two runs of the consumers

using Queue = base::BoundedQueue<FragmentPtr>;

/// Fragments that are used again and again.
class Fragments final : public FragmentOwner {
 public:
  Fragments() : fragments_(std::make_unique<Fragment[]>(kBatch)) {
    for (std::size_t i = 0; i < kBatch; ++i) fragments_[i].owner = this;
  }
  void reclaim(Fragment&) noexcept override { ++reclaimed_; }
  FragmentPtr hand_out(std::size_t i) {
    fragments_[i].references.store(1, std::memory_order_relaxed);
    return FragmentPtr::adopt(&fragments_[i]);
  }
  std::size_t reclaimed() const { return reclaimed_; }

 private:
  std::unique_ptr<Fragment[]> fragments_;
  std::size_t reclaimed_ = 0;
};

/// Tests at each hand-over whether there is a next consumer.
class BranchingConsumer {
 public:
  virtual ~BranchingConsumer() = default;
  virtual void insert(FragmentPtr fragment) {
    benchmark::DoNotOptimize(queue.try_push(FragmentPtr(fragment)));
    if (next != nullptr) next->insert(std::move(fragment));
  }
  Queue queue{kBatch};
  BranchingConsumer* next = nullptr;
};

/// Calls a bound function; the function is empty at the end of the list.
class BoundConsumer {
 public:
  virtual ~BoundConsumer() = default;
  virtual void insert(FragmentPtr fragment) {
    benchmark::DoNotOptimize(queue.try_push(FragmentPtr(fragment)));
    next(std::move(fragment));
  }
  Queue queue{kBatch};
  std::function<void(FragmentPtr)> next = [](const FragmentPtr&) {};
};

/// Rodeo's choice: the public interface, and a consumer after the last one, so that a next one always exists.
class ListedConsumer final : public FragmentConsumer {
 public:
  ListedConsumer() { link(end_of_list()); }
  void insert(FragmentPtr fragment) override {
    benchmark::DoNotOptimize(queue.try_push(FragmentPtr(fragment)));
    next_->insert(std::move(fragment));
  }
  Status status() const override { return {}; }
  Queue queue{kBatch};
};

template <typename Insert>
void measure(benchmark::State& state, Queue& first, Queue& second, Insert&& insert) {
  Fragments fragments;
  std::size_t i = 0;
  const auto empty = [&] {
    FragmentPtr fragment;
    while (first.try_pop(fragment)) fragment.reset();
    while (second.try_pop(fragment)) fragment.reset();
  };
  for (auto _ : state) {
    insert(fragments.hand_out(i));
    if (++i == kBatch) {
      empty();
      i = 0;
    }
  }
  empty();
  if (fragments.reclaimed() != static_cast<std::size_t>(state.iterations())) state.SkipWithError("fragments were lost");
  state.SetItemsProcessed(state.iterations());
  state.SetLabel("fragments");
}

template <typename Base, typename Consumer, typename Link>
void measure_list(benchmark::State& state, const Link& link) {
  Consumer first, second;
  link(first, second);
  Base* head = &first;
  benchmark::DoNotOptimize(head);
  measure(state, first.queue, second.queue, [&](FragmentPtr fragment) { head->insert(std::move(fragment)); });
}

void next_consumer_branch(benchmark::State& state) {
  measure_list<BranchingConsumer, BranchingConsumer>(state, [](auto& first, auto& second) { first.next = &second; });
}

void next_consumer_bound(benchmark::State& state) {
  measure_list<BoundConsumer, BoundConsumer>(state, [](auto& first, auto& second) {
    // This measures the cost of std::bind. NOLINTNEXTLINE(modernize-avoid-bind)
    first.next = std::bind(&BoundConsumer::insert, &second, std::placeholders::_1);
  });
}

void next_consumer_ours(benchmark::State& state) {
  measure_list<FragmentConsumer, ListedConsumer>(state, [](auto& first, auto& second) { first.link(&second); });
}

void next_consumer_ceiling(benchmark::State& state) {
  Queue first(kBatch), second(kBatch);
  measure(state, first, second, [&](FragmentPtr fragment) {
    benchmark::DoNotOptimize(first.try_push(FragmentPtr(fragment)));
    benchmark::DoNotOptimize(second.try_push(std::move(fragment)));
  });
}

BENCHMARK(next_consumer_branch)->Name("next_consumer/branch");
BENCHMARK(next_consumer_bound)->Name("next_consumer/bound");
BENCHMARK(next_consumer_ours)->Name("next_consumer/ours");
BENCHMARK(next_consumer_ceiling)->Name("next_consumer/ceiling");

}  // namespace
}  // namespace rodeo::readout
