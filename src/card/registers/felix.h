// The FELIX FLX-712: two PCIe functions (endpoints); BAR 0 is DMA (Wupper), BAR 1 interrupts, BAR 2 the rest. 64-bit
// registers. DMA places follow the Wupper design document and its register map 2.0; parts that no source specifies say
// "defined here".
#pragma once

#include "card_registers/register_map.h"

namespace rodeo::card_registers::felix {

inline constexpr PciId kPciIds[]{{0x10dc, 0x0427}, {0x10dc, 0x0428}};       // endpoint 0, endpoint 1
inline constexpr PciId kOlderPciIds[]{{0x10ee, 0x7038}, {0x10ee, 0x7039}};  // the same with Xilinx's vendor id
inline constexpr BarSize kBars[]{{0, 4096}, {1, 4096}, {2, 64 << 10}};      // sizes: defined here
inline constexpr unsigned kLinks = 12;                                      // per endpoint (24 a card)
inline constexpr unsigned kDescriptors = 5;             // number of descriptors as built: 0-3 to the host, 4 from the host
inline constexpr unsigned kToHostDescriptors = 4;       // = DMA channels for reading
inline constexpr unsigned kMaxDescriptors = 8;          // rows in the map
inline constexpr unsigned kFromHostTlpBytes = 32;       // one packet, so that no packet waits for the next
inline constexpr std::uint64_t kPointerGap = 16 << 20;  // value of dma_pointer_gap after a reset
inline constexpr std::uint64_t kCardType712 = 0x2c8;
// The version of this file's map of BAR 2: major << 8 | minor, 254.0. No public map has this number. FELIX's own maps 4
// and 5 of BAR 2 are not public, so a card that reports one of them is read by address alone.
inline constexpr std::uint16_t kRegisterMapVersion = 0xfe00;
inline constexpr const char* kRegisterMapName = "254.0";

/// Firmware modes by their number in firmware_mode.
enum class FirmwareMode : std::uint8_t {
  gbt,
  full,
  ltdb,
  fei4,
  itk_pixel,
  itk_strip,
  felig,
  full_emulator,
  mrod,
  lpgbt,
  interlaken
};

/// Converts the register `temperature`; nothing if the card has no sensor.
constexpr std::optional<double> temperature_celsius(std::uint64_t word) {
  const std::uint64_t raw = word & 0xfff;
  return raw == 0 ? std::nullopt : std::optional(503.975 * static_cast<double>(raw) / 4096 - 273.15);
}

// Fields of dma_control.
inline constexpr Field kTlpWords{0, 11};
inline constexpr Field kFromHost{11};
inline constexpr Field kWrapAround{12};  // circular: the card continues at the start, and stops behind dma_read_pointer
// Fields of dma_status.
inline constexpr Field kDone{0};
inline constexpr Field kEvenDma{1};   // toggles each time the card's position wraps
inline constexpr Field kEvenHost{2};  // toggles each time the software's read pointer wraps
// Circular mode, as in Wupper's dma_control.vhd and dma_read_write.vhd. dma_position is the bus address of the next byte
// that the card will write; all bytes before it have arrived. Both parities are 0 while a descriptor is disabled. kEvenDma
// flips when the position wraps. kEvenHost flips when the read pointer goes back by more than dma_pointer_gap; this is 16
// MiB after a reset, so kEvenHost never flips in a smaller memory. The card stops at the read pointer only while the
// parities differ. If position and pointer are equal, the memory is empty when the parities are equal, and full when they
// differ. So all of the memory belongs to the card from the enable on, wherever the pointer is. The card cannot see one full
// lap of the read pointer. So the driver never frees all of a full memory in one step, but keeps the pointer one block back
// until the card has moved. BAR 0 of an emulated card is memory that both sides map: accesses do not trap, and the card
// polls it. Therefore (defined here): kDone is 0 while a descriptor runs. After setting the enable bit the driver waits
// until kDone is 0 (then position = start and both parities are 0); after clearing it, until kDone is 1 (then the card has
// stopped writing). A command register of BAR 0 reads 0 again when the card has executed it.

// A from-host descriptor works the other way round: dma_read_pointer is where the software will write next, dma_position
// where the card will read next. The card stops at the pointer while the parities are equal; one packet of the memory stays
// free.

inline constexpr Register kRegisters[]{
    // BAR 0: DMA
    {"dma_start", 0, 0x0, 8, Access::read_write, "bus address where the memory of the descriptor begins", 8, 0x20},
    {"dma_end", 0, 0x8, 8, Access::read_write, "bus address behind its last byte", 8, 0x20},
    {"dma_control", 0, 0x10, 8, Access::read_write, "10:0 TLP length in 32-bit words, 11 from host, 12 circular", 8, 0x20},
    {"dma_read_pointer", 0, 0x18, 8, Access::read_write, "bus address up to which the software has read", 8, 0x20},
    {"dma_position", 0, 0x200, 8, Access::read, "bus address of the next byte that the card will write", 8, 0x10},
    {"dma_status", 0, 0x208, 8, Access::read,
     "0 not running, 1 parity of the card's wraps, 2 parity of the read pointer's wraps", 8, 0x10},
    {"dma_enable", 0, 0x400, 8, Access::read_write,
     "one bit a descriptor; enabling begins at its start with empty memory and both parities 0"},
    {"dma_fifo_flush", 0, 0x410, 8, Access::command, "1 empties the FIFOs before the DMA"},
    {"dma_reset", 0, 0x420, 8, Access::command, "1 disables all descriptors and clears positions"},
    {"soft_reset", 0, 0x430, 8, Access::command, "1 resets the datapath"},
    {"register_reset", 0, 0x440, 8, Access::command, "1 sets BAR 2 back to its defaults"},
    {"dma_pointer_gap", 0, 0x4a0, 8, Access::read_write,
     "a read pointer that goes back by more bytes than this begins a new lap; of all descriptors, 16 MiB after a reset"},
    // BAR 1: interrupts
    {"interrupt_enable", 1, 0x100, 8, Access::read_write,
     "one bit a vector; meanings defined here: 0-3 data of the descriptor, 6 card's FIFO full, 7 busy"},
    // BAR 2: identity and housekeeping
    {"register_map_version", 2, 0x0, 8, Access::read, "15:8 major, 7:0 minor"},
    {"build_time", 2, 0x10, 8, Access::read, "firmware's build: yymmddhhmm as hexadecimal digits"},
    {"git_commit_time", 2, 0x20, 8, Access::read, "time of the commit, seconds since 1970"},
    {"git_tag", 2, 0x30, 8, Access::read, "eight characters"},
    {"git_commit_number", 2, 0x40, 8, Access::read, "commits since the tag"},
    {"git_hash", 2, 0x50, 8, Access::read, "31:0 first 32 bits of the commit"},
    {"status_leds", 2, 0x60, 8, Access::read_write, "LEDs of the board"},
    {"generic_constants", 2, 0x70, 8, Access::read, "7:0 descriptors, 15:8 interrupts"},
    {"card_type", 2, 0x80, 8, Access::read, "2c8: FLX-712"},
    {"pcie_endpoint", 2, 0x90, 8, Access::read, "this function's endpoint"},
    {"pcie_endpoints", 2, 0xa0, 8, Access::read, "endpoints of the card"},
    {"firmware_mode", 2, 0xb0, 8, Access::read, "0 GBT, 1 FULL, ... 9 lpGBT; place defined here"},
    {"links", 2, 0xc0, 8, Access::read, "links of this endpoint; place defined here"},
    {"block_bytes", 2, 0xd0, 8, Access::read, "size of a block: 1024 x n; place defined here"},
    {"serial", 2, 0xe0, 8, Access::read, "serial number of the board; defined here"},
    {"from_host_length_is_5bit", 2, 0xf0, 8, Access::read,
     "how from-host packets tell their length: 1 by 5 bits, in bytes; 0 by 4, in 16-bit words; place defined here"},
    {"pll_lock", 2, 0x1300, 8, Access::read, "bit 0: main clock locked"},
    {"temperature", 2, 0x1330, 8, Access::read, "12 bits: 503.975 x raw / 4096 - 273.15 degrees; 0: none"},
    {"core_voltage", 2, 0x1340, 8, Access::read, "12 bits: 3 V x raw / 4096"},
    {"fpga_dna", 2, 0x1370, 8, Access::read, "FPGA's own id"},
    {"interrupt_test", 2, 0x1800, 8, Access::command, "3:0 raises this vector"},
    {"dma_busy_status", 2, 0x1810, 8, Access::read_write,
     "0 to-host busy, 1 from-host busy, 2 from-host and 3 to-host busy latched, 4 enables busy"},
    // Links
    {"elinks_enabled", 2, 0x4000, 8, Access::read_write,
     "one bit an E-link of the link (e-group x 8 + e-path); defined here", 24, 0x10},
    {"link_status", 2, 0x4200, 8, Access::read, "0 aligned, 1 was not since the last write, 31:16 errors; defined here", 24,
     0x10},
    {"link_optical_power", 2, 0x4400, 8, Access::read, "in 0.1 uW; defined here", 24, 0x10},
    {"link_channel", 2, 0x4600, 8, Access::read_write, "DMA channel (descriptor) that takes the link's blocks; defined here",
     24, 0x10},
    {"blocks_sent", 2, 0x4800, 8, Access::read,
     "blocks written to the host's memory since the channel's enable; defined here", 4, 0x10},
    {"blocks_dropped", 2, 0x4840, 8, Access::read, "blocks that the card lost since the channel's enable; defined here", 4,
     0x10},
    {"generator_control", 2, 0x4900, 8, Access::read_write, "bit 0: the internal generator feeds the links; defined here"},
};

/// A register by its name; a name that is not in the table does not compile.
consteval const Register& reg(std::string_view name) { return named(kRegisters, name); }

/// The whole map.
inline constexpr RegisterMap kMap{"FELIX", kRegisters};

/// The registers with the same place in every map: BARs 0 and 1, and the version of the map.
inline constexpr RegisterMap kCommonMap{
    "FELIX", std::span(kRegisters, static_cast<std::size_t>(&reg("register_map_version") - kRegisters) + 1)};

}  // namespace rodeo::card_registers::felix
