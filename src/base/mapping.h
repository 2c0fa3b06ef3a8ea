// Mapped memory; the owner's destructor unmaps it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <span>

namespace rodeo::base {

/// Move only. Empty after a mapping that failed.
class Mapping {
 public:
  Mapping() = default;
  /// Takes the result of mmap() for this number of bytes; the result may be MAP_FAILED.
  Mapping(void* mapped, std::size_t bytes)
      : memory_(mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped), Unmap{bytes}) {}

  std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return memory_ ? memory_.get_deleter().bytes : 0; }
  std::span<std::byte> bytes() const { return {data(), size()}; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const { ::munmap(memory, bytes); }
  };
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace rodeo::base
