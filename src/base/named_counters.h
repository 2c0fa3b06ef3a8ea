// Lists of counters by name: found, and added up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rodeo/input.h"

namespace rodeo::base {

/// nullptr if there is none of this name.
inline const NamedCounter* find_counter(std::span<const NamedCounter> counters, std::string_view name) {
  const auto found = std::ranges::find(counters, name, &NamedCounter::name);
  return found == counters.end() ? nullptr : &*found;
}

inline std::uint64_t counter_value(std::span<const NamedCounter> counters, std::string_view name,
                                   std::uint64_t fallback = 0) {
  const NamedCounter* const counter = find_counter(counters, name);
  return counter != nullptr ? counter->value : fallback;
}

/// The value of the counter of this name, which is appended with 0 if there is none.
inline std::uint64_t& counter_named(std::vector<NamedCounter>& counters, std::string_view name) {
  const auto found = std::ranges::find(counters, name, &NamedCounter::name);
  return (found == counters.end() ? counters.emplace_back(NamedCounter{std::string(name)}) : *found).value;
}

inline void add_counter(std::vector<NamedCounter>& counters, const NamedCounter& more) {
  counter_named(counters, more.name) += more.value;
}

}  // namespace rodeo::base
