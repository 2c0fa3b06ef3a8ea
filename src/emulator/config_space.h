// The PCI configuration space of an emulated function: header, power management, MSI and PCI Express capabilities.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "card_registers/register_map.h"

namespace rodeo::emulator {

/// The function's link to its host, as the PCI Express capability shows it.
struct ExpressSettings {
  unsigned max_payload = 256;  // bytes: a power of two from 128 to 4096
  unsigned lanes = 8;          // trained lanes: at most 8
};

/// For one thread at a time. 4096 bytes; the extended part is empty.
class ConfigSpace {
 public:
  static constexpr std::size_t kBytes = 4096;

  ConfigSpace(card_registers::PciId id, std::span<const card_registers::BarSize> bars, ExpressSettings express = {});

  /// The range must lie within kBytes.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Returns true if the write asks for a function-level reset.
  bool write(std::uint64_t offset, std::span<const std::byte> bytes);

  bool bus_master() const;
  /// The size in bytes that the host set last.
  unsigned max_payload() const;
  unsigned max_read_request() const;
  void reset();

 private:
  template <typename T>
  void put(std::size_t at, T value, T writable = 0);

  std::array<std::byte, kBytes> bytes_{};
  std::array<std::byte, kBytes> writable_{};
  std::array<std::byte, kBytes> initial_{};
};

}  // namespace rodeo::emulator
