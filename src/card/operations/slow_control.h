// Slow control of front-ends through a CRU's link: GBT-SCA, single word transactions (SWT), IC of a GBTx. The registers and
// their order are those of ALICE's public ALF.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

/// A frame to or from a slow control adapter: channel 31:24, transaction 23:16; 7:0 hold the command of a request, the error
/// flags of an answer.
struct ScaFrame {
  std::uint32_t command = 0;
  std::uint32_t data = 0;
  bool operator==(const ScaFrame&) const = default;
};

/// 76 bits.
struct SwtWord {
  std::uint32_t low = 0;
  std::uint32_t medium = 0;
  std::uint16_t high = 0;  ///< 12 bits
  bool operator==(const SwtWord&) const = default;
};

// `link` is a link of the card's endpoint, 0 to 11. For any thread: each call holds the card's lock for slow control.
// Errors: card.wrong_type, card.bad_setting (an impossible link, word or transaction), card.slow_control (no answer in time,
// or the answer is an error), and those of the lock and the card.

/// Sends a frame and returns the answer; waits up to 100 ms for it. The transaction MUST be neither 0 nor 255.
Result<ScaFrame> exchange_sca(Card& card, unsigned link, ScaFrame request);

Result<void> write_swt(Card& card, unsigned link, SwtWord word);
/// The waiting words, at most `most`; waits up to `patience` for the first. No word is not an error.
Result<std::vector<SwtWord>> read_swt(Card& card, unsigned link, std::size_t most, std::chrono::milliseconds patience);

/// Writes or reads a register of the link's GBTx. Takes 10 ms.
Result<void> write_ic(Card& card, unsigned link, std::uint16_t address, std::uint8_t value);
Result<std::uint8_t> read_ic(Card& card, unsigned link, std::uint16_t address);

/// Resets the link's three cores; waiting words are lost.
Result<void> reset_slow_control(Card& card, unsigned link);

}  // namespace rodeo::card
