#include "card/configuration/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

template <typename Member>
struct MemberOf;
template <typename S, typename T>
struct MemberOf<T S::*> {
  using Struct = S;
  using Type = T;
};

template <auto Member>
auto field(std::string_view name, std::string_view upstream, auto kind, std::uint64_t maximum,
           std::vector<std::pair<std::string_view, std::uint64_t>> choices, std::string_view help) {
  using Struct = typename MemberOf<decltype(Member)>::Struct;
  using Type = typename MemberOf<decltype(Member)>::Type;
  SettingField<Struct> made;
  made.name = name;
  made.upstream = upstream;
  made.kind = static_cast<typename SettingField<Struct>::Kind>(kind);
  made.maximum = maximum;
  made.choices = std::move(choices);
  made.help = help;
  made.get = [](const Struct& settings) { return static_cast<std::uint64_t>(settings.*Member); };
  made.set = [](Struct& settings, std::uint64_t value) { settings.*Member = static_cast<Type>(value); };
  return made;
}

using Kind = SettingField<CruSettings>::Kind;

template <auto Member>
auto boolean(std::string_view name, std::string_view upstream, std::string_view help) {
  return field<Member>(name, upstream, Kind::boolean, 1, {}, help);
}
template <auto Member>
auto number(std::string_view name, std::string_view upstream, std::uint64_t maximum, std::string_view help) {
  return field<Member>(name, upstream, Kind::number, maximum, {}, help);
}
template <auto Member>
auto hexadecimal(std::string_view name, std::string_view upstream, std::uint64_t maximum, std::string_view help) {
  return field<Member>(name, upstream, Kind::hexadecimal, maximum, {}, help);
}
template <auto Member>
auto choice(std::string_view name, std::string_view upstream,
            std::vector<std::pair<std::string_view, std::uint64_t>> choices, std::string_view help) {
  return field<Member>(name, upstream, Kind::choice, 0, std::move(choices), help);
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
  for (const auto& one : fields) {
    const std::uint64_t value = one.get(settings);
    const bool known = one.kind != SettingField<Struct>::Kind::choice
                           ? value <= one.maximum
                           : std::ranges::any_of(one.choices, [&](const auto& pair) { return pair.second == value; });
    if (!known) return bad(fmt::format("{}{} cannot be {}", of, one.name, value));
  }
  return {};
}

}  // namespace

template <typename Struct>
std::string SettingField<Struct>::text(const Struct& settings) const {
  const std::uint64_t value = get(settings);
  switch (kind) {
    case Kind::boolean: return value != 0 ? "true" : "false";
    case Kind::hexadecimal: return fmt::format("{:#x}", value);
    case Kind::number: return fmt::format("{}", value);
    case Kind::choice: break;
  }
  for (const auto& [word, number] : choices) {
    if (number == value) return std::string(word);
  }
  return fmt::format("{}", value);
}

template <typename Struct>
Result<void> SettingField<Struct>::parse(Struct& settings, std::string_view text, std::string_view written) const {
  if (written.empty()) written = text;
  std::uint64_t value = 0;
  switch (kind) {
    case Kind::boolean:
      if (!equal_in_any_case(text, "true") && !equal_in_any_case(text, "false"))
        return bad(fmt::format("{} is true or false, not {}", name, written));
      set(settings, equal_in_any_case(text, "true") ? 1 : 0);
      return {};
    case Kind::choice: {
      std::string all;
      for (const auto& [word, number] : choices) {
        if (equal_in_any_case(text, word)) {
          set(settings, number);
          return {};
        }
        all += (all.empty() ? "" : ", ") + std::string(word);
      }
      return bad(fmt::format("{} is one of {}, not {}", name, all, written));
    }
    case Kind::number:
    case Kind::hexadecimal: break;
  }
  std::string_view digits = text;
  int base = kind == Kind::hexadecimal ? 16 : 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size() || value > maximum)
    return bad(kind == Kind::hexadecimal
                   ? fmt::format("{} is a hexadecimal number up to {:#x}, not {}", name, maximum, written)
                   : fmt::format("{} is a number from 0 to {}, not {}", name, maximum, written));
  set(settings, value);
  return {};
}

template struct SettingField<CruSettings>;
template struct SettingField<CruLinkSettings>;
template struct SettingField<CrorcSettings>;
template struct SettingField<FelixSettings>;
template struct SettingField<FelixLinkSettings>;

