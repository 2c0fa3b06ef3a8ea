// Those of many connections that have something to do: the others are not even looked at.
#pragma once

#include <utility>
#include <vector>

namespace rodeo::transport {

/// One thread. T has a member `bool active`, which is this list's, and must be removed before it goes.
template <typename T>
class ActiveList {
 public:
  void add(T& one) {
    if (!std::exchange(one.active, true)) list_.push_back(&one);
  }
  /// Not while they are visited.
  void remove(T& one) {
    if (std::exchange(one.active, false)) std::erase(list_, &one);
  }
  bool empty() const { return list_.empty(); }

  /// Calls visit(T&) for each that was added before; those for which it returns true, and those that it adds, are there the next time.
  template <typename Visit>
  void visit(Visit&& visit) {
    visited_.swap(list_);
    for (T* const one : visited_) {
      one->active = false;
      if (visit(*one)) add(*one);
    }
    visited_.clear();
  }

 private:
  std::vector<T*> list_;
  std::vector<T*> visited_;
};

}  // namespace rodeo::transport
