// The verbs of `rodeo card`, one file for each group, and their common parts.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "card/card.h"
#include "card/enumeration.h"
#include "card/firmware.h"
#include "card/register_target.h"
#include "card_registers/cru.h"
#include "cli/command.h"
#include "cli/watch.h"

namespace rodeo::cli {

void add_card_care(Command& card);
void add_card_cleanup(Command& card);
void add_card_config(Command& card);
void add_card_flash(Command& card);
void add_card_huge_pages(Command& card);
void add_card_keep(Command& card);
void add_card_list(Command& card);
void add_card_monitor(Command& card);
void add_card_operations(Command& card);
void add_card_reg(Command& card);

/// Adds `--id` to a verb that changes or needs one card.
Option& add_card_id(Command& verb, std::string& id);
/// Adds `--register-map`. The functions for `--id` call it.
void add_register_map(Command& verb);
/// Returns the function with the register map of --register-map, ready to open. Error cli.bad_value: the map is not known.
Result<card::pci::FoundFunction> as_asked(card::pci::FoundFunction function);
/// Adds a repeatable `--id` to a verb that only reads. Without ids the verb reads all cards.
Option& add_card_ids(Command& verb, std::vector<std::string>& ids);
/// `--watch TIME`.
Option& add_watch(Command& verb, std::optional<std::chrono::nanoseconds>& interval);

Result<std::unique_ptr<card::Card>> open_card(const std::string& id);

/// The selected cards, opened and asked. Emulated cards, which may stand still, are asked in parallel. A card that does not
/// answer in time is left out with its error; the others continue.
class AskedCards {
 public:
  using Work = std::function<Result<void>(const card::CardEntry&, card::Card&)>;

  /// Without ids: all cards. An id without a card counts as a failed card. Error card.not_found: there are no cards at all.
  static Result<AskedCards> open(const std::vector<std::string>& ids);

  /// Calls `work` for each card that has not failed yet, on several threads. `number` is below size() and identifies the
  /// card, so `work` can store its results there without a lock.
  void ask(const std::function<Result<void>(std::size_t number, const card::CardEntry&, card::Card&)>& work);
  /// The same on this thread, one card after the other, in the order of the list.
  void each(const Work& work);

  std::size_t size() const { return cards_.size(); }
  /// nullptr: the id has no card.
  const card::CardEntry* entry(std::size_t number) const { return cards_[number].entry ? &*cards_[number].entry : nullptr; }
  bool failed(std::size_t number) const { return cards_[number].error.has_value(); }
  /// Only for a card that has not failed.
  const card::Card& card(std::size_t number) const { return *cards_[number].card; }

  /// Reports failed cards on stderr. The status is then `partial`, or that of the error if no card is left.
  Result<ExitCode> outcome() const;

 private:
  struct One {
    std::optional<card::CardEntry> entry;
    std::unique_ptr<card::Card> card;
    std::optional<Error> error;
  };
  void fail(One& one, Error error);
  bool may_be_silent(std::size_t number) const;

  std::vector<One> cards_;
};

/// Opens the cards and works on them one after the other.
Result<ExitCode> each_card(const std::vector<std::string>& ids, const AskedCards::Work& work);

/// Parses the value of `--links`: "0,1,8-10" as a bit mask; decimal, 0 to `last`. Error cli.bad_value.
Result<std::uint32_t> link_mask(std::string_view text, unsigned last = card_registers::cru::kLinks - 1);
/// Parses a mask or an orbit as ReadoutCard writes it: 32 bits, hexadecimal, with or without 0x. The error cli.bad_value
/// names `option`.
Result<std::uint32_t> hexadecimal_word(std::string_view text, std::string_view option);

/// The built-in table of firmware, plus ReadoutCard's local list if it exists, plus the user's file (`file` may be empty).
Result<card::FirmwareTable> firmware_table(const std::string& file);

/// The meaning of register names and addresses on a card.
card::RegisterSpace register_space(const card::Card& card);

/// The output of a verb that prints once or repeatedly.
using Snapshot = std::function<Result<ExitCode>(Table& table)>;

/// Prints the table that `snapshot` fills. With an interval it repeats until Ctrl-C: a terminal is redrawn, JSON gets one
/// line each time.
Result<ExitCode> print_or_watch(std::vector<Column> columns, OutputFormat format,
                                std::optional<std::chrono::nanoseconds> interval, const Snapshot& snapshot);

/// "0233", or nothing for a card without a readable serial number.
Cell serial_cell(const std::optional<std::uint32_t>& serial);
/// The value, or an empty cell.
template <typename T>
Cell optional_cell(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell(Json());
}

}  // namespace rodeo::cli
