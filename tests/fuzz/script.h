// A fuzzer's input as a script: numbers and bytes in order; zeros when it has ended.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/fd_socket.h"

namespace rodeo::test {

class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const std::byte*>(data), size) {}
  bool ended() const { return rest_.empty(); }
  template <typename T>
  T number() {
    T value{};
    const auto some = bytes(sizeof value);
    if (!some.empty()) std::memcpy(&value, some.data(), some.size());
    return value;
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  std::uint32_t below(std::uint32_t limit) { return number<std::uint8_t>() % limit; }
  /// At most this number of bytes, in a buffer of exactly their size.
  std::span<const std::byte> bytes(std::size_t most) {
    const auto some = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(some.size());
    return some;
  }

 private:
  std::span<const std::byte> rest_;
};

inline base::UniqueFd memory_fd(std::size_t bytes) {
  base::UniqueFd fd(::memfd_create("rodeo-fuzz", MFD_CLOEXEC));
  if (fd) (void)!::ftruncate(fd.get(), static_cast<off_t>(bytes));
  return fd;
}

/// The descriptor that the next open would return: if it is the same before and after, no descriptor has leaked.
inline int lowest_free_fd() {
  const base::UniqueFd lowest(::dup(0));
  return lowest.get();
}

}  // namespace rodeo::test
