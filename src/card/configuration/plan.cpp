#include "card/configuration/plan.h"

#include <fmt/core.h>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;
using card_registers::Field;

std::string flag(std::uint64_t value) { return value != 0 ? "true" : "false"; }
std::string decimal(std::uint64_t value) { return fmt::format("{}", value); }
std::string clock(std::uint64_t value) { return value == 0 ? "ttc" : value == 2 ? "local" : decimal(value); }
std::string downstream(std::uint64_t value) {
  return value == 0 ? "ctp" : value == 1 ? "pattern" : value == 2 ? "midtrg" : decimal(value);
}
std::string gbt_mode(std::uint64_t value) { return value == 0 ? "gbt" : "wb"; }
std::string datapath_mode(std::uint64_t value) { return value == 0 ? "streaming" : "packet"; }
std::string mux(std::uint64_t value) {
  constexpr std::array<const char*, 5> kNames{"ttc", "ddg", "swt", "ttcup", "ul"};
  return value < kNames.size() ? kNames[value] : decimal(value);
}

}  // namespace

std::string PlanItem::text(std::uint64_t of) const { return show != nullptr ? show(of) : fmt::format("{:#x}", of); }

std::vector<PlanItem> plan(const CruSettings& s, unsigned endpoint) {
  std::vector<PlanItem> items;
  const auto add = [&](Module module, std::string name, const card_registers::Register& reg, std::uint32_t index,
                       Field field, auto value, std::string (*show)(std::uint64_t)) {
    items.push_back({module, std::move(name), &reg, index, field, false, static_cast<std::uint64_t>(value), show});
  };
  add(Module::clock, "clock", cru::reg("ttc_control"), 0, cru::kClockSelect, s.clock, clock);
  add(Module::clock, "pon_upstream", cru::reg("pon_tx"), 0, cru::kPonUpstream, s.pon_upstream, flag);
  add(Module::clock, "onu_address", cru::reg("onu_control"), 0, cru::kOnuAddress, s.onu_address, decimal);
  add(Module::downstream, "downstream_data", cru::reg("ttc_control"), 0, cru::kDownstreamData, s.downstream_data,
      downstream);
  if (s.gbt_enabled) {
    for (unsigned link = 0; link < cru::kLinks; ++link) {
      if (!s.links[link].enabled) continue;
      const std::uint32_t gbt = cru::gbt_index(endpoint, link);
      const std::uint32_t i = link + 12 * endpoint;
      add(Module::gbt, fmt::format("link {} gbt_mux", link), cru::reg("gbt_mux"), i / 8, Field{4 * (i % 8), 4},
          s.links[link].gbt_mux, mux);
      add(Module::gbt, fmt::format("link {} gbt_mode (send)", link), cru::reg("gbt_link_tx_control"), gbt, cru::kLinkMode,
          s.gbt_mode, gbt_mode);
      add(Module::gbt, fmt::format("link {} gbt_mode (receive)", link), cru::reg("gbt_link_rx_control"), gbt, cru::kLinkMode,
          s.gbt_mode, gbt_mode);
      add(Module::gbt, fmt::format("link {} loopback", link), cru::reg("gbt_link_source"), gbt, cru::kLoopbackOn, s.loopback,
          flag);
    }
    for (unsigned link = 0; link < cru::kLinks; ++link) {
      const std::uint32_t datapath = cru::datapath_index(endpoint, link);
      add(Module::links, fmt::format("link {} enabled", link), cru::reg("datapath_enable"), endpoint, Field{link, 1},
          s.links[link].enabled, flag);
      if (!s.links[link].enabled) continue;
      add(Module::links, fmt::format("link {} datapath_mode", link), cru::reg("datapath_link_control"), datapath,
          cru::kPacketMode, s.datapath_mode, datapath_mode);
      add(Module::links, fmt::format("link {} longest raw packet", link), cru::reg("datapath_link_control"), datapath,
          cru::kRawMaxLength, cru::kFullPage, nullptr);
      add(Module::links, fmt::format("link {} system_id", link), cru::reg("datapath_link_ids"), datapath, cru::kSystemId,
          s.system_id, nullptr);
      add(Module::links, fmt::format("link {} fee_id", link), cru::reg("datapath_link_ids"), datapath, cru::kFeeId,
          s.links[link].fee_id, nullptr);
    }
    add(Module::links, "allow_rejection", cru::reg("datapath_flow_control"), endpoint, cru::kAllowReject, s.allow_rejection,
        flag);
  }
  const unsigned statistics = endpoint == 0 ? 13 : 14;
  add(Module::user_logic, "user_logic", cru::reg("datapath_enable"), endpoint, cru::kEnableUserLogic, s.user_logic, flag);
  if (s.user_logic) {
    const std::uint32_t datapath = cru::datapath_index(endpoint, cru::kUserLogicLink);
    add(Module::user_logic, "datapath_mode of user logic", cru::reg("datapath_link_control"), datapath, cru::kPacketMode,
        s.datapath_mode, datapath_mode);
    add(Module::user_logic, "longest raw packet of user logic", cru::reg("datapath_link_control"), datapath,
        cru::kRawMaxLength, cru::kFullPage, nullptr);
  }
  add(Module::user_logic, "run_statistics", cru::reg("datapath_enable"), endpoint, Field{statistics, 1}, s.run_statistics,
      flag);
  if (s.user_logic || s.run_statistics)
    add(Module::user_logic, "system_id of virtual links", cru::reg("virtual_link_ids"), 0, cru::kSystemId, s.system_id,
        nullptr);
  add(Module::user_logic, "user_and_common_logic", cru::reg("datapath_enable"), endpoint, cru::kEnableUserAndCommonLogic,
      s.user_and_common_logic, flag);
  add(Module::identity, "cru_id", cru::reg("user_control"), 0, cru::kCruId, s.cru_id, nullptr);
  add(Module::datapath, "trigger_window", cru::reg("datapath_trigger_window"), endpoint, Field{0, 16}, s.trigger_window,
      decimal);
  add(Module::datapath, "dynamic_offset", cru::reg("datapath_enable"), endpoint, cru::kEnableDynamicOffset, s.dynamic_offset,
      flag);
  add(Module::datapath, "time_frame_length", cru::reg("debug"), 0, cru::kTimeFrameLength, s.time_frame_length, decimal);
  add(Module::datapath, "drop_bad_rdh", cru::reg("datapath_drop_bad_rdh"), endpoint, Field{0, 1}, s.drop_bad_rdh, flag);
  return items;
}