std::span<const SettingField<CruSettings>> cru_fields() {
  using C = CruSettings;
  static const std::vector<SettingField<C>> fields{
      choice<&C::clock>("clock", "clock", {{"local", 2}, {"ttc", 0}},
                        "What the card runs on: its own clock, or that of the trigger system"),
      boolean<&C::pon_upstream>("pon_upstream", "ponUpstream", "The card sends on the PON, too"),
      number<&C::onu_address>("onu_address", "onuAddress", 255, "Address of the card's ONU on the PON"),
      choice<&C::downstream_data>("downstream_data", "downstreamData", {{"ctp", 0}, {"pattern", 1}, {"midtrg", 2}},
                                  "What is sent down to the front-ends"),
      boolean<&C::gbt_enabled>("gbt_enabled", "gbtEnabled", "Configure the links; false leaves them as they are"),
      choice<&C::gbt_mode>("gbt_mode", "gbtMode", {{"gbt", 0}, {"wb", 1}},
                           "Frames of the links: GBT with error correction, or wide bus"),
      boolean<&C::loopback>("loopback", "loopback", "The links receive what they send"),
      choice<&C::datapath_mode>("datapath_mode", "datapathMode", {{"packet", 1}, {"streaming", 0}},
                                "Packets as the front-ends cut them, or a stream cut by the card"),
      boolean<&C::allow_rejection>("allow_rejection", "allowRejection", "Heartbeat frames may be rejected"),
      hexadecimal<&C::system_id>("system_id", "systemId", 0xff, "System id in the headers"),
      boolean<&C::user_logic>("user_logic", "userLogicEnabled", "Data of the user logic are read, as link 15"),
      boolean<&C::run_statistics>("run_statistics", "runStatsEnabled", "Run statistics are read, as link 13 or 14"),
      boolean<&C::user_and_common_logic>("user_and_common_logic", "userAndCommonLogicEnabled",
                                         "User logic and common logic together; needs user_logic"),
      hexadecimal<&C::cru_id>("cru_id", "cruId", 0xfff, "Number of the CRU in the headers"),
      number<&C::trigger_window>("trigger_window", "triggerWindowSize", 65535,
                                 "Bunch crossings after a trigger that belong to it"),
      boolean<&C::dynamic_offset>("dynamic_offset", "dynamicOffset", "Pages of varying length instead of 8 KiB each"),
      number<&C::time_frame_length>("time_frame_length", "timeFrameLength", 0xfff, "Orbits of a time frame"),
      boolean<&C::drop_bad_rdh>("drop_bad_rdh", "dropBadRdhEnabled", "The card drops pages whose header is wrong"),
  };
  return fields;
}

std::span<const SettingField<CruLinkSettings>> cru_link_fields() {
  using C = CruLinkSettings;
  static const std::vector<SettingField<C>> fields{
      boolean<&C::enabled>("enabled", "enabled", "The link is read"),
      choice<&C::gbt_mux>("gbt_mux", "gbtMux", {{"ttc", 0}, {"ddg", 1}, {"swt", 2}, {"ttcup", 3}, {"ul", 4}},
                          "What is sent down the link"),
      hexadecimal<&C::fee_id>("fee_id", "feeId", 0xffff, "FEE id in the headers"),
  };
  return fields;
}

std::span<const SettingField<CrorcSettings>> crorc_fields() {
  using C = CrorcSettings;
  static const std::vector<SettingField<C>> fields{
      boolean<&C::qsfp>("qsfp", "", "The optical module is switched on"),
      boolean<&C::dynamic_offset>("dynamic_offset", "dynamicOffset", "Pages of varying length instead of 8 KiB each"),
      hexadecimal<&C::crorc_id>("crorc_id", "crorcId", 0xfff, "Number of the C-RORC in the headers"),
      number<&C::time_frame_length>("time_frame_length", "timeFrameLength", 256, "Orbits of a time frame"),
      boolean<&C::time_frame_detection>("time_frame_detection", "timeFrameDetectionEnabled",
                                        "The card finds the begin of time frames"),
  };
  return fields;
}

std::span<const SettingField<FelixSettings>> felix_fields() {
  using C = FelixSettings;
  static const std::vector<SettingField<C>> fields{
      boolean<&C::generator>("generator", "", "The internal generator feeds the links"),
  };
  return fields;
}

std::span<const SettingField<FelixLinkSettings>> felix_link_fields() {
  using C = FelixLinkSettings;
  static const std::vector<SettingField<C>> fields{
      hexadecimal<&C::elinks>("elinks", "", ~std::uint64_t{0}, "E-links that are read, one bit each (e-group x 8 + e-path)"),
      number<&C::channel>("channel", "", 3, "DMA channel that takes the link's blocks"),
  };
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
