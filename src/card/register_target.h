// Finds a register by its name (`temperature`, `gbt_link_rx_hz[3]`) or its byte address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "card/bar.h"
#include "card_registers/register_map.h"

namespace rodeo::card {

class Card;

/// One register of one BAR. `description` is null for addresses that the map does not know.
struct RegisterTarget {
  unsigned bar = 0;
  std::uint32_t offset = 0;  // bytes
  unsigned width_bytes = 4;
  const card_registers::Register* description = nullptr;
  std::uint32_t index = 0;

  /// "gbt_link_rx_hz[3]"; empty without description.
  std::string name() const;
  /// True if reading the register changes nothing in the card.
  bool harmless_to_read() const;
};

/// The registers in which find_register() searches.
struct RegisterSpace {
  const card_registers::RegisterMap* map = nullptr;
  bool same_in_every_bar = false;  // C-RORC: every BAR has the map of BAR 0
  unsigned word_bytes = 4;         // width at addresses that the map does not know
};

/// Finds `text`: a name of the map, with [index] for rows, or a byte address (decimal or 0x...), which needs `bar`. Errors:
/// card.unknown_register (with the nearest names), card.bad_access (address not aligned; BAR missing, or not the BAR of the
/// name).
Result<RegisterTarget> find_register(const RegisterSpace& space, std::string_view text, std::optional<unsigned> bar);

/// Checks whether the target may be written: card.read_only if it is declared read-only, unless `force` is set. Call this
/// before writing a register that a user or a program chose.
Result<void> may_write(const RegisterTarget& target, bool force = false);

/// Reads the register at its width. All ones are believed only of a card that answers: else card.all_ones.
Result<std::uint64_t> read_register(Card& card, const RegisterTarget& target);
/// Writes it, if it may be written (may_write()) and the card's map is known.
Result<void> write_register(Card& card, const RegisterTarget& target, std::uint64_t value, bool force = false);
/// Changes `width` bits from `position` up, with the checks of both and under a lock against other processes. Returns the
/// value written.
Result<std::uint64_t> modify_register(Card& card, const RegisterTarget& target, unsigned position, unsigned width,
                                      std::uint64_t value, bool force = false);

/// Without checks, for measurements of a register that was checked before. Errors: those of Bar.
Result<std::uint64_t> read_register(const Bar& bar, const RegisterTarget& target);
Result<void> write_register(const Bar& bar, const RegisterTarget& target, std::uint64_t value);

/// `word` with `width` bits from `position` up replaced by `value`. Error card.bad_access if they do not fit.
Result<std::uint64_t> with_bits(const RegisterTarget& target, std::uint64_t word, unsigned position, unsigned width,
                                std::uint64_t value);

/// Parses "0x2a" or "42". Nothing unless the whole text is a number.
std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace rodeo::card
