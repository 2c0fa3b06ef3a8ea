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
  std::uint32_t blocks = 0;          ///< blocks that contain the words
  std::uint32_t blocks_written = 0;  ///< blocks that differed
};

/// Gets the words read or written up to now, and the number of all words. Returning false ends the work after the current
/// block (when reading: word).
using FlashProgress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

/// Errors: card.wrong_type, card.bad_setting (beyond the flash), card.timeout (a word took longer than 100 ms),
/// card.interrupted.
Result<std::vector<std::uint16_t>> read_flash(Card& card, std::uint32_t address, std::uint64_t words,
                                              const FlashProgress& progress = {});

/// The card's serial number, a text after the firmware; nothing if the flash has none. Errors: as above, and card.locked.
Result<std::optional<std::uint32_t>> serial_of_flash(Card& card);

/// Writes from `address`, the start of a block: compares each block, erases and programs only blocks that differ, and reads
/// them back. Holds the card's configuration lock (card.locked if another process has it). Errors: as above, and card.flash
/// (the chip reports a failure, or returns other words). After an error the block that it names is unusable: write again
/// before the card is switched off.
Result<FlashReport> write_flash(Card& card, std::uint32_t address, std::span<const std::uint16_t> words,
                                const FlashProgress& progress = {});

}  // namespace rodeo::card
