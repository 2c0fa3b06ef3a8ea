#include "card/configuration/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

/// Upstream's name: Rodeo's in camel case, with these exceptions; empty if upstream has no such setting.
std::string upstream_name(std::string_view name) {
  static const std::map<std::string_view, std::string> kOthers{{"user_logic", "userLogicEnabled"},
                                                               {"run_statistics", "runStatsEnabled"},
                                                               {"user_and_common_logic", "userAndCommonLogicEnabled"},
                                                               {"trigger_window", "triggerWindowSize"},
                                                               {"drop_bad_rdh", "dropBadRdhEnabled"},
                                                               {"time_frame_detection", "timeFrameDetectionEnabled"},
                                                               {"qsfp", ""},
                                                               {"generator", ""},
                                                               {"elinks", ""},
                                                               {"channel", ""}};
  if (const auto other = kOthers.find(name); other != kOthers.end()) return other->second;
  std::string camel;
  for (std::size_t i = 0; i < name.size(); ++i)
    camel += name[i] == '_' ? static_cast<char>(std::toupper(static_cast<unsigned char>(name[++i]))) : name[i];
  return camel;
}

template <typename Struct>
std::vector<SettingField<Struct>> by_name(const Settings<Struct>& settings) {
  static const std::set<std::string_view> kHexadecimal{"system_id", "cru_id", "fee_id", "crorc_id", "elinks"};
  std::vector<SettingField<Struct>> fields;
  for (Setting<Struct>& one : settings.list()) {
    const std::string name = one.key.name;
    fields.push_back({std::move(one), upstream_name(name), kHexadecimal.contains(name)});
  }
  return fields;
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::unexpected<Error> bad(std::string what) {
  return std::unexpected(Error{"card.bad_configuration", std::move(what), "",
                               "`rodeo card config --help` and the configuration reference list what can be set"});
}

template <typename Struct>
Result<void> check_ranges(std::span<const SettingField<Struct>> fields, const Struct& settings, std::string_view of) {
  Struct copy = settings;
  for (const auto& one : fields) {
    const std::string text = one.text(settings);
    if (!one.parse(copy, text)) return bad(fmt::format("{}{} cannot be {}", of, one.key.name, text));
  }
  return {};
}

}  // namespace

template <typename Struct>
std::string SettingField<Struct>::text(const Struct& settings) const {
  const Parameters::Value value = this->get(settings);
  return hexadecimal ? fmt::format("{:#x}", static_cast<std::uint64_t>(std::get<std::int64_t>(value)))
                     : setting_text(this->key.type, value);
}

template <typename Struct>
Result<void> SettingField<Struct>::parse(Struct& settings, std::string_view text, std::string_view written) const {
  const auto& [name, type, fallback, help, minimum, maximum, choices, required] = this->key;
  if (written.empty()) written = text;
  Parameters value;
  if (type == KeyType::boolean) {
    const bool truth = equal_in_any_case(text, "true");
    if (!truth && !equal_in_any_case(text, "false")) return bad(fmt::format("{} is true or false, not {}", name, written));
    value.set(name, truth);
  } else if (type == KeyType::choice) {
    const auto found = std::ranges::find_if(choices, [&](const auto& word) { return equal_in_any_case(text, word); });
    if (found == choices.end()) {
      std::string all;
      for (const std::string& word : choices) all += (all.empty() ? "" : ", ") + word;
      return bad(fmt::format("{} is one of {}, not {}", name, all, written));
    }
    value.set(name, *found);
  } else {
    const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = text.substr(prefixed ? 2 : 0);
    const std::uint64_t most = maximum < 0x1p64 ? static_cast<std::uint64_t>(maximum) : ~std::uint64_t{0};
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, hexadecimal || prefixed ? 16 : 10);
    if (error != std::errc{} || end != digits.data() + digits.size() || number > most)
      return bad(hexadecimal ? fmt::format("{} is a hexadecimal number up to {:#x}, not {}", name, most, written)
                             : fmt::format("{} is a number from 0 to {}, not {}", name, most, written));
    value.set(name, static_cast<std::int64_t>(number));
  }
  this->set(settings, value);
  return {};
}

template struct SettingField<CruSettings>;
template struct SettingField<CruLinkSettings>;
template struct SettingField<CrorcSettings>;
template struct SettingField<FelixSettings>;
template struct SettingField<FelixLinkSettings>;

