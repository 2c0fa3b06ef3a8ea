#include "card/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "card/operations/i2c.h"
#include "card/operations/require_type.h"
#include "card/pci/express_link.h"
#include "card/pci/sysfs.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::card {

namespace {

namespace cru = card_registers::cru;
namespace crorc = card_registers::crorc;
namespace felix = card_registers::felix;
using card_registers::Register;

constexpr auto kFields = std::to_array<FieldInfo>({
    {"all", Group::card, "card", "temperature", "temperature [C]", "gauge", "temperature of the FPGA, degrees Celsius"},
    {"CRU", Group::card, "card", "droppedPackets", "dropped packets", "counter", "packets lost since the start"},
    {"CRU", Group::card, "card", "ctpClock", "CTP clock [MHz]", "gauge", "clock of the trigger system, MHz"},
    {"CRU", Group::card, "card", "localClock", "local clock [MHz]", "gauge", "clock of the board, MHz"},
    {"CRU", Group::card, "card", "totalPacketsPerSecond", "packets/s", "gauge", "packets in the last second"},

    {"all", Group::pcie, "pcie", "lanes", "PCIe lanes", "gauge", "lanes that the PCIe link was trained to; not upstream's"},
    {"all", Group::pcie, "pcie", "mostLanes", "of", "gauge", "lanes that the card has; not upstream's"},
    {"all", Group::pcie, "pcie", "speed", "speed [GT/s]", "gauge",
     "transfers per second and lane that the PCIe link was trained to, in 10^9; not upstream's"},
    {"all", Group::pcie, "pcie", "fastestSpeed", "of [GT/s]", "gauge", "the fastest that the card has; not upstream's"},
    {"all", Group::pcie, "pcie", "maxPayload", "max payload [B]", "gauge",
     "Max_Payload_Size as the host set it: the longest packet that the card may write in; not upstream's"},
    {"all", Group::pcie, "pcie", "readRequest", "read request [B]", "gauge",
     "Max_Read_Request_Size as the host set it; not upstream's"},
    {"all", Group::pcie, "pcie", "correctableErrors", "corrected", "counter",
     "errors of the PCIe link that were corrected, as the kernel counts them (AER; real cards); not upstream's"},
    {"all", Group::pcie, "pcie", "nonfatalErrors", "non-fatal", "counter", "errors that cost a transaction; not upstream's"},
    {"all", Group::pcie, "pcie", "fatalErrors", "fatal", "counter", "errors that cost the link; not upstream's"},

    {"FELIX", Group::setting, "FELIX", "registerMap", "register map", "gauge",
     "version of the register map, 256 x major + minor; not upstream's"},
    {"CRU", Group::setting, "CRU", "cruId", "CRU id", "gauge", "CRU id in headers"},
    {"CRU", Group::setting, "CRU", "clock", "clock", "gauge", "0 TTC, 2 local"},
    {"CRU", Group::setting, "CRU", "clockInUse", "clock in use", "gauge",
     "clock that the jitter cleaner uses: 0 TTC, 2 local; not upstream's"},
    {"CRU", Group::setting, "CRU", "dynamicOffset", "dynamic offset", "gauge", "1: pages have the length of their content"},
    {"CRU", Group::setting, "CRU", "userLogic", "user logic", "gauge", "1: user logic sends data"},
    {"CRU", Group::setting, "CRU", "runStats", "run statistics", "gauge", "1: run statistics are sent"},
    {"CRU", Group::setting, "CRU", "userAndCommonLogic", "user and common logic", "gauge", "1: both send data"},
    {"CRU", Group::setting, "CRU", "timeFrameLength", "time frame [orbits]", "gauge", "orbits of a time frame"},
    {"CRU", Group::setting, "CRU", "dmaStatus", "data taking", "gauge", "1: data are being taken"},
    {"C-RORC", Group::setting, "CRORC", "crorcId", "C-RORC id", "gauge", "id in headers"},
    {"C-RORC", Group::setting, "CRORC", "qsfp", "QSFP", "gauge", "1: enabled"},
    {"C-RORC", Group::setting, "CRORC", "dynamicOffset", "dynamic offset", "gauge",
     "1: pages have the length of their content"},
    {"C-RORC", Group::setting, "CRORC", "timeFrameDetection", "time frame detection", "gauge", "1: on"},
    {"C-RORC", Group::setting, "CRORC", "timeFrameLength", "time frame [orbits]", "gauge", "orbits of a time frame"},
    {"FELIX", Group::setting, "FELIX", "firmwareMode", "firmware mode", "gauge", "0 GBT, 1 FULL, 9 lpGBT; not upstream's"},
    {"FELIX", Group::setting, "FELIX", "links", "links", "gauge", "links of the endpoint; not upstream's"},
    {"FELIX", Group::setting, "FELIX", "blockBytes", "block [B]", "gauge", "size of a block; not upstream's"},
    {"FELIX", Group::setting, "FELIX", "pllLocked", "clock locked", "gauge", "1: the main clock is locked; not upstream's"},
    {"FELIX", Group::setting, "FELIX", "generator", "generator", "gauge",
     "1: the internal generator feeds the links; not upstream's"},

    {"all", Group::link, "link", "status", "status", "gauge", "0 DOWN, 1 UP, 2 UP (was DOWN)"},
    {"CRU", Group::link, "link", "gbtMode", "GBT mode", "gauge", "0 GBT, 1 wide bus"},
    {"CRU", Group::link, "link", "loopback", "loopback", "gauge", "1: looped back inside the card"},
    {"CRU", Group::link, "link", "gbtMux", "GBT mux", "gauge",
     "data sent down the link: 0 TTC, 1 DDG, 2 SWT, 3 TTC up, 4 user logic"},
    {"CRU", Group::link, "link", "datapathMode", "datapath mode", "gauge", "0 streaming, 1 packet"},
    {"CRU", Group::link, "link", "datapath", "datapath", "gauge", "1: enabled"},
    {"CRU", Group::link, "link", "rxFreq", "RX [MHz]", "gauge", "receive clock, MHz"},
    {"CRU", Group::link, "link", "txFreq", "TX [MHz]", "gauge", "transmit clock, MHz"},
    {"C-RORC", Group::link, "link", "opticalPower", "optical power [uW]", "gauge", "received light, microwatts"},
    {"FELIX", Group::link, "link", "opticalPower", "optical power [uW]", "gauge", "received light, microwatts"},
    {"CRU", Group::link, "link", "systemId", "system id", "gauge", "in headers"},
    {"CRU", Group::link, "link", "feeId", "FEE id", "gauge", "in headers"},
    {"CRU", Group::link, "link", "glitchCounter", "glitches", "counter", "times the link's state changed"},
    {"CRU", Group::link, "link", "fecCounter", "FEC errors", "counter", "errors that were corrected"},
    {"CRU", Group::link, "link", "orbitSor", "first orbit", "gauge", "orbit of the start of run"},
    {"C-RORC", Group::link, "link", "orbitSor", "first orbit", "gauge", "orbit of the start of run"},
    {"FELIX", Group::link, "link", "errors", "errors", "counter", "errors of the link; not upstream's"},
    {"FELIX", Group::link, "link", "elinks", "E-links", "gauge", "E-links that are enabled; not upstream's"},
    {"FELIX", Group::link, "link", "channel", "channel", "gauge", "DMA channel that takes its blocks; not upstream's"},

    {"CRU", Group::packets, "link", "accepted", "accepted", "counter", "packets accepted"},
    {"CRU", Group::packets, "link", "rejected", "rejected", "counter", "packets rejected"},
    {"CRU", Group::packets, "link", "forced", "forced", "counter", "packets closed by force"},
    {"CRU", Group::packets, "link", "pktProcessed", "processed", "counter", "packets processed"},
    {"CRU", Group::packets, "link", "pktErrorProtocol", "protocol errors", "counter", "packets against the protocol"},
    {"CRU", Group::packets, "link", "pktErrorCheck1", "check 1", "counter", "packets that failed check 1"},
    {"CRU", Group::packets, "link", "pktErrorCheck2", "check 2", "counter", "packets that failed check 2"},
    {"CRU", Group::packets, "link", "pktErrorOversize", "oversize", "counter", "packets above the longest"},
    {"CRU", Group::packets, "link", "rdhCorruptedDropped", "bad RDH dropped", "counter", "packets dropped for their header"},
    {"C-RORC", Group::packets, "link", "acquisitionRate", "packets/s", "gauge", "packets in the last second"},
    {"C-RORC", Group::packets, "link", "packetsReceived", "packets", "counter", "packets since the start"},
    {"CRU", Group::packets, "wrapper", "dropped", "dropped/s", "gauge", "packets lost in the last second"},
    {"CRU", Group::packets, "wrapper", "totalPacketsPerSec", "packets/s", "gauge", "packets in the last second"},
    {"FELIX", Group::packets, "channel", "blocksSent", "blocks", "counter",
     "blocks written since the channel's start; not upstream's"},
    {"FELIX", Group::packets, "channel", "blocksDropped", "dropped", "counter", "blocks that the card lost; not upstream's"},

    {"CRU", Group::onu, "onu", "onuStickyValue", "sticky", "gauge", "bit set: was bad since the last clear"},
    {"CRU", Group::onu, "onu", "onuAddress", "address", "gauge", "address of the ONU"},
    {"CRU", Group::onu, "onu", "rx40Locked", "RX 40 locked", "gauge", "1: yes"},
    {"CRU", Group::onu, "onu", "phaseGood", "phase good", "gauge", "1: yes"},
    {"CRU", Group::onu, "onu", "rxLocked", "RX locked", "gauge", "1: yes"},
    {"CRU", Group::onu, "onu", "operational", "operational", "gauge", "1: yes"},
    {"CRU", Group::onu, "onu", "mgtTxReady", "MGT TX ready", "gauge", "1: yes"},
    {"CRU", Group::onu, "onu", "mgtRxReady", "MGT RX ready", "gauge", "1: yes"},
    {"CRU", Group::onu, "onu", "mgtTxPllLocked", "MGT TX PLL", "gauge", "1: locked"},
    {"CRU", Group::onu, "onu", "mgtRxPllLocked", "MGT RX PLL", "gauge", "1: locked"},
    {"CRU", Group::onu, "onu", "ponQualityStatus", "PON quality", "gauge", "word of the PON's quality"},
    {"CRU", Group::onu, "onu", "glitchCounter", "glitches", "counter", "glitches of the ONU"},

    {"CRU", Group::fec, "fec", "slowControlFramingLocked", "framing locked", "gauge", "1: slow control framing is locked"},
    {"CRU", Group::fec, "fec", "fecSingleErrorCount", "single errors", "counter", "errors that were corrected"},
    {"CRU", Group::fec, "fec", "fecDoubleErrorCount", "double errors", "counter", "errors that were not corrected"},
});

/// Reads registers and adds fields. After the first failure of the card its calls have no effect.
class Reader {
 public:
  Reader(Card& card, Group group) : card_(card), group_(group) {}

