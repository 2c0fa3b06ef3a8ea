// A configuration as a list of register fields and the values that they should hold. Comparing and applying both use this
// list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "card/card.h"
#include "card/configuration/settings.h"

namespace rodeo::card {

/// Parts of a card that are changed together, in this order.
enum class Module : std::uint8_t { clock, downstream, gbt, links, user_logic, identity, datapath, optics };

/// One field that should hold one value.
struct PlanItem {
  Module module = Module::datapath;
  std::string name;  // "link 3 fee_id"
  const card_registers::Register* reg = nullptr;
  std::uint32_t index = 0;
  card_registers::Field field{0, 32};
  bool whole = false;  // all 64 bits of the register, not a field
  std::uint64_t value = 0;
  /// Formats a value of the field; null: hexadecimal.
  std::string (*show)(std::uint64_t) = nullptr;

  std::string text(std::uint64_t of) const;
};

/// The items in the order of application.
std::vector<PlanItem> plan(const CruSettings& settings, unsigned endpoint);
std::vector<PlanItem> plan(const CrorcSettings& settings);
std::vector<PlanItem> plan(const FelixSettings& settings);

}  // namespace rodeo::card
