// The settings of each card as plain structs, with their names in files: Rodeo's, and those of the public driver.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "rodeo/settings.h"

namespace rodeo::card {

enum class Clock : std::uint32_t { ttc = 0, local = 2 };
enum class DatapathMode : std::uint32_t { streaming = 0, packet = 1 };
enum class DownstreamData : std::uint32_t { ctp = 0, pattern = 1, midtrg = 2 };
enum class GbtMode : std::uint32_t { gbt = 0, wide_bus = 1 };
enum class GbtMux : std::uint32_t { ttc = 0, ddg = 1, swt = 2, ttcup = 3, ul = 4 };

struct CruLinkSettings {
  bool enabled = false;
  GbtMux gbt_mux = GbtMux::ttc;
  std::uint32_t fee_id = 0;  // 16 bits
  bool operator==(const CruLinkSettings&) const = default;
};

/// One endpoint of a CRU.
struct CruSettings {
  Clock clock = Clock::local;
  DatapathMode datapath_mode = DatapathMode::packet;
  DownstreamData downstream_data = DownstreamData::ctp;
  GbtMode gbt_mode = GbtMode::gbt;
  bool loopback = false;
  bool allow_rejection = false;
  std::uint32_t cru_id = 0;       // 12 bits
  std::uint32_t onu_address = 0;  // 8 bits
  bool pon_upstream = false;
  bool dynamic_offset = false;
  std::uint32_t trigger_window = 1000;  // bunch crossings, 16 bits
  bool gbt_enabled = true;              // false: links and their wrapper are left as they are
  bool user_logic = false;
  bool run_statistics = false;
  bool user_and_common_logic = false;     // needs user_logic
  std::uint32_t system_id = 0;            // 8 bits
  std::uint32_t time_frame_length = 256;  // orbits, 12 bits
  bool drop_bad_rdh = false;
  std::array<CruLinkSettings, 12> links{{{.enabled = true}}};
  bool operator==(const CruSettings&) const = default;
};

/// A C-RORC; all six channels have the same settings.
struct CrorcSettings {
  std::uint32_t crorc_id = 0;  // 12 bits
  bool dynamic_offset = false;
  std::uint32_t time_frame_length = 256;  // orbits, at most 256
  bool time_frame_detection = true;
  bool qsfp = true;
  bool operator==(const CrorcSettings&) const = default;
};

struct FelixLinkSettings {
  std::uint64_t elinks = 0;   // one bit an E-link
  std::uint32_t channel = 0;  // DMA channel that takes its blocks
  bool operator==(const FelixLinkSettings&) const = default;
};

/// One endpoint of a FELIX.
struct FelixSettings {
  bool generator = false;  // the internal generator feeds the links
  std::array<FelixLinkSettings, 12> links{};
  bool operator==(const FelixSettings&) const = default;
};

using CardSettings = std::variant<CruSettings, CrorcSettings, FelixSettings>;

/// Checks limits and combinations. Error card.bad_configuration names the setting.
Result<void> check(const CruSettings& settings);
Result<void> check(const CrorcSettings& settings);
Result<void> check(const FelixSettings& settings);
Result<void> check(const CardSettings& settings);

/// One setting by name: reads and writes its text in a file.
template <typename Struct>
struct SettingField : Setting<Struct> {
  std::string upstream;      // name in the public driver's files; empty: they lack it
  bool hexadecimal = false;  // the text is hexadecimal

  /// The value as written in a file: "true", "1000", "0x1a", "packet".
  std::string text(const Struct& settings) const;
  /// Parses this text: words in any case, hexadecimal with or without 0x. Error card.bad_configuration quotes `written`, the
  /// user's own text, if given.
  Result<void> parse(Struct& settings, std::string_view text, std::string_view written = {}) const;
};

/// All settings but those of links, in the order of application.
std::span<const SettingField<CruSettings>> cru_fields();
std::span<const SettingField<CrorcSettings>> crorc_fields();
std::span<const SettingField<FelixSettings>> felix_fields();
/// Settings of one link.
std::span<const SettingField<CruLinkSettings>> cru_link_fields();
std::span<const SettingField<FelixLinkSettings>> felix_link_fields();

}  // namespace rodeo::card
