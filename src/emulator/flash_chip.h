// The flash chip of a C-RORC: 16-bit words behind Intel's command set, blocks erased to ones, bits programmed to zeros.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "card_registers/crorc.h"

namespace rodeo::emulator {

/// For one thread at a time. Words that were never written are erased.
class FlashChip {
 public:
  void set_address(std::uint32_t address) { address_ = address & 0xffffffU; }

  /// The chip's answer at the address: a word, or the status after a status command.
  std::uint16_t read() const { return status_mode_ ? status_ : word(address_); }

  /// Stores a word that was written in the factory.
  void hold(std::uint32_t address, std::uint16_t value) { words_[address] = value; }

  void write(std::uint16_t value) {
    namespace crorc = card_registers::crorc;
    if (setup_ == crorc::kChipProgram) {
      setup_ = 0;
      words_[address_] = word(address_) & value;
      status_mode_ = true;
      return;
    }
    if (setup_ == crorc::kChipEraseSetup || setup_ == crorc::kChipLockSetup) {
      const bool erase = setup_ == crorc::kChipEraseSetup;
      setup_ = 0;
      status_mode_ = true;
      if (value != crorc::kChipConfirm) {
        status_ |= 0x30;  // command sequence error
      } else if (erase) {
        const std::uint32_t first = address_ / crorc::kFlashBlockWords * crorc::kFlashBlockWords;
        for (std::uint32_t i = 0; i < crorc::kFlashBlockWords; ++i) words_.erase(first + i);
      }
      return;
    }
    switch (value) {
      case crorc::kChipReadArray: status_mode_ = false; break;
      case crorc::kChipReadStatus: status_mode_ = true; break;
      case crorc::kChipClearStatus: status_ = crorc::kChipReady; break;
      case crorc::kChipProgram:
      case crorc::kChipEraseSetup:
      case crorc::kChipLockSetup: setup_ = value; break;
      default: break;
    }
  }

 private:
  std::uint16_t word(std::uint32_t address) const {
    const auto found = words_.find(address);
    return found == words_.end() ? 0xffff : found->second;
  }

  std::unordered_map<std::uint32_t, std::uint16_t> words_;
  std::uint32_t address_ = 0;
  std::uint32_t setup_ = 0;
  std::uint16_t status_ = card_registers::crorc::kChipReady;
  bool status_mode_ = false;
};

}  // namespace rodeo::emulator
