// The CRU's other registers: identity, I2C, clocks, links, counters, trigger emulation. Values change as on a real card.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "emulator/cru_card.h"
#include "formats/trigger_plan.h"

namespace rodeo::emulator {
namespace {

namespace cru = card_registers::cru;

constexpr double kLhcHz = 240'474'000;  // six times the bunch crossing clock; the GBT links run at it
constexpr double kBunchHz = kLhcHz / 6;
constexpr double kOrbitHz = 1e9 / formats::kOrbitNs;

constexpr std::uint64_t kFirmwareHash = 0xf6b5d742;  // v3.19.4 in upstream's list

constexpr unsigned kJitterCleanerBus = 4;
constexpr std::uint32_t kSelectedInput = 0x68U << 16 | 5U << 8 | 0x2aU;  // chip, page, register

}  // namespace

void CruCard::set_temperature(double celsius) {
  registers().set(cru::reg("temperature"), static_cast<std::uint64_t>(std::llround((celsius + 265) * 1024 / 693)) & 0x3ff);
}

double CruCard::run_seconds() const { return static_cast<double>(base::steady_now_ns() - power_on_ns_) * 1e-9; }

void CruCard::define_board() {
  RegisterFile& regs = registers();
  const auto set = [&](const card_registers::Register& reg, std::uint64_t value) { regs.set(reg, value); };
  set(cru::reg("firmware_hash"), kFirmwareHash);
  set(cru::reg("firmware_date"), 0x20261121);
  set(cru::reg("firmware_time"), 0x00120000);
  set(cru::reg("board_type"), 0x2);
  set(cru::reg("firmware_compile_info"), 0x20261121);
  set(cru::reg("chip_id_high"), 0x0badc0de);
  set(cru::reg("chip_id_low"), settings_.serial);
  set(cru::reg("user_logic_hash"), 0x7e57c0de);
  set(cru::reg("pon_quality"), 0x1);
  set(cru::reg("onu_status"), 0xff);
  set(cru::reg("ctp_clock_hz"), static_cast<std::uint64_t>(kLhcHz));
  set(cru::reg("local_clock_hz"), 240'000'000);
  set(cru::reg("debug"), 256U << 20);  // configured cards have this value
  set(cru::reg("user_control"), 0);
  set(cru::reg("ctp_bc_max"), 3563);
  set(cru::reg("ctp_hb_max"), 255);
  set_temperature(settings_.temperature);
  // Writing 1 switches random event sizes on or off; a reset sets fixed sizes.
  regs.on_read(cru::reg("user_logic_random"), [this](std::uint32_t) -> std::uint64_t { return random_event_size_ ? 1 : 0; });
  regs.on_write(cru::reg("user_logic_random"), [this](std::uint32_t, std::uint64_t value) {
    if ((value & 1U) != 0) random_event_size_ = !random_event_size_;
  });
  regs.on_write(cru::reg("user_logic_reset"), [this](std::uint32_t, std::uint64_t value) {
    if ((value & 1U) != 0) random_event_size_ = false;
  });
  regs.on_write(cru::reg("user_control"), [this](std::uint32_t, std::uint64_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    after_write([this, word] {
      const bool on = cru::kRunEnable.of(word) != 0;
      if (on && !data_taking_) {
        begin_run();
        start_ns_ = base::steady_now_ns();
      }
      data_taking_ = on;
      identify_links();
    });
  });
}

void CruCard::define_i2c() {
  RegisterFile& regs = registers();
  struct Bus {
    std::map<std::uint32_t, std::uint8_t> bytes;  // chip << 16 | page << 8 | register
    std::map<std::uint32_t, std::uint8_t> page;   // page of each chip
    std::uint32_t data = 0;
  };
  auto buses = std::make_shared<std::array<Bus, 6>>();
  // The EEPROM holds the card's identity, for firmware without a serial register.
  const std::string eeprom =
      "{\"cn\":\"FEC\",\"pn\":\"p40_fv22b" + std::to_string(10000 + settings_.serial).substr(1) + "\"}";
  for (std::uint32_t i = 0; i < eeprom.size(); ++i)
    (*buses)[5].bytes[0x50U << 16 | i] = static_cast<std::uint8_t>(eeprom[i]);
  const auto define = [&](const card_registers::Register& configuration, const card_registers::Register& command,
                          const card_registers::Register& data, unsigned first_bus) {
    const auto* const config_reg = &configuration;
    const bool eeprom_bus = first_bus == 5;
    regs.on_write(command, [this, buses, config_reg, first_bus, eeprom_bus](std::uint32_t index, std::uint64_t value) {
      Bus& bus = (*buses)[first_bus + index];
      const auto word = static_cast<std::uint32_t>(registers().get(*config_reg, index));
      const std::uint32_t chip = word >> 16 & 0x7fffU, reg = word >> 8 & 0xffU;
      const bool paged = !eeprom_bus && reg != 1;
      const std::uint32_t at = chip << 16 | (paged ? std::uint32_t{bus.page[chip]} << 8 : 0U) | reg;
      switch (value) {
        case 1:
          if (!eeprom_bus && reg == 1) bus.page[chip] = static_cast<std::uint8_t>(word);
          bus.bytes[at] = static_cast<std::uint8_t>(word);
          if (bus.bytes.size() > 65536) bus.bytes.clear();  // no chip has more
          bus.data = 0x80000000U;
          break;
        case 2:
          bus.data = 0x80000000U | (bus.bytes.contains(at) ? bus.bytes[at] : 0U);
          // The jitter cleaner's input follows the selected clock; on a real card, register sequences set it.
          if (first_bus + index == kJitterCleanerBus && at == kSelectedInput && !bus.bytes.contains(at))
            bus.data |=
                cru::kClockSelect.of(static_cast<std::uint32_t>(registers().get(cru::reg("ttc_control")))) == 2 ? 0U : 2U;
          if (eeprom_bus) registers().set(cru::reg("serial"), ascii_serial());
          break;
        case 4: bus.data = 0x80000000U; break;
        case 8: bus.data = 0; break;
        default: break;
      }
    });
    regs.on_read(data, [buses, first_bus](std::uint32_t index) { return (*buses)[first_bus + index].data; });
  };
  define(cru::reg("i2c_sfp_configuration"), cru::reg("i2c_sfp_command"), cru::reg("i2c_sfp_data"), 0);
  define(cru::reg("i2c_minipod_configuration"), cru::reg("i2c_minipod_command"), cru::reg("i2c_minipod_data"), 1);
  define(cru::reg("i2c_pll_configuration"), cru::reg("i2c_pll_command"), cru::reg("i2c_pll_data"), 2);
  define(cru::reg("i2c_eeprom_configuration"), cru::reg("i2c_eeprom_command"), cru::reg("i2c_eeprom_data"), 5);
  // The serial is valid after power-on, too: the firmware reads it once by itself.
  regs.set(cru::reg("serial"), ascii_serial());
}

std::uint32_t CruCard::datapath(const card_registers::Register& reg) const {
  if (&reg == &cru::reg("datapath_words")) return static_cast<std::uint32_t>(bytes_ / 32);
  if (&reg == &cru::reg("datapath_packets")) return static_cast<std::uint32_t>(pages_);
  if (&reg == &cru::reg("datapath_dropped_packets")) return static_cast<std::uint32_t>(dropped_pages_ + totals().pages_lost);
  if (&reg == &cru::reg("datapath_dropped_words"))
    return static_cast<std::uint32_t>((dropped_pages_ + totals().pages_lost) * settings_.rdh.page_bytes / 32);
  if (&reg == &cru::reg("datapath_packet_hz")) return packet_hz_;
  return drop_hz_;
}

void CruCard::define_links() {
  RegisterFile& regs = registers();
  regs.set(cru::reg("gbt_wrapper_banks"), 0x66660, 0);
  regs.set(cru::reg("gbt_wrapper_links"), 24U << 24, 0);
  regs.on_read(cru::reg("gbt_wrapper_clock"), [this](std::uint32_t wrapper) -> std::uint64_t {
    return wrapper == 0 ? (base::steady_now_ns() - power_on_ns_) / 25 & 0xffffffffU : 0;
  });
  for (std::uint32_t i = 0; i < cru::reg("gbt_link_tx_hz").total(); ++i) {
    regs.set(cru::reg("gbt_link_tx_hz"), static_cast<std::uint64_t>(kLhcHz), i);
    regs.set(cru::reg("gbt_link_rx_hz"), static_cast<std::uint64_t>(kLhcHz), i);
  }
  const auto link_at = [this](std::uint32_t index) -> Link* {
    for (unsigned number = 0; number < cru::kLinks; ++number) {
      if (cru::gbt_index(endpoint_, number) == index) return &links_[number];
    }
    return nullptr;  // the link belongs to the other endpoint
  };
  regs.on_read(cru::reg("gbt_link_status"), [this, link_at](std::uint32_t index) -> std::uint64_t {
    const Link* const link = link_at(index);
    const bool up = link == nullptr || link->up;
    const bool was_down = link != nullptr && link->was_down;
    std::uint64_t status = cru::kPllLocked.mask();
    if (up) status |= cru::kRxLocked.mask() | cru::kDataUp.mask() | cru::kPhyUp.mask();
    if (was_down) status |= cru::kPhyWasDown.mask() | cru::kDataWasDown.mask();
    return status;
  });
  regs.on_read(cru::reg("gbt_link_glitches"), [link_at](std::uint32_t index) -> std::uint64_t {
    const Link* const link = link_at(index);
    return link != nullptr && link->was_down ? 1 : 0;
  });
  regs.on_write(cru::reg("gbt_link_clear_errors"), [link_at](std::uint32_t index, std::uint64_t value) {
    Link* const link = link_at(index);
    if (link != nullptr && (value & 1U) != 0) link->was_down = !link->up;
  });

  const std::uint32_t mask = (std::uint32_t{1} << std::min(settings_.links, cru::kLinks)) - 1;
  regs.set(cru::reg("datapath_enable"), mask, endpoint_);
  for (unsigned number = 0; number < kLinks; ++number) {
    regs.set(cru::reg("datapath_link_ids"), number, cru::datapath_index(endpoint_, number));
    regs.set(cru::reg("datapath_link_control"), cru::kFullPage, cru::datapath_index(endpoint_, number));
  }
  regs.on_write(cru::reg("datapath_enable"), [this](std::uint32_t endpoint, std::uint64_t value) {
    if (endpoint != endpoint_) return;
    after_write([this, value] {
      enabled_ = static_cast<std::uint32_t>(value);
      dynamic_offset_ = cru::kEnableDynamicOffset.of(enabled_) != 0;
    });
  });
  regs.on_write(cru::reg("datapath_generator"), [this](std::uint32_t endpoint, std::uint64_t value) {
    if (endpoint == endpoint_) after_write([this, value] { generator_ = static_cast<std::uint32_t>(value); });
  });
  const auto count = [&](const card_registers::Register& reg) {
    regs.on_read(reg, [this, reg = &reg](std::uint32_t endpoint) -> std::uint64_t {
      return endpoint == endpoint_ ? datapath(*reg) : 0;
    });
  };
  count(cru::reg("datapath_words"));
  count(cru::reg("datapath_dropped_words"));
  count(cru::reg("datapath_packets"));
  count(cru::reg("datapath_dropped_packets"));
  count(cru::reg("datapath_packet_hz"));
  count(cru::reg("datapath_drop_hz"));
  const auto of_link = [&](const card_registers::Register& reg, auto value) {
    regs.on_read(reg, [this, value](std::uint32_t index) -> std::uint64_t {
      return index / kLinks == endpoint_ ? value(links_[index % kLinks]) : 0;
    });
  };
  of_link(cru::reg("datapath_link_accepted"), [](const Link& link) { return link.pages & 0xffffffffU; });
  of_link(cru::reg("datapath_link_processed"), [](const Link& link) { return link.pages & 0xffffffffU; });
  of_link(cru::reg("datapath_link_rejected"), [](const Link& link) { return link.dropped_frames & 0xffffffffU; });
  of_link(cru::reg("datapath_link_first_orbit"),
          [this](const Link& link) { return std::uint64_t{link.source.orbit_of(first_frame_)}; });
  regs.on_read(cru::reg("datapath_first_orbit"), [this](std::uint32_t endpoint) -> std::uint64_t {
    return endpoint == endpoint_ ? links_[0].source.orbit_of(first_frame_) : 0;
  });
  regs.on_read(cru::reg("datapath_flow_total"), [this](std::uint32_t endpoint) -> std::uint64_t {
    return endpoint == endpoint_ ? frames_ & 0xffffffffU : 0;
  });
  regs.on_read(cru::reg("ddg_packets"), [this](std::uint32_t) -> std::uint64_t { return pages_ & 0xffffffffU; });
}

std::uint64_t CruCard::ctp_triggers(const card_registers::Register& divisor) const {
  const std::uint64_t ticks = registers().get(divisor);
  const bool periodic = (registers().get(cru::reg("ctp_run_mode")) & 3U) == 1;
  return periodic && ticks > 0 ? static_cast<std::uint64_t>(run_seconds() * kBunchHz / static_cast<double>(ticks)) : 0;
}

void CruCard::define_trigger_emulation() {
  RegisterFile& regs = registers();
  auto manual = std::make_shared<std::uint64_t>(0);
  auto ends = std::make_shared<std::uint64_t>(0);
  regs.on_write(cru::reg("ctp_run_mode"), [manual, ends](std::uint32_t, std::uint64_t value) {
    if ((value & 0x100U) != 0) ++*manual;
    if ((value & 4U) != 0) ++*ends;
  });
  regs.on_read(cru::reg("ttc_heartbeats"), [this](std::uint32_t) {
    // Without triggers, heartbeats are counted by the orbit clock.
    return (settings_.paced ? triggers_seen_.load() : static_cast<std::uint64_t>(run_seconds() * kOrbitHz)) & 0xffffffffU;
  });
  regs.on_read(cru::reg("ttc_physics"), [this, manual](std::uint32_t) {
    return (ctp_triggers(cru::reg("ctp_physics_divisor")) + *manual) & 0xffffffffU;
  });
  regs.on_read(cru::reg("ttc_tof_cal"),
               [this](std::uint32_t) { return (ctp_triggers(cru::reg("ctp_cal_divisor")) & 0xffffU) << 16; });
  regs.on_read(cru::reg("ttc_sox_eox"),
               [this, ends](std::uint32_t) { return (start_ns_ != 0 ? 1U : 0U) | (*ends & 0xfU) << 4; });
}

}  // namespace rodeo::emulator