  void begin(std::string_view measurement, std::optional<unsigned> id = {}) { all_.push_back({measurement, id, {}}); }

  std::uint64_t read(const Register& where, std::uint32_t index = 0) {
    if (!failed_) {
      const auto value = card_.read64(where, index);
      if (value) return *value;
      failed_ = value.error();
    }
    return 0;
  }
  void add(std::string_view name, MeasuredValue value, std::string text = {}) {
    const FieldInfo* info = find(name);
    if (info != nullptr && !failed_) all_.back().fields.push_back({info, value, std::move(text)});
  }
  void bit(std::string_view name, std::uint64_t word, unsigned position) { add(name, word >> position & 1); }
  void megahertz(std::string_view name, std::uint64_t hertz) {
    add(name, static_cast<double>(hertz) * 1e-6, fmt::format("{:.2f}", static_cast<double>(hertz) * 1e-6));
  }

  Card& card() { return card_; }
  void fail(Error error) { failed_ = std::move(error); }

  Result<std::vector<Measurement>> measure() {
    if (failed_) return std::unexpected(*failed_);
    return std::move(all_);
  }

 private:
  const FieldInfo* find(std::string_view name) const {
    for (const FieldInfo& info : kFields) {
      if (info.group == group_ && info.name == name && info.measurement == all_.back().name &&
          (info.card == "all" || info.card == name_of(card_.type())))
        return &info;
    }
    return nullptr;
  }

