// The verbs of `rodeo card`, one file a group, and what they share.
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

/// `--id`, of a verb that changes or needs one card.
Option& add_card_id(Command& verb, std::string& id);
/// `--register-map`, of a verb that changes or reads a card: comes with the two above.
void add_register_map(Command& verb);
/// The function as it is opened: with the register map that --register-map names. Error cli.bad_value: it is none that is known.
Result<card::pci::FoundFunction> as_asked(card::pci::FoundFunction function);
/// `--id`, repeatable, of a verb that only looks; none: all cards.
Option& add_card_ids(Command& verb, std::vector<std::string>& ids);
/// `--watch TIME`.
Option& add_watch(Command& verb, std::optional<std::chrono::nanoseconds>& interval);

Result<std::unique_ptr<card::Card>> open_card(const std::string& id);

/// The cards that are meant, opened and asked. Emulated ones, which may stand still, are asked all at once, and one that is
/// silent is waited for once: it is out then, with its error, and the others go on.
class AskedCards {
 public:
  using Work = std::function<Result<void>(const card::CardEntry&, card::Card&)>;

  /// All cards for no ids; an id that leads nowhere is a card that failed. Error card.not_found: there are no cards at all.
  static Result<AskedCards> open(const std::vector<std::string>& ids);

  /// Calls `work` for each card that has not failed yet, on several threads. Its answers go to a place of its own: `number` is
  /// below size(), and the same card's each time.
  void ask(const std::function<Result<void>(std::size_t number, const card::CardEntry&, card::Card&)>& work);
  /// The same on this thread, one card after the other, in the order of the list.
  void each(const Work& work);

  std::size_t size() const { return cards_.size(); }
  /// nullptr: the id led to no card.
  const card::CardEntry* entry(std::size_t number) const { return cards_[number].entry ? &*cards_[number].entry : nullptr; }
  bool failed(std::size_t number) const { return cards_[number].error.has_value(); }
  /// Of one that has not failed.
  const card::Card& card(std::size_t number) const { return *cards_[number].card; }

  /// Reports those that failed on stderr. The status is `partial` then, or the error's own if no card is left.
  Result<ExitCode> outcome() const;

 private:
  struct One {
    std::optional<card::CardEntry> entry;
    std::unique_ptr<card::Card> card;
    std::optional<Error> error;
  };
  void fail(One& one, Error error);
  bool emulated(std::size_t number) const;

  std::vector<One> cards_;
};

/// Opens the cards and works on them one after the other.
Result<ExitCode> each_card(const std::vector<std::string>& ids, const AskedCards::Work& work);

/// What every verb's `--links` takes: "0,1,8-10" as a bit mask; decimal, 0 to `last`. Error cli.bad_value.
Result<std::uint32_t> link_mask(std::string_view text, unsigned last = card_registers::cru::kLinks - 1);
/// What masks and orbits are written in, as upstream's: 32 bits, hexadecimal, with or without 0x. `option` is named in the error cli.bad_value.
Result<std::uint32_t> hexadecimal_word(std::string_view text, std::string_view option);

/// The table of firmware that is built in, upstream's local list where there is one, and the user's file (may be empty).
Result<card::FirmwareTable> firmware_table(const std::string& file);

/// What register names and addresses mean on a card.
card::RegisterSpace register_space(const card::Card& card);

/// What a verb prints once, or again and again.
using Snapshot = std::function<Result<ExitCode>(Table& table)>;

/// Prints the table that `snapshot` fills; with an interval again until Ctrl-C: the screen redrawn on a terminal, JSON as one line each time.
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
