#include "card/configuration/apply.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "base/log.h"
#include "card/configuration/plan.h"
#include "card/dma/data_taking.h"
#include "card/operations/i2c.h"
#include "card/pci/lock.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;

constexpr std::chrono::milliseconds kLockPatience{10'000};

Result<std::vector<PlanItem>> plan_for(const Card& card, const CardSettings& settings) {
  if (card.type() == CardType::cru && std::holds_alternative<CruSettings>(settings))
    return plan(std::get<CruSettings>(settings), card.endpoint_or_zero());
  if (card.type() == CardType::crorc && std::holds_alternative<CrorcSettings>(settings))
    return plan(std::get<CrorcSettings>(settings));
  if (card.type() == CardType::felix && std::holds_alternative<FelixSettings>(settings))
    return plan(std::get<FelixSettings>(settings));
  return std::unexpected(Error{"card.wrong_type", fmt::format("the configuration is not for a {}", name_of(card.type())),
                               card.address().text(), "rodeo card list shows which card is which"});
}

Result<std::uint64_t> read_item(Card& card, const PlanItem& item) {
  const auto word = RODEO_TRY(card.read64(*item.reg, item.index));
  return item.whole ? word : item.field.of(static_cast<std::uint32_t>(word));
}

// The caller has locked the card, so a plain read and write are enough.
Result<void> write_item(Card& card, const PlanItem& item) {
  if (card.type() == CardType::crorc && item.module == Module::optics)
    return card.write(crorc::reg("i2c"), crorc::kQsfpEnable, item.index);
  if (item.whole) return card.write(*item.reg, item.value, item.index);
  const auto word = RODEO_TRY(card.read(*item.reg, item.index));
  return card.write(*item.reg, item.field.in(word, static_cast<std::uint32_t>(item.value)), item.index);
}

Result<void> set_bit(Card& card, const card_registers::Register& reg, std::uint32_t index, card_registers::Field field,
                     std::uint32_t value) {
  const auto word = RODEO_TRY(card.read(reg, index));
  return card.write(reg, field.in(word, value), index);
}

struct Comparison {
  std::vector<PlanItem> items;
  std::vector<std::uint64_t> now;
};

Result<Comparison> read_differences(Card& card, const CardSettings& settings) {
  auto items = RODEO_TRY(plan_for(card, settings));
  Comparison comparison{std::move(items), {}};
  for (const PlanItem& item : comparison.items) {
    const auto value = RODEO_TRY(read_item(card, item));
    comparison.now.push_back(value);
  }
  return comparison;
}

std::vector<Difference> differences(const Comparison& comparison, bool all) {
  std::vector<Difference> found;
  for (std::size_t i = 0; i < comparison.items.size(); ++i) {
    const PlanItem& item = comparison.items[i];
    if (all || comparison.now[i] != item.value)
      found.push_back({item.name, item.text(comparison.now[i]), item.text(item.value)});
  }
  return found;
}

bool touches_data_taking(Module module) {
  return module == Module::clock || module == Module::gbt || module == Module::links || module == Module::user_logic;
}

/// True if the setting changes the form of the data in the middle of a reader's run: sizes of pages, places of time frames.
/// Settings of header ids, of the trigger window and of the handling of bad headers do not.
bool changes_data(const PlanItem& item) {
  return item.module == Module::datapath && !item.name.ends_with("trigger_window") && !item.name.ends_with("drop_bad_rdh");
}

// Data taking is off while links or their clock change; afterwards the links' FIFOs are empty.
Result<void> apply_cru(Card& card, const std::vector<const PlanItem*>& items) {
  const bool stops = std::ranges::any_of(items, [](const PlanItem* item) { return touches_data_taking(item->module); });
  if (stops) {
    RODEO_TRY(set_bit(card, cru::reg("user_control"), 0, cru::kRunEnable, 0));
    RODEO_TRY(card.write(cru::reg("datapath_generator"), 0, card.endpoint_or_zero()));
  }
  for (const PlanItem* item : items) RODEO_TRY(write_item(card, *item));
  if (std::ranges::any_of(
          items, [](const PlanItem* item) { return item->module == Module::gbt || item->module == Module::clock; })) {
    for (const card_registers::Field fifo : {cru::kResetTxFifo, cru::kResetRxFifo}) {
      RODEO_TRY(set_bit(card, cru::reg("user_control"), 0, fifo, 1));
      RODEO_TRY(set_bit(card, cru::reg("user_control"), 0, fifo, 0));
    }
  }
  return {};
}

/// Rodeo does not switch the jitter cleaner to another clock (docs/reference/card-tools.md), so the cleaner may still use
/// the former one.
void warn_of_clock(Card& card, const CardSettings& settings) {
  const auto* cru = std::get_if<CruSettings>(&settings);
  const auto ttc_in_use = cru != nullptr ? ttc_clock_in_use(card) : Result<bool>(false);
  if (cru == nullptr || !ttc_in_use || *ttc_in_use == (cru->clock == Clock::ttc)) return;
  base::log_warning(
      "{}: the card is set to the {} clock, but its jitter cleaner still uses the {} clock: configure it once with "
      "ReadoutCard's "
      "roc-config, which has the clock chip's settings",
      card.address().text(), *ttc_in_use ? "local" : "TTC", *ttc_in_use ? "TTC" : "local");
}

Result<CardSettings> read_cru(Card& card) {
  CruSettings s;
  const unsigned endpoint = card.endpoint_or_zero();
  Error failure;
  bool failed = false;
  const auto get = [&](const card_registers::Register& reg, std::uint32_t index,
                       card_registers::Field field) -> std::uint32_t {
    const auto word = card.read(reg, index);
    if (!word) {
      failed = true;
      failure = word.error();
      return 0;
    }
    return field.of(*word);
  };
  s.clock = get(cru::reg("ttc_control"), 0, cru::kClockSelect) == 0 ? Clock::ttc : Clock::local;
  const std::uint32_t down = get(cru::reg("ttc_control"), 0, cru::kDownstreamData);
  s.downstream_data = down <= 2 ? static_cast<DownstreamData>(down) : DownstreamData::ctp;
  s.pon_upstream = get(cru::reg("pon_tx"), 0, cru::kPonUpstream) != 0;
  s.onu_address = get(cru::reg("onu_control"), 0, cru::kOnuAddress);
  const std::uint32_t enabled = get(cru::reg("datapath_enable"), endpoint, {0, 32});
  bool first = true;
  for (unsigned link = 0; link < cru::kLinks; ++link) {
    s.links[link] = {};
    s.links[link].enabled = (enabled >> link & 1) != 0;
    const std::uint32_t i = link + 12 * endpoint;
    const std::uint32_t mux = get(cru::reg("gbt_mux"), i / 8, {4 * (i % 8), 4});
    s.links[link].gbt_mux = mux <= 4 ? static_cast<GbtMux>(mux) : GbtMux::ttc;
    const std::uint32_t datapath = cru::datapath_index(endpoint, link);
    s.links[link].fee_id = get(cru::reg("datapath_link_ids"), datapath, cru::kFeeId);
    if (!s.links[link].enabled || !first) continue;
    first = false;
    const std::uint32_t gbt = cru::gbt_index(endpoint, link);
    s.gbt_mode = static_cast<GbtMode>(get(cru::reg("gbt_link_tx_control"), gbt, cru::kLinkMode));
    s.loopback = get(cru::reg("gbt_link_source"), gbt, cru::kLoopbackOn) != 0;
    s.datapath_mode = static_cast<DatapathMode>(get(cru::reg("datapath_link_control"), datapath, cru::kPacketMode));
    s.system_id = get(cru::reg("datapath_link_ids"), datapath, cru::kSystemId);
  }
  s.allow_rejection = get(cru::reg("datapath_flow_control"), endpoint, cru::kAllowReject) != 0;
  s.user_logic = cru::kEnableUserLogic.of(enabled) != 0;
  s.run_statistics = (enabled >> (endpoint == 0 ? 13 : 14) & 1) != 0;
  s.user_and_common_logic = cru::kEnableUserAndCommonLogic.of(enabled) != 0;
  s.dynamic_offset = cru::kEnableDynamicOffset.of(enabled) != 0;
  s.cru_id = get(cru::reg("user_control"), 0, cru::kCruId);
  s.trigger_window = get(cru::reg("datapath_trigger_window"), endpoint, {0, 16});
  s.time_frame_length = get(cru::reg("debug"), 0, cru::kTimeFrameLength);
  s.drop_bad_rdh = get(cru::reg("datapath_drop_bad_rdh"), endpoint, {0, 1}) != 0;
  if (failed) return std::unexpected(failure);
  return s;
}

Result<CardSettings> read_crorc(Card& card) {
  const auto configuration = RODEO_TRY(card.read(crorc::reg("configuration"), 0));
  const auto time_frame = RODEO_TRY(card.read(crorc::reg("time_frame"), 0));
  const auto status = RODEO_TRY(card.read(crorc::reg("link_status"), 0));
  CrorcSettings s;
  s.crorc_id = crorc::kCrorcId.of(configuration);
  s.dynamic_offset = crorc::kDynamicOffset.of(configuration) != 0;
  s.time_frame_length = crorc::kTimeFrameLength.of(time_frame);
  s.time_frame_detection = crorc::kTimeFrameDetection.of(time_frame) != 0;
  s.qsfp = crorc::kQsfpUp.of(status) != 0;
  return s;
}

Result<CardSettings> read_felix(Card& card) {
  FelixSettings s;
  for (unsigned link = 0; link < felix::kLinks; ++link) {
    const auto elinks = RODEO_TRY(card.read64(felix::reg("elinks_enabled"), link));
    const auto channel = RODEO_TRY(card.read64(felix::reg("link_channel"), link));
    s.links[link] = {elinks, static_cast<std::uint32_t>(channel & 3)};
  }
  const auto generator = RODEO_TRY(card.read64(felix::reg("generator_control")));
  s.generator = (generator & 1) != 0;
  return s;
}

}  // namespace

