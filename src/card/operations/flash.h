// The flash memory of a C-RORC, which holds its firmware: 16-bit words in blocks of 65536.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

struct FlashReport {
  std::uint32_t blocks = 0;          ///< that the words lie in
  std::uint32_t blocks_written = 0;  ///< those that differed
};

/// Words read or written so far, of how many; returning false ends the work after the current block (or word, when reading).
using FlashProgress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

/// Errors: card.wrong_type, card.bad_setting (beyond the flash), card.timeout (a word took longer than 100 ms), card.interrupted.
Result<std::vector<std::uint16_t>> read_flash(Card& card, std::uint32_t address, std::uint64_t words,
                                              const FlashProgress& progress = {});

/// The card's serial number, which stands behind the firmware as a text. Nothing: there is none. Errors: as above, card.locked.
Result<std::optional<std::uint32_t>> serial_of_flash(Card& card);

/// Writes from `address` on, which begins a block: compares each block first, erases and programs only what differs, and reads it back. No other process
/// configures the card meanwhile (card.locked if one does). Errors: as above, and card.flash (the chip reports failure, or gives back something else).
/// An error leaves the block it names unusable: write again before the card is switched off.
Result<FlashReport> write_flash(Card& card, std::uint32_t address, std::span<const std::uint16_t> words,
                                const FlashProgress& progress = {});

}  // namespace rodeo::card
