// `rodeo card`: readout cards, emulated and real; what its verbs share.
#include "cli/card.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "cli/verbs.h"
#include "control/stop_signals.h"

namespace rodeo::cli {

Option& add_card_id(Command& verb, std::string& id) {
  return verb.option("--id", id, "Card: '#0', 3b:00.0 or 0233:1 (serial number and endpoint)").required().value_name("ID");
}

Option& add_card_ids(Command& verb, std::vector<std::string>& ids) {
  return verb.option("--id", ids, "Card: '#0', 3b:00.0 or 0233:1; all cards if left out").value_name("ID");
}

Option& add_watch(Command& verb, std::optional<std::chrono::nanoseconds>& interval) {
  return verb.duration("--watch", interval, "Again after this time, until Ctrl-C");
}

Result<std::vector<card::CardEntry>> select_cards(const std::vector<std::string>& ids) {
  if (ids.empty()) return card::list_cards();
  std::vector<card::CardEntry> chosen;
  for (const std::string& id : ids) {
    auto entry = card::find_card(id);
    if (!entry) return std::unexpected(entry.error());
    chosen.push_back(std::move(*entry));
  }
  return chosen;
}

Result<std::unique_ptr<card::Card>> open_card(const std::string& id) {
  const auto entry = card::find_card(id);
  if (!entry) return std::unexpected(entry.error());
  return card::Card::open(entry->function);
}

Result<ExitCode> each_card(const std::vector<std::string>& ids,
                           const std::function<Result<void>(const card::CardEntry&, card::Card&)>& work) {
  std::vector<Error> errors;
  std::size_t done = 0;
  // Each id on its own: one that leads nowhere must not keep the others from being looked at.
  std::vector<Result<card::CardEntry>> entries;
  if (ids.empty()) {
    for (card::CardEntry& entry : card::list_cards()) entries.emplace_back(std::move(entry));
    if (entries.empty()) {
      if (auto looked = card::pci::look_for_emulated_functions(); !looked) return std::unexpected(looked.error());
      return std::unexpected(Error{"card.not_found",
                                   "there are no cards",
                                   {},
                                   "rodeo emulate CONFIG makes some; `rodeo doctor` says what real ones need"});
    }
  }
  for (const std::string& id : ids) entries.push_back(card::find_card(id));
  for (const auto& entry : entries) {
    if (!entry) {
      errors.push_back(entry.error());
      continue;
    }
    auto card = card::Card::open(entry->function);
    auto outcome = card ? work(*entry, **card) : Result<void>(std::unexpected(card.error()));
    if (outcome) {
      ++done;
    } else {
      errors.push_back(std::move(outcome.error()));
      if (errors.back().where.empty()) errors.back().where = entry->function.address.text();
    }
  }
  if (errors.empty()) return ExitCode::done;
  if (done == 0 && errors.size() == 1) return std::unexpected(errors.front());
  for (const Error& error : errors) print_error(error);
  if (done > 0) return ExitCode::partial;
  return control::exit_code_of(errors.front().code);
}

card::RegisterSpace register_space(const card::Card& card) {
  return {&card.map(), card.type() == card::CardType::crorc, card.type() == card::CardType::felix ? 8U : 4U};
}

Result<void> check_interval(std::chrono::nanoseconds interval, std::string_view option) {
  if (interval >= std::chrono::milliseconds{1}) return {};
  return std::unexpected(
      Error{"cli.bad_value", fmt::format("{} takes a millisecond or more", option), {}, "1s shows a change as it comes"});
}

Result<ExitCode> print_or_watch(std::vector<Column> columns, OutputFormat format,
                                std::optional<std::chrono::nanoseconds> interval, const Snapshot& snapshot) {
  if (!interval) {
    Table table(std::move(columns));
    const auto outcome = snapshot(table);
    if (outcome) table.print(format);
    return outcome;
  }
  if (auto possible = check_interval(*interval); !possible) return std::unexpected(possible.error());
  const control::StopSignals signals;
  const bool redraw = format == OutputFormat::table && isatty(STDOUT_FILENO) != 0;
  ExitCode worst = ExitCode::done;
  bool first = true;
  auto next = std::chrono::steady_clock::now();
  while (!signals.stop_requested()) {
    Table table(columns);
    const auto outcome = snapshot(table);
    if (!outcome) return outcome;
    worst = std::max(worst, *outcome);
    if (redraw) print("\033[H\033[2J");
    table.print_next(format, first);
    first = false;
    next += *interval;
    while (!signals.stop_requested() && std::chrono::steady_clock::now() < next) {
      std::this_thread::sleep_for(
          std::min<std::chrono::nanoseconds>(next - std::chrono::steady_clock::now(), std::chrono::milliseconds{50}));
    }
  }
  return worst;
}

Cell serial_cell(const std::optional<std::uint32_t>& serial) {
  return serial ? Cell(*serial, fmt::format("{:04}", *serial)) : Cell(Json(), "-", Style::faint);
}

void add_card(Command& root) {
  Command& card = root.verb("card", "Readout cards: lists, configures, watches and measures them");
  card.example("rodeo card list", "every card of this host, emulated ones too")
      .example("rodeo card status --id '#0'", "its links")
      .example("rodeo card reg read --id '#0' temperature", "a register by name")
      .paragraph("docs/card-tools.md has the table from ReadoutCard's programs to these verbs.");
  add_card_list(card);
  add_card_config(card);
  add_card_monitor(card);
  add_card_bench(card);
  add_card_operations(card);
  add_card_flash(card);
  add_card_care(card);
  add_card_cleanup(card);
  add_card_reg(card);
  add_card_huge_pages(card);
  add_card_keep(card);
}

}  // namespace rodeo::cli
