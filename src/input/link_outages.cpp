#include "input/link_outages.h"

#include <algorithm>
#include <optional>

#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::input {
namespace {

namespace felix = card_registers::felix;
namespace cru = card_registers::cru;

struct Status {
  bool up = false;
  bool sticky = false;
};

std::optional<Status> status_of(card::Card& card, std::uint32_t link) {
  if (card.type() == card::CardType::felix) {
    const auto word = card.read64(felix::reg("link_status"), link);
    if (!word) return std::nullopt;
    return Status{.up = (*word & 1U) != 0, .sticky = (*word & 2U) != 0};
  }
  const auto word = card.read(cru::reg("gbt_link_status"), cru::gbt_index(card.endpoint_or_zero(), link));
  if (!word) return std::nullopt;
  return Status{.up = cru::kDataUp.of(*word) != 0, .sticky = cru::kDataWasDown.of(*word) != 0};
}

}  // namespace

void LinkOutages::begin(card::Card& card, std::span<const std::uint16_t> links) {
  links_.clear();
  lost_ = 0;
  const bool felix_card = card.type() == card::CardType::felix;
  for (const std::uint16_t link : links) {
    const auto number = static_cast<std::uint32_t>(felix_card ? link >> 6 : link);
    if (std::ranges::find(links_, number, &Link::number) != links_.end()) continue;
    if (const auto status = status_of(card, number))
      links_.push_back({.number = number, .was_up = status->up, .sticky = status->sticky});
  }
}

void LinkOutages::end(card::Card& card) {
  std::uint64_t lost = 0;
  for (const Link& link : links_) {
    const auto status = status_of(card, link.number);
    if (status && ((link.was_up && !status->up) || (!link.sticky && status->sticky))) ++lost;
  }
  lost_ = lost;
}

}  // namespace rodeo::input
