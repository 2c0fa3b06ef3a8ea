#include "card/enumeration.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <tuple>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

bool says_nothing(const Error& error) { return error.code == "card.timeout" || error.code == "card.gone"; }

// Opens the card only as far as its name needs, and closes it again.
CardEntry read_entry(const pci::FoundFunction& function, const CardSource& source, bool with_identity) {
  CardEntry entry{.function = function};
  if (function.id) entry.type = type_of(*function.id);
  entry.silent = !function.id;
  if (!function.problem.empty()) {
    entry.problem = function.problem;
    return entry;
  }
  if (function.id && !with_identity) return entry;
  pci::FoundFunction unasked = function;
  unasked.unasked = true;
  auto card = source.open(unasked);
  if (!card) {
    entry.problem = card.error().what;
    if (says_nothing(card.error())) entry.unanswered = card.error();
    if (card.error().code == "card.unknown_type") entry.silent = false;  // the device answered, and is not a readout card
    return entry;
  }
  entry.silent = false;
  entry.type = (*card)->type();
  entry.function.id = (*card)->found().id;
  entry.identity.endpoint = (*card)->endpoint();
  if (const auto known = (*card)->check_map(); !known) entry.note = known.error().what;
  if (!with_identity) return entry;
  auto identity = identify(**card);
  if (identity) {
    entry.identity = *identity;
  } else {
    entry.problem = identity.error().what;
    if (says_nothing(identity.error())) entry.unanswered = identity.error();
  }
  return entry;
}

constexpr std::size_t kMostAtOnce = 32;

bool is_silent(const CardEntry& entry) { return entry.silent; }

bool may_be_a_card(const pci::FoundFunction& function) { return !function.id || type_of(*function.id) != CardType::unknown; }

std::vector<CardEntry> read_all_entries(const CardSource& source, bool with_identity) {
  std::vector<pci::FoundFunction> functions = source.functions();
  std::erase_if(functions, [](const pci::FoundFunction& function) { return !may_be_a_card(function); });
  std::vector<CardEntry> entries(functions.size());
  // A stopped emulator costs seconds of waiting: wait for all emulators at once.
  all_at_once(
      functions.size(), [&](std::size_t i) { return functions[i].capabilities().messages; },
      [&](std::size_t i) { entries[i] = read_entry(functions[i], source, with_identity); });
  std::ranges::stable_sort(entries, [](const CardEntry& a, const CardEntry& b) {
    return std::tie(a.type, a.function.address) < std::tie(b.type, b.function.address);
  });
  for (unsigned i = 0; i < entries.size(); ++i) entries[i].sequence = i;
  return entries;
}

/// "0000:3b:00.0, 0000:3c:00.0": the addresses of the entries that fulfil the condition.
template <typename Condition>
std::string addresses_of(const std::vector<CardEntry>& entries, Condition holds) {
  std::string list;
  for (const CardEntry& entry : entries) {
    if (holds(entry)) list += (list.empty() ? "" : ", ") + entry.function.address.text();
  }
  return list;
}

/// "; cannot look for emulated cards: ..." if the search for them failed.
std::string not_looked_for() {
  const auto looked = pci::look_for_emulated_functions();
  return looked ? "" : fmt::format("; {} ({})", looked.error().what, looked.error().where);
}

std::unexpected<Error> not_found(const std::string& text, const std::vector<CardEntry>& entries) {
  std::string what = fmt::format("there is no card {}", text);
  if (entries.empty()) what += ": no card was found";
  for (std::size_t i = 0; i < entries.size(); ++i)
    what += fmt::format("{} #{} {}", i == 0 ? "; there are" : ",", entries[i].sequence, entries[i].function.address.text());
  what += not_looked_for();
  return std::unexpected(
      Error{"card.not_found", std::move(what), "", "see `rodeo card list`; `rodeo emulate` starts emulated cards"});
}

Result<CardEntry> find_address(const pci::Address& address, const CardSource& source) {
  for (const pci::FoundFunction& function : source.functions()) {
    if (function.address != address) continue;
    if (may_be_a_card(function)) return read_entry(function, source, true);
    CardEntry entry{.function = function, .problem = function.problem};
    entry.function.any_device = true;
    return entry;
  }
  // This search opens no other card, so numbers and types are not known.
  std::string there;
  for (const pci::FoundFunction& function : source.functions()) {
    if (may_be_a_card(function)) there += (there.empty() ? "" : ", ") + function.address.text();
  }
  return std::unexpected(Error{"card.not_found",
                               fmt::format("there is no card {}{}{}", address.text(),
                                           there.empty() ? ": no card was found" : "; there are " + there, not_looked_for()),
                               "", "see `rodeo card list`; `rodeo emulate` starts emulated cards"});
}