Result<std::vector<Difference>> compare(Card& card, const CardSettings& settings) {
  RODEO_TRY(check(settings));
  const auto comparison = RODEO_TRY(read_differences(card, settings));
  return differences(comparison, false);
}

Result<std::vector<Difference>> apply(Card& card, const CardSettings& settings, const ApplyOptions& options) {
  RODEO_TRY(check(settings));
  std::vector<pci::ByteLock> locks;
  const auto alone = RODEO_TRY(card.lock(pci::kConfigurationByte, "the card's configuration", kLockPatience));
  const auto before = RODEO_TRY(read_differences(card, settings));
  std::vector<const PlanItem*> items;
  for (std::size_t i = 0; i < before.items.size(); ++i) {
    if (options.force || before.now[i] != before.items[i].value) items.push_back(&before.items[i]);
  }
  if (items.empty()) return std::vector<Difference>{};
  const bool stops = std::ranges::any_of(items, [](const PlanItem* item) { return touches_data_taking(item->module); });
  const bool changes = std::ranges::any_of(items, [](const PlanItem* item) { return changes_data(*item); });
  if ((stops || changes) && !options.while_running) {
    auto kept = lock_out_readers(card);
    if (!kept) {
      Error error = kept.error().within(stops ? "data taking would have to stop" : "the data would change");
      error.next = "wait until it has ended; --while-running does it nevertheless";
      return std::unexpected(std::move(error));
    }
    locks = std::move(*kept);
  }
  if (card.type() == CardType::cru) {
    RODEO_TRY(apply_cru(card, items));
  } else {
    for (const PlanItem* item : items) RODEO_TRY(write_item(card, *item));
  }
  if (std::ranges::any_of(items, [](const PlanItem* item) { return item->module == Module::clock; }))
    warn_of_clock(card, settings);
  const auto after = RODEO_TRY(read_differences(card, settings));
  if (const auto left = differences(after, false); !left.empty())
    return std::unexpected(Error{"card.not_applied",
                                 fmt::format("{} of {} settings did not take their values: {} is {}, not {}", left.size(),
                                             items.size(), left.front().name, left.front().from, left.front().to),
                                 card.address().text(), "the firmware may lack this; see `rodeo card status`"});
  return differences(before, options.force);
}

Result<CardSettings> read_settings(Card& card) {
  switch (card.type()) {
    case CardType::cru: return read_cru(card);
    case CardType::crorc: return read_crorc(card);
    case CardType::felix: return read_felix(card);
    case CardType::unknown: break;
  }
  return std::unexpected(Error{"card.unknown_type", "the configuration of this card is not known", card.address().text(),
                               "registers can be read and written one by one: rodeo card reg --help"});
}

}  // namespace rodeo::card
