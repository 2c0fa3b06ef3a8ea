// The declared registers of a card: what a BAR access by name is checked against, and what the emulator implements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::card_registers {

enum class Access : unsigned char {
  read,
  write,
  read_write,
  command
};  // command: writing does something; what it reads is not what was written

/// One register, or `count` of them `stride` bytes apart (one per link).
struct Register {
  std::string_view name;  // snake_case
  unsigned bar = 0;
  std::uint32_t offset = 0;  // bytes from the BAR's begin
  unsigned width_bytes = 4;  // 4, or 8 for FELIX
  Access access = Access::read_write;
  std::string_view help;
  std::uint32_t count = 1;
  std::uint32_t stride = 0;
};

/// A register of a map, and which of a row.
struct FoundRegister {
  const Register* description;
  std::uint32_t index;  // 0 unless count > 1
  std::uint32_t offset;
};

/// All registers of one type of card. The maps are constants: they live as long as the process.
class RegisterMap {
 public:
  constexpr RegisterMap(std::string_view card, std::span<const Register> registers) : card_(card), registers_(registers) {}
  std::string_view card() const { return card_; }
  std::span<const Register> registers() const { return registers_; }
  /// By name, `name[index]` for one of a row; nothing if there is none.
  std::optional<FoundRegister> find(std::string_view name) const;
  /// By place.
  std::optional<FoundRegister> at(unsigned bar, std::uint32_t offset) const;

 private:
  std::string_view card_;
  std::span<const Register> registers_;
};

}  // namespace rodeo::card_registers
