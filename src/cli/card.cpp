// `rodeo card`: readout cards, emulated and real; the common parts of its verbs.
#include "cli/card.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>

#include "card_registers/felix.h"
#include "cli/verbs.h"
#include "process/stop_signals.h"

namespace rodeo::cli {

namespace {

/// The value of --register-map. It is global: a process runs one verb.
std::string& asked_register_map() {
  static std::string name;
  return name;
}

}  // namespace

void add_register_map(Command& verb) {
  verb.option("--register-map", asked_register_map(),
              "FELIX: use this register map, not the one that the card names (docs/reference/card-registers.md)")
      .value_name("MAP");
}

Result<card::pci::FoundFunction> as_asked(card::pci::FoundFunction function) {
  if (asked_register_map().empty()) return function;
  const auto map = card::register_map_of(asked_register_map());
  if (!map)
    return value_error(fmt::format("--register-map: `{}` is not a known register map", asked_register_map()),
                       fmt::format("the known one is {}", card_registers::felix::kRegisterMapName));
  function.register_map = map;
  return function;
}

Option& add_card_id(Command& verb, std::string& id) {
  add_register_map(verb);
  return verb.option("--id", id, "Card: '#0', 3b:00.0 or 0233:1 (serial number and endpoint)").required().value_name("ID");
}

Option& add_card_ids(Command& verb, std::vector<std::string>& ids) {
  add_register_map(verb);
  return verb.option("--id", ids, "Card: '#0', 3b:00.0 or 0233:1; all cards if left out").value_name("ID");
}

Option& add_watch(Command& verb, std::optional<std::chrono::nanoseconds>& interval) {
  return verb.duration("--watch", interval, "Repeat after this time, until Ctrl-C");
}

namespace {

/// A card that did not answer the search is not asked again: each silent card costs a time-out.
Result<std::unique_ptr<card::Card>> open_found(const card::CardEntry& entry) {
  if (!entry.unanswered.code.empty()) return std::unexpected(entry.unanswered);
  return card::Card::open(RODEO_TRY(as_asked(entry.function)));
}

}  // namespace

Result<std::unique_ptr<card::Card>> open_card(const std::string& id) { return open_found(RODEO_TRY(card::find_card(id))); }

Result<AskedCards> AskedCards::open(const std::vector<std::string>& ids) {
  AskedCards asked;
  if (ids.empty()) {
    for (card::CardEntry& entry : card::list_cards())
      asked.cards_.push_back({.entry = std::move(entry), .card = {}, .error = {}});
    if (asked.cards_.empty()) {
      RODEO_TRY(card::pci::look_for_emulated_functions());
      return std::unexpected(Error{"card.not_found",
                                   "there are no cards",
                                   {},
                                   "rodeo emulate CONFIG makes some; `rodeo doctor` lists what real ones need"});
    }
  } else {
    // Each id on its own: an id without a card must not block the others.
    for (Result<card::CardEntry>& found : card::find_cards(ids)) {
      One one;
      if (found) {
        one.entry = std::move(*found);
      } else {
        one.error = std::move(found.error());
      }
      asked.cards_.push_back(std::move(one));
    }
  }
  card::all_at_once(
      asked.size(), [&](std::size_t i) { return asked.may_be_silent(i); },
      [&](std::size_t i) {
        One& one = asked.cards_[i];
        if (one.error) return;
        auto card = open_found(*one.entry);
        if (card) {
          one.card = std::move(*card);
        } else {
          asked.fail(one, card.error());
        }
      });
  return asked;
}

void AskedCards::ask(const std::function<Result<void>(std::size_t, const card::CardEntry&, card::Card&)>& work) {
  card::all_at_once(
      size(), [&](std::size_t i) { return may_be_silent(i); },
      [&](std::size_t i) {
        One& one = cards_[i];
        if (one.error) return;
        if (auto done = work(i, *one.entry, *one.card); !done) fail(one, done.error());
      });
}

void AskedCards::each(const Work& work) {
  for (One& one : cards_) {
    if (one.error) continue;
    if (auto done = work(*one.entry, *one.card); !done) fail(one, done.error());
  }
}

void AskedCards::fail(One& one, Error error) {
  if (error.where.empty()) error.where = one.entry->function.address.text();
  one.error = std::move(error);
}

bool AskedCards::may_be_silent(std::size_t number) const {
  const auto& entry = cards_[number].entry;
  return entry && entry->function.capabilities().messages;
}

Result<ExitCode> AskedCards::outcome() const {
  const auto failures =
      static_cast<std::size_t>(std::ranges::count_if(cards_, [](const One& one) { return one.error.has_value(); }));
  if (failures == 0) return ExitCode::done;
  const Error& first = *std::ranges::find_if(cards_, [](const One& one) { return one.error.has_value(); })->error;
  if (cards_.size() == 1) return std::unexpected(first);
  for (const One& one : cards_) {
    if (one.error) print_error(*one.error);
  }
  return failures < cards_.size() ? ExitCode::partial : exit_code_of(first.code);
}

Result<ExitCode> each_card(const std::vector<std::string>& ids, const AskedCards::Work& work) {
  auto cards = RODEO_TRY(AskedCards::open(ids));
  cards.each(work);
  return cards.outcome();
}

Result<std::uint32_t> link_mask(std::string_view text, unsigned last) {
  const auto number = [last](std::string_view digits) -> std::optional<unsigned> {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value > last) return std::nullopt;
    return value;
  };
  std::uint32_t mask = 0;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto first = number(part.substr(0, dash));
    const auto end = dash == part.size() ? first : number(part.substr(dash + 1));
    if (!first || !end || *first > *end)
      return value_error(fmt::format("--links: `{}` is not a link or range of links", part),
                         fmt::format("links are 0 to {}, as in 0,1,8-10", last));
    for (unsigned link = *first; link <= *end; ++link) mask |= 1U << link;
    if (part.size() == text.size()) return mask;
    text.remove_prefix(part.size() + 1);
  }
}

