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
    if (candidate.name == name && index < candidate.count)
      return FoundRegister{&candidate, index, candidate.offset + index * candidate.stride};
  }
  return std::nullopt;
}

std::optional<FoundRegister> RegisterMap::at(unsigned bar, std::uint32_t offset) const {
  for (const Register& candidate : registers_) {
    if (candidate.bar != bar || offset < candidate.offset) continue;
    const std::uint32_t distance = offset - candidate.offset;
    if (distance == 0) return FoundRegister{&candidate, 0, offset};
    if (candidate.count > 1 && distance % candidate.stride == 0 && distance / candidate.stride < candidate.count) {
      return FoundRegister{&candidate, distance / candidate.stride, offset};
    }
  }
  return std::nullopt;
}

}  // namespace rodeo::card_registers