std::span<const SettingField<CruSettings>> cru_fields() {
  using C = CruSettings;
  static const auto fields = by_name<C>({
      setting(&C::clock, "clock", {{"local", Clock::local}, {"ttc", Clock::ttc}},
              "Clock of the card: its own, or that of the trigger system"),
      setting(&C::pon_upstream, "pon_upstream", "The card also sends on the PON"),
      setting(&C::onu_address, "onu_address", "Address of the card's ONU on the PON", {.maximum = 255}),
      setting(&C::downstream_data, "downstream_data",
              {{"ctp", DownstreamData::ctp}, {"pattern", DownstreamData::pattern}, {"midtrg", DownstreamData::midtrg}},
              "Data sent to the front-ends"),
      setting(&C::gbt_enabled, "gbt_enabled", "Configure the links; false leaves them as they are"),
      setting(&C::gbt_mode, "gbt_mode", {{"gbt", GbtMode::gbt}, {"wb", GbtMode::wide_bus}},
              "Frames of the links: GBT with error correction, or wide bus"),
      setting(&C::loopback, "loopback", "The links receive what they send"),
      setting(&C::datapath_mode, "datapath_mode", {{"packet", DatapathMode::packet}, {"streaming", DatapathMode::streaming}},
              "Packets as the front-ends cut them, or a stream cut by the card"),
      setting(&C::allow_rejection, "allow_rejection", "Heartbeat frames may be rejected"),
      setting(&C::system_id, "system_id", "System id in the headers", {.maximum = 0xff}),
      setting(&C::user_logic, "user_logic", "Data of the user logic are read, as link 15"),
      setting(&C::run_statistics, "run_statistics", "Run statistics are read, as link 13 or 14"),
      setting(&C::user_and_common_logic, "user_and_common_logic", "User logic and common logic together; needs user_logic"),
      setting(&C::cru_id, "cru_id", "Number of the CRU in the headers", {.maximum = 0xfff}),
      setting(&C::trigger_window, "trigger_window", "Bunch crossings after a trigger that belong to it", {.maximum = 65535}),
      setting(&C::dynamic_offset, "dynamic_offset", "Pages of varying length instead of 8 KiB each"),
      setting(&C::time_frame_length, "time_frame_length", "Orbits of a time frame", {.maximum = 0xfff}),
      setting(&C::drop_bad_rdh, "drop_bad_rdh", "The card drops pages whose header is wrong"),
  });
  return fields;
}

std::span<const SettingField<CruLinkSettings>> cru_link_fields() {
  using C = CruLinkSettings;
  using M = GbtMux;
  static const auto fields = by_name<C>({
      setting(&C::enabled, "enabled", "The link is read"),
      setting(&C::gbt_mux, "gbt_mux",
              {{"ttc", M::ttc}, {"ddg", M::ddg}, {"swt", M::swt}, {"ttcup", M::ttcup}, {"ul", M::ul}},
              "Data sent down the link"),
      setting(&C::fee_id, "fee_id", "FEE id in the headers", {.maximum = 0xffff}),
  });
  return fields;
}

std::span<const SettingField<CrorcSettings>> crorc_fields() {
  using C = CrorcSettings;
  static const auto fields = by_name<C>({
      setting(&C::qsfp, "qsfp", "The optical module is switched on"),
      setting(&C::dynamic_offset, "dynamic_offset", "Pages of varying length instead of 8 KiB each"),
      setting(&C::crorc_id, "crorc_id", "Number of the C-RORC in the headers", {.maximum = 0xfff}),
      setting(&C::time_frame_length, "time_frame_length", "Orbits of a time frame", {.maximum = 256}),
      setting(&C::time_frame_detection, "time_frame_detection", "The card finds the begin of time frames"),
  });
  return fields;
}

std::span<const SettingField<FelixSettings>> felix_fields() {
  static const auto fields =
      by_name<FelixSettings>({setting(&FelixSettings::generator, "generator", "The internal generator feeds the links")});
  return fields;
}

std::span<const SettingField<FelixLinkSettings>> felix_link_fields() {
  using C = FelixLinkSettings;
  static const auto fields = by_name<C>({
      setting(&C::elinks, "elinks", "E-links that are read, one bit each (e-group x 8 + e-path)"),
      setting(&C::channel, "channel", "DMA channel that takes the link's blocks", {.maximum = 3}),
  });
  return fields;
}

Result<void> check(const CruSettings& settings) {
  RODEO_TRY(check_ranges(cru_fields(), settings, ""));
  for (std::size_t i = 0; i < settings.links.size(); ++i)
    RODEO_TRY(check_ranges(cru_link_fields(), settings.links[i], fmt::format("link {} ", i)));
  if (settings.user_and_common_logic && !settings.user_logic) return bad("user_and_common_logic needs user_logic");
  return {};
}

Result<void> check(const CrorcSettings& settings) { return check_ranges(crorc_fields(), settings, ""); }

Result<void> check(const FelixSettings& settings) {
  for (std::size_t i = 0; i < settings.links.size(); ++i)
    RODEO_TRY(check_ranges(felix_link_fields(), settings.links[i], fmt::format("link {} ", i)));
  return check_ranges(felix_fields(), settings, "");
}

Result<void> check(const CardSettings& settings) {
  return std::visit([](const auto& one) { return check(one); }, settings);
}

}  // namespace rodeo::card
