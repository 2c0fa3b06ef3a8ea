// The registers of a function: values, and behaviour where a card does something when they are read or written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "card_registers/register_map.h"

namespace rodeo::emulator {

/// Made from a card's declared map. Not thread-safe: its card has a mutex. A register that has no behaviour of its own holds what was written to it
/// if its map says that it can be written; one of kind `command` reads 0. What is not in the map reads 0 and takes nothing.
class RegisterFile {
 public:
  using Register = card_registers::Register;
  using Read = std::function<std::uint64_t(std::uint32_t index)>;
  using Write = std::function<void(std::uint32_t index, std::uint64_t value)>;

  /// `bars`: the same map once more for so many further BARs (a C-RORC); the index of a register of BAR n is then n x total() + its own.
  explicit RegisterFile(const card_registers::RegisterMap& map, unsigned bars = 1);

  void on_read(const Register& reg, Read read);
  void on_write(const Register& reg, Write write);

  std::uint64_t get(const Register& reg, std::uint32_t index = 0) const;
  void set(const Register& reg, std::uint64_t value, std::uint32_t index = 0);

  /// One access of 1 to 8 bytes, naturally aligned. Narrow ones reach a part of a register.
  std::uint64_t read(unsigned bar, std::uint64_t offset, std::size_t width);
  void write(unsigned bar, std::uint64_t offset, std::size_t width, std::uint64_t value);

  /// Every register that is plain memory back to what it held when keep() was called.
  void keep();
  void restore();

  /// Accesses to places that the map does not have.
  std::uint64_t unknown() const { return unknown_; }

 private:
  struct Behaviour {
    Read read;
    Write write;
  };
  struct Cell {
    const Register* reg = nullptr;
    std::uint32_t index = 0;
    std::uint32_t behaviour = 0;  // its register's place in the map
    std::uint64_t value = 0;
    std::uint64_t kept = 0;
  };

  static std::uint64_t key(unsigned bar, std::uint64_t offset) { return std::uint64_t{bar} << 32 | offset; }
  Cell* find(unsigned bar, std::uint64_t offset, std::size_t& byte);
  std::size_t place(const Register& reg) const;
  std::uint64_t read_cell(Cell& cell);

  std::span<const Register> map_;
  std::vector<Behaviour> behaviour_;
  std::vector<std::uint32_t> first_;  // cell of index 0, by place in the map
  std::vector<Cell> cells_;
  std::unordered_map<std::uint64_t, std::uint32_t> at_;
  std::uint64_t unknown_ = 0;
};

}  // namespace rodeo::emulator
