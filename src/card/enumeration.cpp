#include "card/enumeration.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

// Opens the card as far as its name needs it, and closes it again.
CardEntry look_at(const pci::FoundFunction& function, const CardSource& source, bool with_identity) {
  CardEntry entry{.function = function};
  if (function.id) entry.type = type_of(*function.id);
  entry.silent = !function.id;
  if (!function.problem.empty()) {
    entry.problem = function.problem;
    return entry;
  }
  if (function.id && !with_identity) return entry;
  auto card = source.open(function);
  if (!card) {
    entry.problem = card.error().what;
    if (card.error().code == "card.unknown_type") entry.silent = false;  // it has answered, and is none of ours
    return entry;
  }
  entry.silent = false;
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

constexpr std::size_t kMostAtOnce = 32;

bool is_silent(const CardEntry& entry) { return entry.silent; }

bool may_be_a_card(const pci::FoundFunction& function) { return !function.id || type_of(*function.id) != CardType::unknown; }

std::vector<CardEntry> look_at_all(const CardSource& source, bool with_identity) {
  std::vector<pci::FoundFunction> functions = source.functions();
  std::erase_if(functions, [](const pci::FoundFunction& function) { return !may_be_a_card(function); });
  std::vector<CardEntry> entries(functions.size());
  std::vector<std::size_t> emulated;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].back_end == pci::BackEnd::vfio_user) emulated.push_back(i);
  }
  {
    // A process that stands still is waited for, for seconds: for all of them at once.
    std::atomic<std::size_t> next{0};
    const auto ask_emulated = [&] {
      for (std::size_t i = next++; i < emulated.size(); i = next++)
        entries[emulated[i]] = look_at(functions[emulated[i]], source, with_identity);
    };
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(emulated.size(), kMostAtOnce); ++i) helpers.emplace_back(ask_emulated);
    for (std::size_t i = 0; i < functions.size(); ++i) {
      if (functions[i].back_end != pci::BackEnd::vfio_user) entries[i] = look_at(functions[i], source, with_identity);
    }
    ask_emulated();
  }
  std::ranges::stable_sort(entries, [](const CardEntry& a, const CardEntry& b) {
    return std::tie(a.type, a.function.address) < std::tie(b.type, b.function.address);
  });
  for (unsigned i = 0; i < entries.size(); ++i) entries[i].sequence = i;
  return entries;
}

/// "0000:3b:00.0, 0000:3c:00.0": of the entries for which it holds.
template <typename Condition>
std::string addresses_of(const std::vector<CardEntry>& entries, Condition holds) {
  std::string list;
  for (const CardEntry& entry : entries) {
    if (holds(entry)) list += (list.empty() ? "" : ", ") + entry.function.address.text();
  }
  return list;
}

/// "; cannot look for emulated cards: ...", if that is so.
std::string not_looked_for() {
  const auto looked = pci::look_for_emulated_functions();
  return looked ? "" : fmt::format("; {} ({})", looked.error().what, looked.error().where);
}

std::unexpected<Error> not_found(const std::string& text, const std::vector<CardEntry>& entries) {
  std::string what = fmt::format("there is no card {}", text);
  if (entries.empty()) what += ": there is none at all";
  for (std::size_t i = 0; i < entries.size(); ++i)
    what += fmt::format("{} #{} {}", i == 0 ? "; there are" : ",", entries[i].sequence, entries[i].function.address.text());
  what += not_looked_for();
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
    // No other card is opened for this, hence numbers and types are not told.
    std::string there;
    for (const pci::FoundFunction& function : source.functions()) {
      if (may_be_a_card(function)) there += (there.empty() ? "" : ", ") + function.address.text();
    }
    return std::unexpected(
        Error{"card.not_found",
              fmt::format("there is no card {}{}{}", address->text(),
                          there.empty() ? ": there is none at all" : "; there are " + there, not_looked_for()),
              "", "see `rodeo card list`; `rodeo emulate` starts emulated cards"});
  }
  if (const auto* sequence = std::get_if<SequenceId>(&id)) {
    const auto entries = look_at_all(source, false);
    if (const std::string silent = addresses_of(entries, &is_silent); !silent.empty())
      return std::unexpected(
          Error{"card.unknown_order",
                fmt::format("which card is #{} is not known: numbers follow the type of the cards, and {} "
                            "did not say its own",
                            sequence->number, silent),
                "",
                "name the card by its PCI address or serial number; `rodeo card list` says why the other is "
                "silent, `rodeo card cleanup` removes what dead processes left"});
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
  if (match != nullptr) return *match;
  auto error = not_found(fmt::format("{:04}:{}", serial.serial, serial.endpoint), entries);
  const auto unknown = [](const CardEntry& entry) { return !entry.problem.empty() && !entry.identity.serial; };
  if (const std::string silent = addresses_of(entries, unknown); !silent.empty())
    error.error().what =
        fmt::format("no card that answers has the serial number {:04}:{}, and those of {} are not known: {}", serial.serial,
                    serial.endpoint, silent, std::ranges::find_if(entries, unknown)->problem);
  return error;
}

}  // namespace rodeo::card
