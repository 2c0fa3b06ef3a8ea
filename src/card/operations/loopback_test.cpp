#include "card/operations/loopback_test.h"

#include <chrono>
#include <thread>
#include <utility>

#include "card/operations/require_type.h"
#include "card_registers/cru.h"

namespace rodeo::card {

namespace cru = card_registers::cru;
using card_registers::Register;
using cru::reg;

namespace {

// gbt_link_source, as upstream writes it.
constexpr std::uint32_t kGenerator = 1U << 1 | 1U << 2;
constexpr std::uint32_t kInternalLoop = 1U << 4;
constexpr std::uint32_t kStatic = 1U << 5;
constexpr std::uint32_t kClearErrors = 1U << 6;
constexpr std::uint32_t kCounter8Bit = 1U << 7;  // gbt_wrapper_test
constexpr std::uint32_t kAllBits = UINT32_MAX;

template <typename Visit>
Result<void> each_link(const Card& card, std::uint32_t links, Visit visit) {
  for (unsigned link = 0; link < cru::kLinks; ++link) {
    if ((links >> link & 1) == 0) continue;
    RODEO_TRY(visit(link, cru::gbt_index(card.endpoint_or_zero(), link)));
  }
  return {};
}

}  // namespace

Result<LoopbackTest> LoopbackTest::start(Card& card, const LoopbackSettings& settings) {
  RODEO_TRY(require_type(card, CardType::cru, "the loopback test"));
  if (settings.links == 0 || settings.links >= 1U << cru::kLinks)
    return std::unexpected(Error{"card.bad_setting", "the loopback test needs links from 0 to 11", {}, "--links 0-11"});
  LoopbackTest test(card, settings.links);  // its destructor restores the registers after a failure
  RODEO_TRY(test.take_over(settings));
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  RODEO_TRY(test.clear());
  return test;
}

LoopbackTest::LoopbackTest(LoopbackTest&& other) noexcept
    : card_(other.card_), links_(other.links_), saved_(std::exchange(other.saved_, {})) {}

LoopbackTest::~LoopbackTest() {
  // Restore in reverse order; stop if the card no longer answers.
  while (!saved_.empty()) {
    const Saved& one = saved_.back();
    if (!card_->write(*one.where, one.value, one.index)) break;
    saved_.pop_back();
  }
}

Result<void> LoopbackTest::set(const Register& where, std::uint32_t index, std::uint32_t mask, std::uint32_t value) {
  const auto before = RODEO_TRY(card_->read(where, index));
  saved_.push_back({&where, index, before});
  return card_->write(where, (before & ~mask) | (value & mask), index);
}

Result<void> LoopbackTest::take_over(const LoopbackSettings& settings) {
  const std::uint32_t source =
      kGenerator | (settings.internal ? kInternalLoop : 0) | (settings.static_pattern ? kStatic : 0);
  RODEO_TRY(set(reg("gbt_wrapper_test"), 0, kCounter8Bit, settings.counter_8_bit ? kCounter8Bit : 0));
  return each_link(*card_, links_, [&](unsigned, std::uint32_t index) -> Result<void> {
    RODEO_TRY(set(reg("gbt_link_mask_low"), index, kAllBits, settings.mask_low));
    RODEO_TRY(set(reg("gbt_link_mask_medium"), index, kAllBits, settings.mask_medium));
    RODEO_TRY(set(reg("gbt_link_mask_high"), index, kAllBits, settings.mask_high));
    return set(reg("gbt_link_source"), index, kGenerator | kInternalLoop | kStatic, source);
  });
}

Result<void> LoopbackTest::clear() {
  return each_link(*card_, links_, [&](unsigned, std::uint32_t index) -> Result<void> {
    const auto source = RODEO_TRY(card_->read(reg("gbt_link_source"), index));
    RODEO_TRY(card_->write(reg("gbt_link_source"), source | kClearErrors, index));
    return card_->write(reg("gbt_link_source"), source & ~kClearErrors, index);
  });
}

Result<std::vector<LoopbackStatus>> LoopbackTest::status() const { return loopback_status(*card_, links_); }

Result<std::vector<LoopbackStatus>> loopback_status(Card& card, std::uint32_t links) {
  RODEO_TRY(require_type(card, CardType::cru, "the loopback test"));
  std::vector<LoopbackStatus> all;
  RODEO_TRY(each_link(card, links, [&](unsigned link, std::uint32_t index) -> Result<void> {
    const auto status = RODEO_TRY(card.read(reg("gbt_link_status"), index));
    const auto rx_errors = RODEO_TRY(card.read(reg("gbt_link_rx_errors"), index));
    const auto fec_errors = RODEO_TRY(card.read(reg("gbt_link_fec_errors"), index));
    all.push_back({link, cru::kPllLocked.of(status) != 0, cru::kRxLocked.of(status) != 0, cru::kDataUp.of(status) != 0,
                   cru::kPhyUp.of(status) != 0, rx_errors, fec_errors});
    return {};
  }));
  return all;
}

}  // namespace rodeo::card
