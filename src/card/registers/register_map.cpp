#include "card_registers/register_map.h"

#include <charconv>

namespace rodeo::card_registers {

std::optional<FoundRegister> RegisterMap::find(std::string_view name) const {
  std::uint32_t index = 0;
  if (const auto bracket = name.find('['); bracket != std::string_view::npos) {
    const std::string_view digits = name.substr(bracket + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc{} || end + 1 != digits.data() + digits.size() || *end != ']') return std::nullopt;
    name = name.substr(0, bracket);
  }
  for (const Register& candidate : registers_) {
    if (candidate.name == name && index < candidate.total()) return FoundRegister{&candidate, index, candidate.at(index)};
  }
  return std::nullopt;
}

std::optional<FoundRegister> RegisterMap::at(unsigned bar, std::uint32_t offset) const {
  for (const Register& candidate : registers_) {
    if (candidate.bar != bar || offset < candidate.offset) continue;
    const std::uint32_t distance = offset - candidate.offset;
    const std::uint32_t row = candidate.rows > 1 ? distance / candidate.row_stride : 0;
    const std::uint32_t in_row = distance - row * candidate.row_stride;
    const std::uint32_t place = candidate.count > 1 ? in_row / candidate.stride : 0;
    if (row < candidate.rows && place < candidate.count && in_row == place * candidate.stride)
      return FoundRegister{&candidate, row * candidate.count + place, offset};
  }
  return std::nullopt;
}

}  // namespace rodeo::card_registers
