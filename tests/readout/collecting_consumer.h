// The last consumer of a test: it keeps the fragments that arrive, in order.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "rodeo/consumer.h"

namespace rodeo::test {

class CollectingConsumer final : public FragmentConsumer {
 public:
  void insert(FragmentPtr fragment) override {
    const std::lock_guard lock(mutex_);
    fragments_.push_back(std::move(fragment));
  }
  Status status() const override {
    Status out;
    out.name = "collecting";
    return out;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return fragments_.size();
  }
  const Fragment& operator[](std::size_t i) const {
    const std::lock_guard lock(mutex_);
    return *fragments_[i];
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    fragments_.clear();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<FragmentPtr> fragments_;
};

}  // namespace rodeo::test