/// `entries` are all cards, with or without their identities.
Result<CardEntry> with_sequence(const SequenceId& sequence, const std::vector<CardEntry>& entries) {
  if (const std::string silent = addresses_of(entries, &is_silent); !silent.empty())
    return std::unexpected(
        Error{"card.unknown_order",
              fmt::format("which card is #{} is not known: numbers follow the type of the cards, and {} "
                          "did not report a type",
                          sequence.number, silent),
              "",
              "name the card by its PCI address or serial number; `rodeo card list` says why the other is "
              "silent, `rodeo card cleanup` removes what dead processes left"});
  if (sequence.number >= entries.size()) return not_found(fmt::format("#{}", sequence.number), entries);
  return entries[sequence.number];
}

/// `entries` are all cards, with their identities.
Result<CardEntry> with_serial(const SerialId& serial, const std::vector<CardEntry>& entries) {
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

}  // namespace

std::vector<CardEntry> list_cards(const CardSource& source) { return read_all_entries(source, true); }

Result<CardEntry> find_card(std::string_view text, const CardSource& source) {
  const auto id = RODEO_TRY(parse_card_id(text));
  return find_card(id, source);
}

Result<CardEntry> find_card(const CardId& id, const CardSource& source) {
  if (const auto* address = std::get_if<pci::Address>(&id)) return find_address(*address, source);
  if (const auto* sequence = std::get_if<SequenceId>(&id)) {
    auto entry = with_sequence(*sequence, read_all_entries(source, false));
    if (!entry) return entry;
    CardEntry known = read_entry(entry->function, source, true);
    known.sequence = entry->sequence;
    return known;
  }
  return with_serial(std::get<SerialId>(id), read_all_entries(source, true));
}

std::vector<Result<CardEntry>> find_cards(const std::vector<std::string>& ids, const CardSource& source) {
  if (ids.size() == 1) return {find_card(ids.front(), source)};
  std::vector<Result<CardEntry>> found(ids.size());
  std::vector<Result<CardId>> parsed;
  parsed.reserve(ids.size());
  for (const std::string& text : ids) parsed.push_back(parse_card_id(text));
  const auto address_of = [&](std::size_t i) { return parsed[i] ? std::get_if<pci::Address>(&*parsed[i]) : nullptr; };
  std::vector<CardEntry> entries;
  bool listed = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!parsed[i]) {
      found[i] = std::unexpected(parsed[i].error());
    } else if (address_of(i) == nullptr) {
      if (!listed) entries = read_all_entries(source, true);
      listed = true;
      const auto* sequence = std::get_if<SequenceId>(&*parsed[i]);
      found[i] =
          sequence != nullptr ? with_sequence(*sequence, entries) : with_serial(std::get<SerialId>(*parsed[i]), entries);
    }
  }
  std::vector<pci::FoundFunction> functions = source.functions();
  const auto may_be_silent = [&](std::size_t i) {
    const auto function = address_of(i) == nullptr
                              ? functions.end()
                              : std::ranges::find(functions, *address_of(i), &pci::FoundFunction::address);
    return function != functions.end() && function->capabilities().messages;
  };
  all_at_once(ids.size(), may_be_silent, [&](std::size_t i) {
    if (const auto* address = address_of(i)) found[i] = find_address(*address, source);
  });
  return found;
}

void all_at_once(std::size_t count, const std::function<bool(std::size_t)>& may_be_silent,
                 const std::function<void(std::size_t)>& work) {
  std::vector<std::size_t> together;
  std::vector<std::size_t> in_turn;
  for (std::size_t i = 0; i < count; ++i) (may_be_silent(i) ? together : in_turn).push_back(i);
  std::atomic<std::size_t> next{0};
  const auto work_on_next = [&] {
    for (std::size_t i = next++; i < together.size(); i = next++) work(together[i]);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(together.size(), kMostAtOnce); ++i) {
    try {
      helpers.emplace_back(work_on_next);
    } catch (const std::system_error&) {
      break;  // no more threads: the existing ones do all the work
    }
  }
  for (const std::size_t i : in_turn) work(i);
  work_on_next();
}

}  // namespace rodeo::card