std::vector<PlanItem> plan(const CrorcSettings& s) {
  std::vector<PlanItem> items;
  for (unsigned channel = 0; channel < crorc::kLinks; ++channel) {
    const auto add = [&](Module module, const char* name, const card_registers::Register& reg, Field field, auto value,
                         std::string (*show)(std::uint64_t)) {
      items.push_back({module, fmt::format("channel {} {}", channel, name), &reg, channel, field, false,
                       static_cast<std::uint64_t>(value), show});
    };
    if (s.qsfp) add(Module::optics, "qsfp", crorc::reg("link_status"), crorc::kQsfpUp, 1U, flag);
    add(Module::datapath, "dynamic_offset", crorc::reg("configuration"), crorc::kDynamicOffset, s.dynamic_offset, flag);
    add(Module::identity, "crorc_id", crorc::reg("configuration"), crorc::kCrorcId, s.crorc_id, nullptr);
    add(Module::datapath, "time_frame_length", crorc::reg("time_frame"), crorc::kTimeFrameLength, s.time_frame_length,
        decimal);
    add(Module::datapath, "time_frame_detection", crorc::reg("time_frame"), crorc::kTimeFrameDetection,
        s.time_frame_detection, flag);
  }
  return items;
}

std::vector<PlanItem> plan(const FelixSettings& s) {
  std::vector<PlanItem> items;
  for (unsigned link = 0; link < felix::kLinks; ++link) {
    items.push_back({Module::links,
                     fmt::format("link {} elinks", link),
                     &felix::reg("elinks_enabled"),
                     link,
                     {},
                     true,
                     s.links[link].elinks,
                     nullptr});
    items.push_back({Module::links,
                     fmt::format("link {} channel", link),
                     &felix::reg("link_channel"),
                     link,
                     {},
                     true,
                     s.links[link].channel,
                     decimal});
  }
  items.push_back(
      {Module::datapath, "generator", &felix::reg("generator_control"), 0, {0, 1}, false, s.generator ? 1U : 0U, flag});
  return items;
}

}  // namespace rodeo::card
