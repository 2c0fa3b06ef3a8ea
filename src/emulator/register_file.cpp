#include "emulator/register_file.h"

namespace rodeo::emulator {

using card_registers::Access;

RegisterFile::RegisterFile(const card_registers::RegisterMap& map, unsigned bars) : map_(map.registers()) {
  behaviour_.resize(map_.size());
  for (std::uint32_t place = 0; place < map_.size(); ++place) {
    const Register& reg = map_[place];
    first_.push_back(static_cast<std::uint32_t>(cells_.size()));
    for (unsigned bar = 0; bar < bars; ++bar) {
      for (std::uint32_t i = 0; i < reg.total(); ++i) {
        at_.emplace(key(reg.bar + bar, reg.at(i)), static_cast<std::uint32_t>(cells_.size()));
        cells_.push_back({.reg = &reg, .index = bar * reg.total() + i, .behaviour = place});
      }
    }
  }
}

std::size_t RegisterFile::place(const Register& reg) const { return static_cast<std::size_t>(&reg - map_.data()); }

void RegisterFile::on_read(const Register& reg, Read read) { behaviour_[place(reg)].read = std::move(read); }
void RegisterFile::on_write(const Register& reg, Write write) { behaviour_[place(reg)].write = std::move(write); }

std::uint64_t RegisterFile::get(const Register& reg, std::uint32_t index) const {
  return cells_[first_[place(reg)] + index].value;
}

void RegisterFile::set(const Register& reg, std::uint64_t value, std::uint32_t index) {
  cells_[first_[place(reg)] + index].value = value;
}

RegisterFile::Cell* RegisterFile::find(unsigned bar, std::uint64_t offset, std::size_t& byte) {
  // A register of eight bytes can be reached by halves, and any register by bytes.
  for (byte = 0; byte < 8 && byte <= offset; ++byte) {
    const auto found = at_.find(key(bar, offset - byte));
    if (found == at_.end()) continue;
    Cell& cell = cells_[found->second];
    if (byte < cell.reg->width_bytes) return &cell;
    break;
  }
  ++unknown_;
  return nullptr;
}

std::uint64_t RegisterFile::read_cell(Cell& cell) {
  const Behaviour& behaviour = behaviour_[cell.behaviour];
  if (behaviour.read) return behaviour.read(cell.index);
  return cell.reg->access == Access::command || cell.reg->access == Access::write ? 0 : cell.value;
}

std::uint64_t RegisterFile::read(unsigned bar, std::uint64_t offset, std::size_t width) {
  std::size_t byte = 0;
  Cell* const cell = find(bar, offset, byte);
  if (cell == nullptr) return 0;
  std::uint64_t value = read_cell(*cell) >> (8 * byte);
  if (width == 8 && cell->reg->width_bytes == 4) {
    if (Cell* const next = find(bar, offset + 4, byte)) value = (value & 0xffffffffU) | read_cell(*next) << 32;
  }
  return width == 8 ? value : value & ((std::uint64_t{1} << (8 * width)) - 1);
}

void RegisterFile::write(unsigned bar, std::uint64_t offset, std::size_t width, std::uint64_t value) {
  std::size_t byte = 0;
  Cell* const cell = find(bar, offset, byte);
  if (cell == nullptr) return;
  if (width == 8 && cell->reg->width_bytes == 4) {
    write(bar, offset, 4, value & 0xffffffffU);
    write(bar, offset + 4, 4, value >> 32);
    return;
  }
  if (cell->reg->access == Access::read) return;
  if (width < cell->reg->width_bytes) {
    const std::uint64_t mask = ((width == 8 ? 0 : std::uint64_t{1} << (8 * width)) - 1) << (8 * byte);
    value = (cell->value & ~mask) | ((value << (8 * byte)) & mask);
  }
  cell->value = value;
  const Behaviour& behaviour = behaviour_[cell->behaviour];
  if (behaviour.write) behaviour.write(cell->index, value);
}

void RegisterFile::keep() {
  for (Cell& cell : cells_) cell.kept = cell.value;
}

void RegisterFile::restore() {
  for (Cell& cell : cells_) cell.value = cell.kept;
}

}  // namespace rodeo::emulator
