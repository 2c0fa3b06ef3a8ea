// What a worker of a builder waits for. The worker's thread writes it, status() reads it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rodeo::readout {

enum class WaitsFor : std::uint8_t {
  nothing,
  data,          ///< the input is drained
  pages,         ///< all pages of the input are in use
  peers,         ///< other workers of this builder
  trigger_list,  ///< the trigger's own list: another worker has no room for it
};

inline const char* text_of(WaitsFor what) {
  constexpr const char* kTexts[] = {"", "data", "pages of the input", "other workers", "the trigger list"};
  return kTexts[static_cast<std::size_t>(what)];
}

}  // namespace rodeo::readout
