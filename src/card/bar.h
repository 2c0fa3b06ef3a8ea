// Registers of one BAR, with checked bounds: mapped where the card allows it, else trapped.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "card/pci/function.h"
#include "card/pci/owner_process.h"
#include "card_registers/register_map.h"

namespace rodeo::card {

/// For any thread, and any number of processes at once. A mapped access is one load or store and never waits; a trapped
/// access waits at most as long as the function's back end does. An access outside the BAR, or not aligned, returns
/// card.bad_access. 64-bit accesses need a card with 64-bit registers.
class Bar {
 public:
  /// Maps the ranges that can be mapped. Error card.no_region if the card has no such BAR. `function` must outlive the
  /// object.
  static Result<Bar> open(pci::Function& function, unsigned number);

  unsigned number() const { return number_; }
  std::uint64_t bytes() const { return bytes_; }

  Result<std::uint32_t> read32(std::uint64_t offset) const;
  Result<std::uint64_t> read64(std::uint64_t offset) const;
  Result<void> write32(std::uint64_t offset, std::uint32_t value) const;
  Result<void> write64(std::uint64_t offset, std::uint64_t value) const;

  /// The register if it lies in mapped memory, else an empty one. For loops that cannot afford a check at each access. Empty
  /// in a forked child.
  template <typename Word>
  pci::MappedRegister<Word> mapped(std::uint64_t offset) const {
    if (!owner_.here()) return {};
    for (const Window& window : windows_) {
      if (offset < window.offset) continue;
      if (const auto found = window.registers.at<Word>(offset - window.offset)) return found;
    }
    return {};
  }

 private:
  struct Window {
    std::uint64_t offset;
    pci::MappedRegisters registers;
  };
  template <typename Word>
  Result<Word> read(std::uint64_t offset) const;
  template <typename Word>
  Result<void> write(std::uint64_t offset, Word value) const;

  pci::Function* function_ = nullptr;
  pci::OwnerProcess owner_;
  unsigned number_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<Window> windows_;
};

}  // namespace rodeo::card
