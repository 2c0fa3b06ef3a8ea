// GBT loopback test of a CRU: the card sends a pattern down its links, compares what comes back, and counts errors.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

struct LoopbackSettings {
  std::uint32_t links = 0xfff;           ///< bit per link of the endpoint
  bool internal = false;                 ///< loop back inside the card; else the fibre or the other end must loop back
  bool static_pattern = false;           ///< send a static pattern; else a counter
  bool counter_8_bit = false;            ///< the counter has 8 bits; else 30
  std::uint32_t mask_high = UINT32_MAX;  ///< bits that are compared
  std::uint32_t mask_medium = UINT32_MAX;
  std::uint32_t mask_low = UINT32_MAX;
};

/// The state of one link. The card counts since clear(), in 32 bits.
struct LoopbackStatus {
  unsigned link = 0;
  bool pll_locked = false;
  bool rx_locked = false;
  bool data_up = false;
  bool phy_up = false;
  std::uint32_t rx_errors = 0;
  std::uint32_t fec_errors = 0;
};

/// Takes over the links while the object lives, then restores them. For one thread. The card must outlive the object.
class LoopbackTest {
 public:
  /// Sends the pattern and clears the error counters; waits 100 ms for the receivers. Errors: card.wrong_type,
  /// card.bad_setting, those of the card.
  static Result<LoopbackTest> start(Card& card, const LoopbackSettings& settings);
  LoopbackTest(LoopbackTest&& other) noexcept;
  LoopbackTest& operator=(LoopbackTest&&) = delete;
  ~LoopbackTest();

  Result<void> clear();
  Result<std::vector<LoopbackStatus>> status() const;

 private:
  struct Saved {
    const card_registers::Register* where;
    std::uint32_t index;
    std::uint32_t value;
  };
  LoopbackTest(Card& card, std::uint32_t links) : card_(&card), links_(links) {}
  Result<void> take_over(const LoopbackSettings& settings);
  Result<void> set(const card_registers::Register& where, std::uint32_t index, std::uint32_t mask, std::uint32_t value);

  Card* card_;
  std::uint32_t links_;
  std::vector<Saved> saved_;
};

/// The status alone, for links that another process tests.
Result<std::vector<LoopbackStatus>> loopback_status(Card& card, std::uint32_t links);

}  // namespace rodeo::card
