// Registers in mapped memory of a card; only plain loads and stores access them.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rodeo::card::pci {

template <typename T>
concept RegisterWord = std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
                       std::same_as<T, std::uint64_t>;

/// One mapped register, or an empty one. It gives out neither address nor reference, to exclude atomic operations: a PCIe
/// endpoint answers a locked access (`fetch_or`, `compare_exchange`) with Unsupported Request, so the processor reads all
/// ones and writes them back. Change a word that several owners share under a lock: Card::modify().
template <RegisterWord Word>
class MappedRegister {
 public:
  MappedRegister() = default;
  explicit operator bool() const { return place_ != nullptr; }
  /// Later loads see what the card wrote to memory before it changed the register.
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

/// A mapped part of a region. The object that mapped it owns it.
class MappedRegisters {
 public:
  MappedRegisters() = default;
  MappedRegisters(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  std::uint64_t bytes() const { return bytes_; }
  /// The register at `offset` from the part's begin; empty if it is not aligned or not within the part.
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
