// Lists of counters by name: look up, add up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/counters.h"
#include "rodeo/input.h"

namespace rodeo::base {

/// nullptr if no counter has this name.
inline const NamedCounter* find_counter(std::span<const NamedCounter> counters, std::string_view name) {
  const auto found = std::ranges::find(counters, name, &NamedCounter::name);
  return found == counters.end() ? nullptr : &*found;
}

inline std::uint64_t counter_value(std::span<const NamedCounter> counters, std::string_view name,
                                   std::uint64_t fallback = 0) {
  const NamedCounter* const counter = find_counter(counters, name);
  return counter != nullptr ? counter->value : fallback;
}

/// The value of the counter of this name; a missing counter is appended with 0.
inline std::uint64_t& counter_named(std::vector<NamedCounter>& counters, std::string_view name) {
  const auto found = std::ranges::find(counters, name, &NamedCounter::name);
  return (found == counters.end() ? counters.emplace_back(NamedCounter{std::string(name)}) : *found).value;
}

inline void add_counter(std::vector<NamedCounter>& counters, const NamedCounter& more) {
  counter_named(counters, more.name) += more.value;
}

/// The `wanted` counters of a block, in the order of its enum.
template <typename Enum, std::size_t N>
std::vector<NamedCounter> named_counters(const CounterBlock<Enum>& counters, const std::array<CounterInfo, N>& infos,
                                         std::type_identity_t<bool (*)(Enum)> wanted) {
  std::vector<NamedCounter> named;
  for (std::size_t i = 0; i < N; ++i) {
    const auto counter = static_cast<Enum>(i);
    if (wanted(counter)) named.push_back({std::string(infos[i].name), counters.read(counter)});
  }
  return named;
}

}  // namespace rodeo::base
