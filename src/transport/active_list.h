// The connections that have work to do, so that a pass over thousands visits only these.
#pragma once

#include <utility>
#include <vector>

namespace rodeo::transport {

/// One thread. T has a member `bool active`, which only this list uses. Remove an element before it is destroyed.
template <typename T>
class ActiveList {
 public:
  void add(T& one) {
    if (!std::exchange(one.active, true)) list_.push_back(&one);
  }
  /// Must not be called during visit().
  void remove(T& one) {
    if (std::exchange(one.active, false)) std::erase(list_, &one);
  }
  bool empty() const { return list_.empty(); }

  /// Calls visit(T&) once for each element. An element stays if visit() returns true; elements added during the visit wait
  /// for the next one.
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
