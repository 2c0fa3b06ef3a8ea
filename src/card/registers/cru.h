// The ALICE CRU: two PCIe functions (endpoints) of 12 links each; BAR 0 is DMA, BAR 2 everything else.
// Offsets are those that the public ReadoutCard driver uses; parts that no source specifies say "defined here".
#pragma once

#include "card_registers/register_map.h"

namespace rodeo::card_registers::cru {

inline constexpr PciId kPciId{0x10dc, 0x0034};
inline constexpr PciId kDevelopmentBoardPciId{0x1172, 0xe001};
inline constexpr BarSize kBars[]{{0, 64 << 10}, {2, 16 << 20}};  // BAR 0: defined here (its highest register is 0xc04)
inline constexpr unsigned kLinks = 12;                           // detector links per endpoint
inline constexpr unsigned kDmaLinks =
    16;  // 0-11 detector, 13 (endpoint 0) and 14 (endpoint 1) run statistics, 15 user logic
inline constexpr unsigned kUserLogicLink = 15;
inline constexpr unsigned kDmaPageBytes = 8192;
inline constexpr unsigned kDefaultFifoDepth = 128;  // the depth if superpage_fifo_depth reads 0
inline constexpr std::uint32_t kEndpointOneId = 0x11111111;
inline constexpr unsigned kLinksPerBank = 6;
inline constexpr unsigned kBanks = 4;  // banks of wrapper 0; endpoint e has banks 2e and 2e+1

/// The place of a link in the gbt_link_* rows: even links lie in the endpoint's even bank, odd ones in its odd bank.
constexpr std::uint32_t gbt_index(unsigned endpoint, unsigned link) {
  return (2 * endpoint + link % 2) * kLinksPerBank + link / 2;
}
/// The place of a link in the datapath_link_* rows.
constexpr std::uint32_t datapath_index(unsigned endpoint, unsigned link) { return endpoint * kDmaLinks + link; }

/// Converts the register `temperature`; nothing if the card has no sensor.
constexpr std::optional<double> temperature_celsius(std::uint32_t word) {
  const std::uint32_t raw = word & 0x3ff;
  return raw == 0 ? std::nullopt : std::optional(693.0 * raw / 1024 - 265);
}

// Values and fields.
inline constexpr std::uint32_t kDmaStart = 1;
inline constexpr Field kDmaFlush{8};            // dma_control: stop and flush
inline constexpr std::uint32_t kResetCard = 1;  // reset: link counters and size indices to zero
inline constexpr std::uint32_t kResetGenerator = 2;
inline constexpr std::uint32_t kSizeFifoNext = 0xbadcafe;  // any value
inline constexpr Field kSuperpageBytes{0, 24};             // superpage_size_fifo
inline constexpr Field kSuperpageIndex{24, 8};
inline constexpr Field kTimeFrameLength{20, 12};  // debug
inline constexpr Field kRunEnable{0};             // user_control
inline constexpr Field kResetTxFifo{7};
inline constexpr Field kResetRxFifo{8};
inline constexpr Field kCruId{16, 12};
inline constexpr Field kPonUpstream{0};     // pon_tx; defined here
inline constexpr Field kOnuAddress{1, 8};   // onu_control
inline constexpr Field kLoopbackOn{4};      // gbt_link_source
inline constexpr Field kClockSelect{0, 2};  // ttc_control: 0 TTC, 2 local
inline constexpr Field kDownstreamData{16, 2};
inline constexpr Field kStickyClear{28};
inline constexpr Field kPacketMode{31};  // datapath_link_control
inline constexpr Field kRawMaxLength{0, 31};
inline constexpr std::uint32_t kFullPage = 0x1fc;  // raw words of 16 bytes: with the header a page of 8 KiB
inline constexpr Field kAllowReject{0};            // datapath_flow_control
inline constexpr Field kFeeId{0, 16};              // datapath_link_ids, virtual_link_ids
inline constexpr Field kSystemId{16, 8};
inline constexpr Field kEnableUserLogic{15};  // datapath_enable; bits 0-11 are the links
inline constexpr Field kEnableUserAndCommonLogic{30};
inline constexpr Field kEnableDynamicOffset{31};
inline constexpr Field kLinkMode{8};   // gbt_link_tx_control and _rx_control: 0 GBT, 1 wide bus
inline constexpr Field kPllLocked{8};  // gbt_link_status
inline constexpr Field kRxLocked{10};
inline constexpr Field kDataUp{11};
inline constexpr Field kPhyUp{13};
inline constexpr Field kPhyWasDown{14};
inline constexpr Field kDataWasDown{15};

inline constexpr Register kRegisters[]{
    // BAR 0: DMA
    {"dma_control", 0, 0x200, 4, Access::read_write,
     "1 starts DMA and clears bit 8; bit 8 set stops DMA and flushes data under way"},
    {"superpage_address_high", 0, 0x204, 4, Access::read_write, "bus address of the superpage to push, bits 63:32", 16,
     0x10},
    {"superpage_address_low", 0, 0x208, 4, Access::read_write, "bus address of the superpage to push, bits 31:0", 16, 0x10},
    {"superpage_push", 0, 0x20c, 4, Access::command, "size in 8 KiB pages; writing it pushes the descriptor to the link", 16,
     0x10},
    {"firmware_compile_info", 0, 0x280, 4, Access::read, "legacy"},
    {"reset", 0, 0x400, 4, Access::command, "1 resets link counters and size indices, 2 the data generator's counter"},
    {"firmware_features", 0, 0x41c, 4, Access::read,
     "low half 5afe: standalone, and bits 16-19 mark missing parts: data selection, temperature, serial, firmware info"},
    {"endpoint_id", 0, 0x500, 4, Access::read, "0: endpoint 0, 11111111: endpoint 1"},
    {"generator_control", 0, 0x600, 4, Access::read_write,
     "bit 0 run; 2:1 pattern (counter, a5a5a5a5, 12345678); bit 3 inject an error"},
    {"generator_links", 0, 0x604, 4, Access::read_write, "links that the generator feeds (old firmware)"},
    {"generator_inject_error", 0, 0x608, 4, Access::command, "1 spoils one word"},
    {"generator_configuration", 0, 0x60c, 4, Access::read_write, "third word of the generator's configuration"},
    {"data_source", 0, 0x700, 4, Access::read_write, "0 datapath (links, or their own generator), 1 internal generator"},
    {"superpages_done", 0, 0x800, 4, Access::read, "superpages filled since the reset, free-running", 16, 4},
    {"superpage_size_fifo", 0, 0x840, 4, Access::command,
     "23:0 bytes of the oldest filled superpage, 31:24 its number since the reset modulo 256; any write goes on to the next",
     16, 4},
    {"fifo_empty_count", 0, 0x880, 4, Access::read, "times the link had data and no superpage", 16, 4},
    {"debug", 0, 0xc00, 4, Access::read_write, "2: debug mode of the internal generator; 31:20 time frame length in orbits"},
    {"superpage_fifo_depth", 0, 0xc04, 4, Access::read, "descriptors that a link takes; 0 means 128"},
    // BAR 2: identity and board
    {"firmware_dirty", 2, 0x0, 4, Access::read, "not 0: built from changed sources"},
    {"firmware_hash", 2, 0x4, 4, Access::read, "first 32 bits of the commit"},
    {"firmware_date", 2, 0x8, 4, Access::read, "yyyymmdd as hexadecimal digits"},
    {"firmware_time", 2, 0xc, 4, Access::read, "hhmmss as hexadecimal digits"},
    {"board_type", 2, 0x10, 4, Access::read, "type of board"},
    {"user_control", 2, 0x18, 4, Access::read_write, "bit 0 data taking, 7 reset TX FIFO, 8 reset RX FIFO, 27:16 CRU id"},
    {"gbt_mux", 2, 0x1c, 4, Access::read_write,
     "data sent down each link, 4 bits a link: 0 TTC, 1 DDG, 2 SWT, 3 TTC up, 4 user logic", 3, 4},
    {"temperature", 2, 0x10008, 4, Access::read, "10 bits: 693 x raw / 1024 - 265 degrees; 0: none"},
    {"chip_id_high", 2, 0x10014, 4, Access::read, "FPGA's own id"},
    {"chip_id_low", 2, 0x10018, 4, Access::read, "FPGA's own id"},
    {"i2c_sfp_configuration", 2, 0x30200, 4, Access::read_write, "chip 30:16, register 15:8, data 7:0"},
    {"i2c_sfp_command", 2, 0x30204, 4, Access::command, "8 reset, 1 write, 2 read, 4 probe; then 0"},
    {"i2c_sfp_data", 2, 0x30210, 4, Access::read, "bit 31 ready, 7:0 data"},
    {"i2c_minipod_configuration", 2, 0x30300, 4, Access::read_write, "chip, register, data of the optical modules' bus"},
    {"i2c_minipod_command", 2, 0x30304, 4, Access::command, "8 reset, 1 write, 2 read, 4 probe; then 0"},
    {"i2c_minipod_data", 2, 0x30310, 4, Access::read, "bit 31 ready, 7:0 data"},
    {"i2c_pll_configuration", 2, 0x30400, 4, Access::read_write, "chip, register, data: Si5344, Si5345 #1, Si5345 #2", 3,
     0x100},
    {"i2c_pll_command", 2, 0x30404, 4, Access::command, "8 reset, 1 write, 2 read, 4 probe; then 0", 3, 0x100},
    {"i2c_pll_data", 2, 0x30410, 4, Access::read, "bit 31 ready, 7:0 data", 3, 0x100},
    {"i2c_eeprom_configuration", 2, 0x30800, 4, Access::read_write, "chip, register, data of the EEPROM's bus"},
    {"i2c_eeprom_command", 2, 0x30804, 4, Access::command, "2 also makes `serial` readable within 40 ms"},
    {"i2c_eeprom_data", 2, 0x30810, 4, Access::read, "bit 31 ready, 7:0 data"},
    {"serial", 2, 0x30818, 4, Access::read, "four ASCII digits, first in the lowest byte"},
    {"pon_quality", 2, 0x10000c, 4, Access::read, "PON quality status"},
    {"virtual_link_ids", 2, 0x100014, 4, Access::read_write,
     "15:0 FEE id, 23:16 system id of run statistics and user logic"},
    // TTC and clocks
    {"ttc_control", 2, 0x200000, 4, Access::read_write,
     "1:0 clock (0 TTC, 2 local), 17:16 downstream data (CTP, pattern, mid-trigger), 28 sticky clear"},
    {"ttc_heartbeats", 2, 0x200004, 4, Access::read, "HB triggers, free-running"},
    {"ttc_physics", 2, 0x200008, 4, Access::read, "physics triggers, free-running"},
    {"ttc_sox_eox", 2, 0x20000c, 4, Access::read, "3:0 starts, 7:4 ends of run"},
    {"ttc_onu_sticky", 2, 0x200014, 4, Access::read, "bit set: was bad since the last clear"},
    {"ttc_tof_cal", 2, 0x200018, 4, Access::read, "15:0 TOF, 31:16 calibration triggers"},
    {"ttc_onu_glitches", 2, 0x200020, 4, Access::read, "glitches of the ONU"},
    {"ttc_lock_clock", 2, 0x220000, 4, Access::read_write, "lock the clock to the PON's"},
    {"pon_control", 2, 0x222000, 4, Access::read_write, "PON transceiver"},
    {"pon_mgt_sticky", 2, 0x222014, 4, Access::read, "transceiver's sticky flags"},
    {"pon_refgen", 2, 0x222048, 4, Access::read_write, "reference generator"},
    {"pon_pll", 2, 0x224000, 4, Access::read_write, "PLL of the PON's upstream"},
    {"pon_tx", 2, 0x226000, 4, Access::read_write, "transmitter of the PON"},
    {"onu_control", 2, 0x22a000, 4, Access::read_write, "bit 0 reset, 8:1 address"},
    {"onu_fec_status", 2, 0x22a004, 4, Access::read, "slow control framing and CRC latches"},
    {"onu_status", 2, 0x22a00c, 4, Access::read,
     "bits from 0: rx40 locked, phase good, rx locked, operational, MGT tx ready, rx ready, tx PLL, rx PLL"},
    {"onu_fec_single_errors", 2, 0x22a020, 4, Access::read, "corrected errors"},
    {"onu_fec_double_errors", 2, 0x22a028, 4, Access::read, "uncorrected errors"},
    {"ctp_clock_hz", 2, 0x240000, 4, Access::read, "clock of the trigger system"},
    {"local_clock_hz", 2, 0x240004, 4, Access::read, "clock of the board"},
    {"clock_control", 2, 0x240010, 4, Access::read_write, "clock tree"},
    {"onu_pll_control", 2, 0x240018, 4, Access::read_write, "ONU's PLL"},
    {"onu_fpll", 2, 0x248000, 4, Access::read_write, "ONU's fractional PLL"},
    // Pattern player
    {"pattern_control", 2, 0x260000, 4, Access::command,
     "bit 0 configure, 4 execute pattern 2, 8 execute pattern 1, 12 pattern 1 at start"},
    {"pattern_0", 2, 0x260004, 4, Access::read_write, "80 bits, lowest word first", 3, 4},
    {"pattern_1", 2, 0x260010, 4, Access::read_write, "80 bits", 3, 4},
    {"pattern_2", 2, 0x26001c, 4, Access::read_write, "80 bits", 3, 4},
    {"pattern_1_length", 2, 0x260028, 4, Access::read_write, "clock ticks"},
    {"pattern_1_delay", 2, 0x26002c, 4, Access::read_write, "clock ticks"},
    {"pattern_2_length", 2, 0x260030, 4, Access::read_write, "clock ticks"},
    {"pattern_trigger_select", 2, 0x260034, 4, Access::read_write, "trigger bit that plays pattern 1, 2, 3", 3, 4},
    {"pattern_2_time_frames", 2, 0x260040, 4, Access::read_write, "pattern 2 every so many time frames"},
    {"pattern_3_length", 2, 0x260044, 4, Access::read_write, "clock ticks"},
    {"pattern_3", 2, 0x260048, 4, Access::read_write, "80 bits", 3, 4},
    // CTP emulator
    {"ctp_control", 2, 0x280000, 4, Access::read_write, "bit 31 holds the emulator in reset"},
    {"ctp_bc_max", 2, 0x280004, 4, Access::read_write, "last bunch crossing of an orbit (3563)"},
    {"ctp_hb_max", 2, 0x280008, 4, Access::read_write, "heartbeat frames of a time frame, minus one"},
    {"ctp_hb_prescale", 2, 0x28000c, 4, Access::read_write, "15:0 heartbeats kept, 31:16 dropped"},
    {"ctp_run_mode", 2, 0x280010, 4, Access::read_write,
     "1:0 manual, periodic, continuous, idle (going idle ends the run); 2 flow control; 8 one trigger"},
    {"ctp_physics_divisor", 2, 0x280014, 4, Access::read_write, "clock ticks between physics triggers"},
    {"ctp_hc_divisor", 2, 0x280018, 4, Access::read_write, "clock ticks between HC triggers"},
    {"ctp_cal_divisor", 2, 0x280020, 4, Access::read_write, "clock ticks between calibration triggers"},
    {"ctp_fixed_bc", 2, 0x280024, 4, Access::command, "nine writes: bunch crossings that get a trigger"},
    {"ctp_first_orbit", 2, 0x280028, 4, Access::read_write, "orbit that a run begins with"},
    // GBT wrappers: wrapper 0 runs, wrapper 1 does not
    {"gbt_wrapper_banks", 2, 0x400000, 4, Access::read, "links of each bank b in bits 4b+7:4b+4", 2, 0x100000},
    {"gbt_wrapper_links", 2, 0x400004, 4, Access::read, "31:24 links of the wrapper", 2, 0x100000},
    {"gbt_wrapper_test", 2, 0x400008, 4, Access::read_write, "test control", 2, 0x100000},
    {"gbt_wrapper_clock", 2, 0x40000c, 4, Access::read,
     "counts while the wrapper runs; a wrapper counts only if two reads differ", 2, 0x100000},
    {"gbt_bank_fpll", 2, 0x42e000, 4, Access::read_write, "PLL of a bank", 4, 0x20000},
    {"gbt_wrapper_atx_pll", 2, 0x4e0000, 4, Access::read_write, "transmit PLL of the wrapper", 2, 0x100000},
    {"gbt_link_status", 2, 0x422000, 4, Access::read,
     "8 PLL, 10 receiver locked, 11 data up, 13 PHY up, 14 PHY was down, 15 data was down", 6, 0x2000, 4, 0x20000},
    {"gbt_link_tx_hz", 2, 0x422004, 4, Access::read, "transmit clock", 6, 0x2000, 4, 0x20000},
    {"gbt_link_rx_hz", 2, 0x422008, 4, Access::read, "receive clock", 6, 0x2000, 4, 0x20000},
    {"gbt_link_rx_errors", 2, 0x422010, 4, Access::read, "errors of the receiver", 6, 0x2000, 4, 0x20000},
    {"gbt_link_fec_errors", 2, 0x42201c, 4, Access::read, "errors that FEC corrected", 6, 0x2000, 4, 0x20000},
    {"gbt_link_mask_high", 2, 0x422020, 4, Access::read_write, "loopback test: compared bits", 6, 0x2000, 4, 0x20000},
    {"gbt_link_mask_medium", 2, 0x422024, 4, Access::read_write, "loopback test: compared bits", 6, 0x2000, 4, 0x20000},
    {"gbt_link_mask_low", 2, 0x422028, 4, Access::read_write, "loopback test: compared bits", 6, 0x2000, 4, 0x20000},
    {"gbt_link_tx_control", 2, 0x42202c, 4, Access::read_write, "bit 8: 0 GBT, 1 wide bus", 6, 0x2000, 4, 0x20000},
    {"gbt_link_source", 2, 0x422030, 4, Access::read_write, "bits 1 and 2 data generator, 4 loopback, 5 static pattern", 6,
     0x2000, 4, 0x20000},
    {"gbt_link_clear_errors", 2, 0x422038, 4, Access::command, "1 then 0 clears errors and sticky bits", 6, 0x2000, 4,
     0x20000},
    {"gbt_link_rx_control", 2, 0x42203c, 4, Access::read_write, "bit 8: 0 GBT, 1 wide bus", 6, 0x2000, 4, 0x20000},
    {"gbt_link_glitches", 2, 0x422044, 4, Access::read, "times the link's state changed", 6, 0x2000, 4, 0x20000},
    {"gbt_link_transceiver", 2, 0x423000, 4, Access::read_write, "transceiver's own registers", 6, 0x2000, 4, 0x20000},
    // Datapath wrappers: one an endpoint
    {"datapath_enable", 2, 0x600000, 4, Access::read_write,
     "0-11 links, 13 and 14 run statistics, 15 user logic, 30 user and common logic, 31 dynamic offset", 2, 0x100000},
    {"datapath_generator", 2, 0x600004, 4, Access::read_write, "bit 0 reset, 1 run, 31 use it in place of the links", 2,
     0x100000},
    {"datapath_status", 2, 0x600008, 4, Access::read, "wrapper's status", 2, 0x100000},
    {"datapath_big_fifo", 2, 0x60000c, 4, Access::read, "words in the common FIFO", 2, 0x100000},
    {"datapath_words", 2, 0x600010, 4, Access::read, "words since the start", 2, 0x100000},
    {"datapath_dropped_words", 2, 0x600014, 4, Access::read, "words lost since the start", 2, 0x100000},
    {"datapath_packets", 2, 0x600018, 4, Access::read, "packets since the start", 2, 0x100000},
    {"datapath_dropped_packets", 2, 0x60001c, 4, Access::read, "packets lost since the start", 2, 0x100000},
    {"datapath_first_orbit", 2, 0x64002c, 4, Access::read, "orbit of the first packet of the run", 2, 0x100000},
    {"datapath_packet_hz", 2, 0x60002c, 4, Access::read, "packets in the last second", 2, 0x100000},
    {"datapath_drop_hz", 2, 0x600030, 4, Access::read, "packets lost in the last second", 2, 0x100000},
    {"datapath_trigger_window", 2, 0x600034, 4, Access::read_write, "15:0 bunch crossings", 2, 0x100000},
    {"datapath_drop_bad_rdh", 2, 0x600038, 4, Access::read_write, "1: pages whose header is wrong are dropped", 2, 0x100000},
    {"datapath_flow_control", 2, 0x6c0000, 4, Access::read_write, "bit 0: heartbeat frames may be rejected", 2, 0x100000},
    {"datapath_flow_rejected", 2, 0x6c0004, 4, Access::read, "heartbeat frames rejected", 2, 0x100000},
    {"datapath_flow_total", 2, 0x6c0008, 4, Access::read, "heartbeat frames seen", 2, 0x100000},
    {"datapath_link_control", 2, 0x640000, 4, Access::read_write,
     "bit 31: packet mode, else streaming; below: longest raw packet in words of 16 bytes (1fc: a full page)", 16, 0x2000, 2,
     0x100000},
    {"datapath_link_ids", 2, 0x640004, 4, Access::read_write, "15:0 FEE id, 23:16 system id", 16, 0x2000, 2, 0x100000},
    {"datapath_link_rejected", 2, 0x640008, 4, Access::read, "packets rejected", 16, 0x2000, 2, 0x100000},
    {"datapath_link_accepted", 2, 0x64000c, 4, Access::read, "packets accepted", 16, 0x2000, 2, 0x100000},
    {"datapath_link_forced", 2, 0x640010, 4, Access::read, "packets closed by force", 16, 0x2000, 2, 0x100000},
    {"datapath_link_processed", 2, 0x640014, 4, Access::read, "packets processed", 16, 0x2000, 2, 0x100000},
    {"datapath_link_protocol_errors", 2, 0x640018, 4, Access::read, "packets against the protocol", 16, 0x2000, 2, 0x100000},
    {"datapath_link_check_1", 2, 0x64001c, 4, Access::read, "packets that failed check 1; 23:16 bad headers dropped", 16,
     0x2000, 2, 0x100000},
    {"datapath_link_check_2", 2, 0x640020, 4, Access::read, "packets that failed check 2", 16, 0x2000, 2, 0x100000},
    {"datapath_link_oversize", 2, 0x640024, 4, Access::read, "packets above the longest", 16, 0x2000, 2, 0x100000},
    {"datapath_link_first_orbit", 2, 0x640028, 4, Access::read, "orbit of the start of run", 16, 0x2000, 2, 0x100000},
    // User logic, detector data generator
    {"user_logic_hash", 2, 0xc00004, 4, Access::read, "commit of the user logic"},
    {"user_logic_reset", 2, 0xc80000, 4, Access::command, "1 resets the example user logic"},
    {"user_logic_event_size", 2, 0xc80004, 4, Access::read_write, "event size of the example user logic, in 256-bit words"},
    {"user_logic_random", 2, 0xc80008, 4, Access::command, "1 toggles random sizes"},
    {"user_logic_system_id", 2, 0xc8000c, 4, Access::read_write, "system id"},
    {"user_logic_link_id", 2, 0xc80010, 4, Access::read_write, "link id"},
    {"ddg_control", 2, 0xd00000, 4, Access::read_write, "detector data generator"},
    {"ddg_control_2", 2, 0xd00004, 4, Access::read_write, "second word"},
    {"ddg_control_3", 2, 0xd00008, 4, Access::read_write, "third word"},
    {"ddg_trigger_mask", 2, 0xd0000c, 4, Access::read_write, "triggers that make a packet"},
    {"ddg_packets", 2, 0xd00010, 4, Access::read, "packets made"},
    {"ddg_missed_triggers", 2, 0xd00014, 4, Access::read, "triggers without a packet"},
    // Slow control: one row of 24 raw links (12 x endpoint + link)
    {"sca_write_data", 2, 0xf00000, 4, Access::read_write, "SCA: data to send", 24, 0x100},
    {"sca_write_command", 2, 0xf00004, 4, Access::read_write, "SCA: command to send", 24, 0x100},
    {"sca_control", 2, 0xf00008, 4, Access::command, "SCA: 4 sends", 24, 0x100},
    {"sca_read_data", 2, 0xf00010, 4, Access::read, "SCA: data received", 24, 0x100},
    {"sca_read_command", 2, 0xf00014, 4, Access::read, "SCA: command received", 24, 0x100},
    {"sca_status", 2, 0xf00018, 4, Access::read, "SCA: 31 busy", 24, 0x100},
    {"ic_write", 2, 0xf00020, 4, Access::read_write, "IC: 15:0 address, 23:16 data", 24, 0x100},
    {"ic_write_configuration", 2, 0xf00024, 4, Access::read_write, "IC: I2C address of the GBTx", 24, 0x100},
    {"ic_command", 2, 0xf00028, 4, Access::command, "IC: 1 takes ic_write, 4 writes, 8 reads, 2 takes the answer", 24,
     0x100},
    {"ic_read", 2, 0xf00030, 4, Access::read, "IC: 7:0 data, 15:8 address of the GBTx, 16 empty, 31 ready", 24, 0x100},
    {"swt_write", 2, 0xf00040, 4, Access::read_write, "SWT: bits 31:0; writing sends the word", 24, 0x100},
    {"swt_write_medium", 2, 0xf00044, 4, Access::read_write, "SWT: bits 63:32", 24, 0x100},
    {"swt_write_high", 2, 0xf00048, 4, Access::read_write, "SWT: bits 75:64", 24, 0x100},
    {"swt_read", 2, 0xf00050, 4, Access::read, "SWT: bits 31:0 of the first word that waits, which it takes", 24, 0x100},
    {"swt_read_medium", 2, 0xf00054, 4, Access::read, "SWT: bits 63:32 of the word taken", 24, 0x100},
    {"swt_read_high", 2, 0xf00058, 4, Access::read, "SWT: bits 75:64 of the word taken", 24, 0x100},
    {"swt_monitor", 2, 0xf0005c, 4, Access::read, "SWT: 31:16 words waiting", 24, 0x100},
    {"slow_control_link", 2, 0xf00078, 4, Access::read_write, "link selected", 24, 0x100},
    {"slow_control_reset", 2, 0xf0007c, 4, Access::command, "resets the cores", 24, 0x100},
};

/// A register by its name; a name that is not in the table does not compile.
consteval const Register& reg(std::string_view name) { return named(kRegisters, name); }

/// The whole map.
inline constexpr RegisterMap kMap{"CRU", kRegisters};

}  // namespace rodeo::card_registers::cru