  Card& card_;
  Group group_;
  std::vector<Measurement> all_;
  std::optional<Error> failed_;
};

std::string status_text(std::uint64_t status) { return status == 0 ? "DOWN" : status == 1 ? "UP" : "UP (was DOWN)"; }

void add_status(Reader& reader, bool up, bool was_down) {
  const std::uint64_t status = !up ? 0 : was_down ? 2 : 1;
  reader.add("status", status, status_text(status));
}

std::string choice(std::uint64_t value, std::initializer_list<const char*> names) {
  return value < names.size() ? names.begin()[value] : fmt::format("{}", value);
}

template <typename Visit>
void each_link(std::uint32_t wanted, unsigned count, Visit visit) {
  for (unsigned link = 0; link < count; ++link) {
    if ((wanted >> link & 1) != 0) visit(link);
  }
}

void add_cru_card(Reader& reader, unsigned endpoint) {
  reader.begin("card");
  if (const std::uint64_t raw = reader.read(cru::reg("temperature")) & 0x3ff; raw != 0) {
    const double celsius = 693.0 * static_cast<double>(raw) / 1024 - 265;
    reader.add("temperature", celsius, fmt::format("{:.1f}", celsius));
  }
  reader.add("droppedPackets", reader.read(cru::reg("datapath_dropped_packets"), endpoint));
  reader.megahertz("ctpClock", reader.read(cru::reg("ctp_clock_hz")));
  reader.megahertz("localClock", reader.read(cru::reg("local_clock_hz")));
  reader.add("totalPacketsPerSecond", reader.read(cru::reg("datapath_packet_hz"), endpoint));
}

void add_cru_settings(Reader& reader, unsigned endpoint) {
  reader.begin("CRU");
  const auto user = static_cast<std::uint32_t>(reader.read(cru::reg("user_control")));
  const auto ttc = static_cast<std::uint32_t>(reader.read(cru::reg("ttc_control")));
  const std::uint64_t enable = reader.read(cru::reg("datapath_enable"), endpoint);
  reader.add("cruId", std::uint64_t{cru::kCruId.of(user)}, fmt::format("{:#05x}", cru::kCruId.of(user)));
  const std::uint32_t clock = cru::kClockSelect.of(ttc);
  reader.add("clock", std::uint64_t{clock}, clock == 2 ? "local" : "TTC");
  // If the I2C bus does not answer, only this field is missing.
  if (const auto ttc_in_use = ttc_clock_in_use(reader.card()); ttc_in_use)
    reader.add("clockInUse", std::uint64_t{*ttc_in_use ? 0U : 2U}, *ttc_in_use ? "TTC" : "local");
  reader.bit("dynamicOffset", enable, 31);
  reader.bit("userLogic", enable, 15);
  reader.add("runStats", enable >> (endpoint == 0 ? 13 : 14) & 1);
  reader.bit("userAndCommonLogic", enable, 30);
  reader.add("timeFrameLength",
             std::uint64_t{cru::kTimeFrameLength.of(static_cast<std::uint32_t>(reader.read(cru::reg("debug"))))});
  reader.bit("dmaStatus", user, 0);
}

void add_cru_link(Reader& reader, unsigned endpoint, unsigned link) {
  reader.begin("link", link);
  const std::uint32_t gbt = cru::gbt_index(endpoint, link);
  const std::uint32_t datapath = cru::datapath_index(endpoint, link);
  const auto status = static_cast<std::uint32_t>(reader.read(cru::reg("gbt_link_status"), gbt));
  const bool was_down = cru::kPhyWasDown.of(status) != 0 || cru::kDataWasDown.of(status) != 0;
  add_status(reader, cru::kPhyUp.of(status) != 0 && cru::kDataUp.of(status) != 0, was_down);
  const std::uint64_t mode = reader.read(cru::reg("gbt_link_rx_control"), gbt) >> 8 & 1;
  reader.add("gbtMode", mode, choice(mode, {"GBT", "wide bus"}));
  reader.bit("loopback", reader.read(cru::reg("gbt_link_source"), gbt), 4);
  const unsigned place = link + 12 * endpoint;
  const std::uint64_t mux = reader.read(cru::reg("gbt_mux"), place / 8) >> 4 * (place % 8) & 0xf;
  reader.add("gbtMux", mux, choice(mux, {"TTC", "DDG", "SWT", "TTC up", "user logic"}));
  const std::uint64_t packet = reader.read(cru::reg("datapath_link_control"), datapath) >> 31 & 1;
  reader.add("datapathMode", packet, choice(packet, {"streaming", "packet"}));
  const std::uint64_t enabled = reader.read(cru::reg("datapath_enable"), endpoint) >> link & 1;
  reader.add("datapath", enabled, choice(enabled, {"disabled", "enabled"}));
  reader.megahertz("rxFreq", reader.read(cru::reg("gbt_link_rx_hz"), gbt));
  reader.megahertz("txFreq", reader.read(cru::reg("gbt_link_tx_hz"), gbt));
  const auto ids = static_cast<std::uint32_t>(reader.read(cru::reg("datapath_link_ids"), datapath));
  reader.add("systemId", std::uint64_t{cru::kSystemId.of(ids)}, fmt::format("{:#04x}", cru::kSystemId.of(ids)));
  reader.add("feeId", std::uint64_t{cru::kFeeId.of(ids)}, fmt::format("{:#06x}", cru::kFeeId.of(ids)));
  reader.add("glitchCounter", reader.read(cru::reg("gbt_link_glitches"), gbt));
  reader.add("fecCounter", reader.read(cru::reg("gbt_link_fec_errors"), gbt));
  reader.add("orbitSor", reader.read(cru::reg("datapath_link_first_orbit"), datapath));
}

void add_cru_packets(Reader& reader, unsigned endpoint, std::uint32_t links) {
  reader.begin("wrapper", endpoint);
  reader.add("dropped", reader.read(cru::reg("datapath_drop_hz"), endpoint));
  reader.add("totalPacketsPerSec", reader.read(cru::reg("datapath_packet_hz"), endpoint));
  each_link(links, cru::kLinks, [&](unsigned link) {
    const std::uint32_t index = cru::datapath_index(endpoint, link);
    reader.begin("link", link);
    reader.add("accepted", reader.read(cru::reg("datapath_link_accepted"), index));
    reader.add("rejected", reader.read(cru::reg("datapath_link_rejected"), index));
    reader.add("forced", reader.read(cru::reg("datapath_link_forced"), index));
    reader.add("pktProcessed", reader.read(cru::reg("datapath_link_processed"), index));
    reader.add("pktErrorProtocol", reader.read(cru::reg("datapath_link_protocol_errors"), index));
    const std::uint64_t check = reader.read(cru::reg("datapath_link_check_1"), index);
    reader.add("pktErrorCheck1", check & 0xffff);
    reader.add("pktErrorCheck2", reader.read(cru::reg("datapath_link_check_2"), index));
    reader.add("pktErrorOversize", reader.read(cru::reg("datapath_link_oversize"), index));
    reader.add("rdhCorruptedDropped", check >> 16 & 0xff);
  });
}

void add_onu(Reader& reader) {
  reader.begin("onu");
  reader.add("onuStickyValue", reader.read(cru::reg("ttc_onu_sticky")));
  reader.add("onuAddress", reader.read(cru::reg("onu_control")) >> 1 & 0xff);
  const std::uint64_t status = reader.read(cru::reg("onu_status"));
  unsigned position = 0;
  for (const std::string_view name : {"rx40Locked", "phaseGood", "rxLocked", "operational", "mgtTxReady", "mgtRxReady",
                                      "mgtTxPllLocked", "mgtRxPllLocked"})
    reader.bit(name, status, position++);
  reader.add("ponQualityStatus", reader.read(cru::reg("pon_quality")));
  reader.add("glitchCounter", reader.read(cru::reg("ttc_onu_glitches")));
}

void add_fec(Reader& reader) {
  reader.begin("fec");
  reader.bit("slowControlFramingLocked", reader.read(cru::reg("onu_fec_status")), 0);
  reader.add("fecSingleErrorCount", reader.read(cru::reg("onu_fec_single_errors")));
  reader.add("fecDoubleErrorCount", reader.read(cru::reg("onu_fec_double_errors")));
}

void read_cru(Reader& reader, Group group, unsigned endpoint, std::uint32_t links) {
  switch (group) {
    case Group::pcie: return;
    case Group::card: return add_cru_card(reader, endpoint);
    case Group::setting: return add_cru_settings(reader, endpoint);
    case Group::link: return each_link(links, cru::kLinks, [&](unsigned link) { add_cru_link(reader, endpoint, link); });
    case Group::packets: return add_cru_packets(reader, endpoint, links);
    case Group::onu: return add_onu(reader);
    case Group::fec: return add_fec(reader);
  }
}

void add_crorc_settings(Reader& reader) {
  reader.begin("CRORC");
  const auto configuration = static_cast<std::uint32_t>(reader.read(crorc::reg("configuration")));
  const auto time_frame = static_cast<std::uint32_t>(reader.read(crorc::reg("time_frame")));
  reader.add("crorcId", std::uint64_t{crorc::kCrorcId.of(configuration)},
             fmt::format("{:#05x}", crorc::kCrorcId.of(configuration)));
  reader.bit("qsfp", reader.read(crorc::reg("link_status")), 31);
  reader.bit("dynamicOffset", configuration, 0);
  reader.bit("timeFrameDetection", time_frame, 12);
  reader.add("timeFrameLength", std::uint64_t{crorc::kTimeFrameLength.of(time_frame)});
}

void read_crorc(Reader& reader, Group group, std::uint32_t links) {
  static constexpr const Register* kPower[]{&crorc::reg("optical_power_0_1"), &crorc::reg("optical_power_2_3"),
                                            &crorc::reg("optical_power_4_5")};
  if (group == Group::card) reader.begin("card");
  if (group == Group::setting) add_crorc_settings(reader);
  if (group != Group::link && group != Group::packets) return;
  each_link(links, crorc::kLinks, [&](unsigned link) {
    reader.begin("link", link);
    if (group == Group::packets) {
      reader.add("acquisitionRate", reader.read(crorc::reg("acquisition_rate"), link));
      reader.add("packetsReceived", reader.read(crorc::reg("packets_received"), link));
      return;
    }
    add_status(reader, (reader.read(crorc::reg("channel_csr"), link) >> 13 & 1) == 0, false);
    const std::uint64_t raw = reader.read(*kPower[link / 2]) >> (link % 2 == 0 ? 0 : 16) & 0xffff;
    reader.add("opticalPower", static_cast<double>(raw) / 10, fmt::format("{:.1f}", static_cast<double>(raw) / 10));
    reader.add("orbitSor", reader.read(crorc::reg("first_orbit"), link));
  });
}

void read_pcie(Reader& reader) {
  const auto link = pci::read_express_link(reader.card().function());
  if (!link) return reader.fail(link.error());
  if (!*link) return;
  reader.begin("pcie");
  const auto speed = [](double value) { return fmt::format("{:g}", value); };
  reader.add("lanes", std::uint64_t{(*link)->lanes}, fmt::format("x{}", (*link)->lanes));
  reader.add("mostLanes", std::uint64_t{(*link)->most_lanes}, fmt::format("x{}", (*link)->most_lanes));
  reader.add("speed", (*link)->speed, speed((*link)->speed));
  reader.add("fastestSpeed", (*link)->fastest_speed, speed((*link)->fastest_speed));
  reader.add("maxPayload", std::uint64_t{(*link)->payload_bytes});
  reader.add("readRequest", std::uint64_t{(*link)->read_request_bytes});
  if (!reader.card().function().capabilities().kernel_device) return;
  if (const auto errors = pci::link_errors(reader.card().address()); errors) {
    reader.add("correctableErrors", errors->correctable);
    reader.add("nonfatalErrors", errors->nonfatal);
    reader.add("fatalErrors", errors->fatal);
  }
}

void read_felix(Reader& reader, Group group, std::uint32_t links) {
  if (group == Group::setting) {
    reader.begin("FELIX");
    const std::uint16_t version = reader.card().map_version().value_or(0);
    reader.add("registerMap", std::uint64_t{version}, fmt::format("{}.{}", version >> 8, version & 0xff));
  }
  if (!reader.card().check_map()) return;
  const auto count =
      static_cast<unsigned>(std::min<std::uint64_t>(reader.read(felix::reg("links")), felix::reg("link_status").count));
  if (group == Group::card) {
    reader.begin("card");
    if (const std::uint64_t raw = reader.read(felix::reg("temperature")) & 0xfff; raw != 0) {
      const double celsius = 503.975 * static_cast<double>(raw) / 4096 - 273.15;
      reader.add("temperature", celsius, fmt::format("{:.1f}", celsius));
    }
  } else if (group == Group::setting) {
    const std::uint64_t mode = reader.read(felix::reg("firmware_mode"));
    reader.add("firmwareMode", mode,
               choice(mode, {"GBT", "FULL", "LTDB", "FEI4", "ITk pixel", "ITk strip", "FELIG", "FULL emulator", "MROD",
                             "lpGBT", "Interlaken"}));
    reader.add("links", std::uint64_t{count});
    reader.add("blockBytes", reader.read(felix::reg("block_bytes")));
    reader.bit("pllLocked", reader.read(felix::reg("pll_lock")), 0);
    reader.bit("generator", reader.read(felix::reg("generator_control")), 0);
  } else if (group == Group::link) {
    each_link(links, count, [&](unsigned link) {
      reader.begin("link", link);
      const std::uint64_t status = reader.read(felix::reg("link_status"), link);
      add_status(reader, (status & 1) != 0, (status >> 1 & 1) != 0);
      const double power = static_cast<double>(reader.read(felix::reg("link_optical_power"), link)) / 10;
      reader.add("opticalPower", power, fmt::format("{:.1f}", power));
      reader.add("errors", status >> 16 & 0xffff);
      reader.add("elinks", static_cast<std::uint64_t>(std::popcount(reader.read(felix::reg("elinks_enabled"), link))));
      reader.add("channel", reader.read(felix::reg("link_channel"), link));
    });
  } else if (group == Group::packets) {
    for (unsigned channel = 0; channel < felix::kToHostDescriptors; ++channel) {
      reader.begin("channel", channel);
      reader.add("blocksSent", reader.read(felix::reg("blocks_sent"), channel));
      reader.add("blocksDropped", reader.read(felix::reg("blocks_dropped"), channel));
    }
  }
}

}  // namespace

