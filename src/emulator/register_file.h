// The registers of a function: values, and behaviour on reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "card_registers/register_map.h"

namespace rodeo::emulator {

/// Made from a card's declared map. Not thread-safe: the card's mutex guards it. A register without behaviour holds the
/// value written to it, if its map allows writes; a register of kind `command` reads 0. Addresses outside the map read 0 and
/// ignore writes.
class RegisterFile {
 public:
  using Register = card_registers::Register;
  using Read = std::function<std::uint64_t(std::uint32_t index)>;
  using Write = std::function<void(std::uint32_t index, std::uint64_t value)>;

  /// `bars`: number of BARs with this same map (a C-RORC has several). The index of a register of BAR n is n x total() plus
  /// its own.
  explicit RegisterFile(const card_registers::RegisterMap& map, unsigned bars = 1);

  void on_read(const Register& reg, Read read);
  void on_write(const Register& reg, Write write);

  std::uint64_t get(const Register& reg, std::uint32_t index = 0) const;
  void set(const Register& reg, std::uint64_t value, std::uint32_t index = 0);

  /// One access of 1 to 8 bytes, naturally aligned. Narrow accesses reach a part of a register.
  std::uint64_t read(unsigned bar, std::uint64_t offset, std::size_t width);
  void write(unsigned bar, std::uint64_t offset, std::size_t width, std::uint64_t value);

  /// keep() stores the values of all registers; restore() brings them back.
  void keep();
  void restore();

  /// Number of accesses to addresses outside the map.
  std::uint64_t unknown() const { return unknown_; }

 private:
  struct Behaviour {
    Read read;
    Write write;
  };
  struct Cell {
    const Register* reg = nullptr;
    std::uint32_t index = 0;
    std::uint32_t behaviour = 0;  // place of the cell's register in the map
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
