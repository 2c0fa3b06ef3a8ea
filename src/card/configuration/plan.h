// What a configuration means for a card: which field of which register should hold what. Comparing and applying both walk this list.
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
  /// How a value of it is shown; hexadecimal if there is nothing.
  std::string (*show)(std::uint64_t) = nullptr;

  std::string text(std::uint64_t of) const;
};

/// In the order of application.
std::vector<PlanItem> plan(const CruSettings& settings, unsigned endpoint);
std::vector<PlanItem> plan(const CrorcSettings& settings);
std::vector<PlanItem> plan(const FelixSettings& settings);

}  // namespace rodeo::card
