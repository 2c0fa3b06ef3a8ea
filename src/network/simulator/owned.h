// An optional owned object that is copied with its owner.
#pragma once

#include <memory>

namespace rodeo::network {

template <typename T>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&&) noexcept = default;
  Owned& operator=(Owned&&) noexcept = default;
  Owned(const Owned& other) : object_(other.object_ ? std::make_unique<T>(*other.object_) : nullptr) {}
  Owned& operator=(const Owned& other) {
    if (this != &other) *this = Owned(other);
    return *this;
  }
  ~Owned() = default;

  explicit operator bool() const { return object_ != nullptr; }
  T* operator->() const { return object_.get(); }
  void make() { object_ = std::make_unique<T>(); }
  void reset() { object_.reset(); }

 private:
  std::unique_ptr<T> object_;
};

}  // namespace rodeo::network
