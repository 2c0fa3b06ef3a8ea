// The source interface unit (SIU) at the far end of a C-RORC's link (DDL): reads its status, resets it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

struct SiuStatus {
  std::uint32_t word = 0;               ///< the status word as received
  std::vector<std::string> conditions;  ///< the status in words; empty: nothing to report
};

/// Asks the SIU of one link (channel 0 to 5); waits at most 100 ms. Errors: card.wrong_type, card.link_down, card.timeout,
/// card.ddl (the answer is not a status).
Result<SiuStatus> read_siu_status(Card& card, unsigned channel);
/// Resets the SIU of one link. Errors as above.
Result<void> reset_siu(Card& card, unsigned channel);

}  // namespace rodeo::card
