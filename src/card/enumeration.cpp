#include "card/enumeration.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

// Opens the card as far as its name needs it, and closes it again.
CardEntry look_at(const pci::FoundFunction& function, const CardSource& source, bool with_identity) {
  CardEntry entry{.function = function};
  if (function.id) entry.type = type_of(*function.id);
  if (!function.problem.empty()) {
    entry.problem = function.problem;
    return entry;
  }
  if (function.id && !with_identity) return entry;
  auto card = source.open(function);
  if (!card) {
    entry.problem = card.error().what;
    return entry;
  }
  entry.type = (*card)->type();
  entry.function.id = (*card)->found().id;
  entry.identity.endpoint = (*card)->endpoint();
  if (!with_identity) return entry;
  auto identity = identify(**card);
  if (identity) {
    entry.identity = *identity;
  } else {
    entry.problem = identity.error().what;
  }
  return entry;
}

bool may_be_a_card(const pci::FoundFunction& function) { return !function.id || type_of(*function.id) != CardType::unknown; }

std::vector<CardEntry> look_at_all(const CardSource& source, bool with_identity) {
  std::vector<CardEntry> entries;
  for (const pci::FoundFunction& function : source.functions()) {
    if (may_be_a_card(function)) entries.push_back(look_at(function, source, with_identity));
  }
  std::ranges::stable_sort(entries, [](const CardEntry& a, const CardEntry& b) {
    return std::tie(a.type, a.function.address) < std::tie(b.type, b.function.address);
  });
  for (unsigned i = 0; i < entries.size(); ++i) entries[i].sequence = i;
  return entries;
}

std::unexpected<Error> not_found(const std::string& text, const std::vector<CardEntry>& entries) {
  std::string what = fmt::format("there is no card {}", text);
  if (entries.empty()) what += ": there is none at all";
  for (std::size_t i = 0; i < entries.size(); ++i)
    what += fmt::format("{} #{} {}", i == 0 ? "; there are" : ",", entries[i].sequence, entries[i].function.address.text());
  return std::unexpected(
      Error{"card.not_found", std::move(what), "", "see `rodeo card list`; `rodeo emulate` starts emulated cards"});
}

}  // namespace

std::vector<CardEntry> list_cards(const CardSource& source) { return look_at_all(source, true); }

Result<CardEntry> find_card(std::string_view text, const CardSource& source) {
  const auto id = parse_card_id(text);
  if (!id) return std::unexpected(id.error());
  return find_card(*id, source);
}

Result<CardEntry> find_card(const CardId& id, const CardSource& source) {
  if (const auto* address = std::get_if<pci::Address>(&id)) {
    for (const pci::FoundFunction& function : source.functions()) {
      if (function.address != *address) continue;
      if (may_be_a_card(function)) return look_at(function, source, true);
      CardEntry entry{.function = function, .problem = function.problem};
      entry.function.any_device = true;
      return entry;
    }
    return not_found(address->text(), look_at_all(source, false));
  }
  if (const auto* sequence = std::get_if<SequenceId>(&id)) {
    const auto entries = look_at_all(source, false);
    if (sequence->number >= entries.size()) return not_found(fmt::format("#{}", sequence->number), entries);
    CardEntry entry = look_at(entries[sequence->number].function, source, true);
    entry.sequence = sequence->number;
    return entry;
  }
  const auto& serial = std::get<SerialId>(id);
  const auto entries = look_at_all(source, true);
  const CardEntry* match = nullptr;
  for (const CardEntry& entry : entries) {
    if (entry.identity.serial != serial.serial || entry.identity.endpoint != serial.endpoint) continue;
    if (match != nullptr)
      return std::unexpected(Error{"card.ambiguous",
                                   fmt::format("{} and {} both have serial number {:04}:{}", match->function.address.text(),
                                               entry.function.address.text(), serial.serial, serial.endpoint),
                                   "", "name the card by its PCI address"});
    match = &entry;
  }
  if (match == nullptr) return not_found(fmt::format("{:04}:{}", serial.serial, serial.endpoint), entries);
  return *match;
}

}  // namespace rodeo::card