Result<std::uint32_t> hexadecimal_word(std::string_view text, std::string_view option) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error == std::errc{} && end == digits.data() + digits.size()) return value;
  return value_error(fmt::format("{}: `{}` is not a hexadecimal number of 32 bits", option, text),
                     "with or without 0x, as in 0xffff0000");
}

card::RegisterSpace register_space(const card::Card& card) {
  return {&card.map(), card.type() == card::CardType::crorc, card.type() == card::CardType::felix ? 8U : 4U};
}

Result<ExitCode> print_or_watch(std::vector<Column> columns, OutputFormat format,
                                std::optional<std::chrono::nanoseconds> interval, const Snapshot& snapshot) {
  return watch(interval, format, [&](bool first) -> Result<ExitCode> {
    Table table(columns);
    const ExitCode outcome = RODEO_TRY(snapshot(table));
    table.print(format, interval.has_value(), first);
    return outcome;
  });
}

Cell serial_cell(const std::optional<std::uint32_t>& serial) {
  return serial ? Cell(*serial, fmt::format("{:04}", *serial)) : Cell(Json(), "-", Style::faint);
}

Command& add_card(Command& root) {
  Command& card = root.verb("card", "Readout cards: list, configure, watch and measure them");
  card.example("rodeo card list", "every card of this host, including emulated ones")
      .example("rodeo card status --id '#0'", "its links")
      .example("rodeo card reg read --id '#0' temperature", "a register by name")
      .paragraph("docs/reference/card-tools.md lists the verb for each of ReadoutCard's programs.");
  add_card_list(card);
  add_card_config(card);
  add_card_monitor(card);
  add_card_operations(card);
  add_card_flash(card);
  add_card_care(card);
  add_card_cleanup(card);
  add_card_reg(card);
  add_card_huge_pages(card);
  add_card_keep(card);
  return card;
}

}  // namespace rodeo::cli
