#include "base/terminal_text.h"

#include <cstddef>

namespace rodeo::base {

std::string without_control_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (letter == 0xc2 && next >= 0x80 && next <= 0x9f) {
      out += '?';
      ++i;
    } else if ((letter < ' ' && letter != '\n' && letter != '\t') || letter == 0x7f) {
      out += '?';
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace rodeo::base