std::span<const FieldInfo> all_fields() { return kFields; }

const MeasuredField* Measurement::find(std::string_view field) const {
  for (const MeasuredField& one : fields) {
    if (one.info->name == field) return &one;
  }
  return nullptr;
}

Result<std::vector<Measurement>> measure(Card& card, Group group, std::uint32_t links) {
  Reader reader(card, group);
  if (group == Group::pcie) {
    read_pcie(reader);
    return reader.measure();
  }
  if (card.type() == CardType::cru) read_cru(reader, group, card.endpoint_or_zero(), links);
  if (card.type() == CardType::crorc) read_crorc(reader, group, links);
  if (card.type() == CardType::felix) read_felix(reader, group, links);
  return reader.measure();
}

Result<TriggerCounts> read_trigger_counts(Card& card) {
  RODEO_TRY(require_type(card, CardType::cru, "the trigger monitor"));
  const auto heartbeats = RODEO_TRY(card.read(cru::reg("ttc_heartbeats")));
  const auto physics = RODEO_TRY(card.read(cru::reg("ttc_physics")));
  const auto both = RODEO_TRY(card.read(cru::reg("ttc_tof_cal")));
  const auto runs = RODEO_TRY(card.read(cru::reg("ttc_sox_eox")));
  return TriggerCounts{heartbeats,
                       physics,
                       static_cast<std::uint16_t>(both >> 16),
                       static_cast<std::uint16_t>(both),
                       static_cast<std::uint8_t>(runs & 0xf),
                       static_cast<std::uint8_t>(runs >> 4 & 0xf)};
}

}  // namespace rodeo::card
