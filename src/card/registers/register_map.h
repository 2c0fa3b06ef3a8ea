// The declared registers of a card: the driver looks up names in them, and the emulator implements them.
#pragma once

#include <cstddef>
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
};  // command: a write has an effect; a read does not return the written value

/// One register, or a row of `count` of them `stride` bytes apart (one per link), or `rows` such rows `row_stride` bytes
/// apart (one per bank of links). An index counts through the rows: index = row x count + place in the row.
struct Register {
  std::string_view name;  // snake_case
  unsigned bar = 0;
  std::uint32_t offset = 0;  // bytes from the BAR's begin
  unsigned width_bytes = 4;  // 4, or 8 for FELIX
  Access access = Access::read_write;
  std::string_view help;
  std::uint32_t count = 1;
  std::uint32_t stride = 0;
  std::uint32_t rows = 1;
  std::uint32_t row_stride = 0;

  constexpr std::uint32_t total() const { return count * rows; }
  /// Offset in bytes of one of them; index < total().
  constexpr std::uint32_t at(std::uint32_t index) const {
    return offset + index / count * row_stride + index % count * stride;
  }
};

/// A field of a register: `width` bits from bit `low` up.
struct Field {
  unsigned low = 0;
  unsigned width = 1;
  constexpr std::uint32_t mask() const { return (width >= 32 ? ~std::uint32_t{0} : (std::uint32_t{1} << width) - 1) << low; }
  constexpr std::uint32_t of(std::uint32_t word) const { return (word & mask()) >> low; }
  constexpr std::uint32_t in(std::uint32_t word, std::uint32_t value) const {
    return (word & ~mask()) | ((value << low) & mask());
  }
};

/// Vendor and device in a function's configuration space.
struct PciId {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  constexpr auto operator<=>(const PciId&) const = default;
};

/// Size of a BAR; always a power of two.
struct BarSize {
  unsigned bar = 0;
  std::uint64_t bytes = 0;
};

/// Finds a register of a table by name at compile time; an unknown name does not compile.
template <std::size_t N>
consteval const Register& named(const Register (&table)[N], std::string_view name) {
  for (const Register& candidate : table) {
    if (candidate.name == name) return candidate;
  }
  throw "no register of this name";
}

/// A register of a map, and its index.
struct FoundRegister {
  const Register* description;
  std::uint32_t index;  // 0 unless total() > 1
  std::uint32_t offset;
};

/// All registers of one type of card. The maps are constants: they live as long as the process.
class RegisterMap {
 public:
  constexpr RegisterMap(std::string_view card, std::span<const Register> registers) : card_(card), registers_(registers) {}
  std::string_view card() const { return card_; }
  std::span<const Register> registers() const { return registers_; }
  /// Finds a register by name, `name[index]` for one of a row; nothing if the map has none.
  std::optional<FoundRegister> find(std::string_view name) const;
  /// Finds a register by its place.
  std::optional<FoundRegister> at(unsigned bar, std::uint32_t offset) const;

 private:
  std::string_view card_;
  std::span<const Register> registers_;
};

}  // namespace rodeo::card_registers
