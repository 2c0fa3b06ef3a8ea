// Registers in memory that a card maps, touched by plain loads and stores and by nothing else.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rodeo::card::pci {

template <typename T>
concept RegisterWord = std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
                       std::same_as<T, std::uint64_t>;

/// One mapped register, or none. It has no address and no reference to give away: a PCIe endpoint answers a locked access (`fetch_or`,
/// `compare_exchange`) with Unsupported Request, the processor reads all ones, and all ones are written back. What several owners share is changed
/// under a lock instead: Card::modify().
template <RegisterWord Word>
class MappedRegister {
 public:
  MappedRegister() = default;
  explicit operator bool() const { return place_ != nullptr; }
  /// What the card wrote to memory before it changed the register is seen by later loads.
  Word load() const {
    const Word value = *place_;
    std::atomic_thread_fence(std::memory_order_acquire);
    return value;
  }
  /// The card sees earlier stores to memory before this one.
  void store(Word value) const {
    std::atomic_thread_fence(std::memory_order_release);
    *place_ = value;
  }

 private:
  friend class MappedRegisters;
  explicit MappedRegister(std::byte* place) : place_(reinterpret_cast<volatile Word*>(place)) {}

  volatile Word* place_ = nullptr;
};

/// A mapped part of a region. It belongs to the object that mapped it.
class MappedRegisters {
 public:
  MappedRegisters() = default;
  MappedRegisters(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  std::uint64_t bytes() const { return bytes_; }
  /// The register at `offset` from the part's begin; none if it is not aligned or not within the part.
  template <RegisterWord Word>
  MappedRegister<Word> at(std::uint64_t offset) const {
    if (offset % sizeof(Word) != 0 || bytes_ < sizeof(Word) || offset > bytes_ - sizeof(Word)) return {};
    return MappedRegister<Word>(memory_ + offset);
  }

 private:
  std::byte* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace rodeo::card::pci
