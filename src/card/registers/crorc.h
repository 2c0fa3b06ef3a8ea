// The ALICE C-RORC: one PCIe function with six BARs, one for each of its six links, all of the same layout; its DMA reports
// through a block of the host's memory. Offsets are those that the public ReadoutCard driver uses; parts that no source
// specifies say "defined here".
#pragma once

#include "card_registers/register_map.h"

namespace rodeo::card_registers::crorc {

inline constexpr PciId kPciId{0x10dc, 0x0033};
inline constexpr unsigned kLinks = 6;  // link N = BAR N = DMA channel N
// 4 KiB a BAR: defined here (the highest register is 0x1f4).
inline constexpr BarSize kBars[]{{0, 4096}, {1, 4096}, {2, 4096}, {3, 4096}, {4, 4096}, {5, 4096}};
inline constexpr unsigned kDmaPageBytes = 8192;

/// The card writes this to the host's information buffer when a superpage is done: size first, then the count. One cache
/// line is enough.
struct Completion {
  std::uint32_t bytes;  // bytes written to the superpage
  std::uint32_t count;  // low 8 bits: superpages done, the first value written is 0
};
inline constexpr std::uint32_t kCompletionSeed = 0xff;  // the host writes this to count before a start

// Values and fields.
inline constexpr std::uint32_t kResetCard = 3;  // csr
inline constexpr Field kRxToggle{9};            // channel_csr: writing 1 turns the receiver on or off
inline constexpr Field kChannelLoopback{12};    // toggles
inline constexpr Field kLinkDown{13};
inline constexpr Field kStatusNotEmpty{23};           // ddl_status holds an answer
inline constexpr std::uint32_t kCommandRdyrx = 0x14;  // ddl_command
inline constexpr std::uint32_t kCommandEobtr = 0xb4;
inline constexpr std::uint32_t kCommandStbrd = 0x54;
inline constexpr std::uint32_t kCommandSiuReset = 0xf1;
inline constexpr std::uint32_t kCommandDiuLoop = 0x91;
inline constexpr std::uint32_t kCommandSiuLoop = 0x92;
inline constexpr Field kPushedBytes{8, 24};         // superpage_push, when read
inline constexpr Field kGeneratorRun{31};           // data_generator
inline constexpr Field kQsfpUp{31};                 // link_status
inline constexpr std::uint32_t kQsfpEnable = 0x80;  // i2c
// Flash, as the public driver uses it: flash_command sets the address, then writes to or reads from the flash chip there.
// The written values are words or commands of the chip (Intel's command set).
// Written to flash_command: the serial number is in `serial` 500 ms later.
inline constexpr std::uint32_t kReadSerial = 0xc0000000;
inline constexpr std::uint32_t kFlashSetAddress = 0x01000000;  // | address in 16-bit words
inline constexpr std::uint32_t kFlashBusWrite = 0x03000000;    // | word for the chip, at the address set
inline constexpr std::uint32_t kFlashBusRead = 0x04000000;     // the chip's word at the address goes to flash_data
inline constexpr Field kFlashAddress{0, 24};
inline constexpr std::uint32_t kChipEraseSetup = 0x20;
inline constexpr std::uint32_t kChipProgram = 0x40;  // the next write is the word
inline constexpr std::uint32_t kChipClearStatus = 0x50;
inline constexpr std::uint32_t kChipLockSetup = 0x60;  // then kChipConfirm unlocks the block
inline constexpr std::uint32_t kChipReadStatus = 0x70;
inline constexpr std::uint32_t kChipConfirm = 0xd0;
inline constexpr std::uint32_t kChipReadArray = 0xff;  // reads give words again
inline constexpr std::uint32_t kChipReady = 0x80;      // status without a fault; other bits name the failure
inline constexpr std::uint32_t kFlashBlockWords = 0x10000;
inline constexpr std::uint32_t kFlashLastAddress = 0x46ffff;  // last word of the firmware
// The serial number: up to five ASCII digits from byte 33 of block 0x470000 on, two bytes a word, the first in the high one
// (upstream's Crorc/Constants.h, namespace Serial).
inline constexpr std::uint32_t kFlashSerialWord = 0x470010;
inline constexpr unsigned kFlashSerialDigits = 5;
inline constexpr Field kDynamicOffset{0};  // configuration
inline constexpr Field kCrorcId{4, 12};
inline constexpr Field kTimeFrameLength{0, 12};  // time_frame
inline constexpr Field kTimeFrameDetection{12};
inline constexpr Field kFlush{16};

// One row a register; `bar` is the first BAR that has it, and BAR N has the same offsets.
inline constexpr Register kRegisters[]{
    {"csr", 0, 0x0, 4, Access::command, "3 resets the channel"},
    {"channel_csr", 0, 0x10, 4, Access::command,
     "bit 9 toggles the receiver, 12 the loopback; reads 13 link down, 23 answer waiting"},
    {"ddl_command", 0, 0x18, 4, Access::command,
     "command to DIU or SIU: f1 SIU reset, 14 ready to receive, 54 start block read, b4 end of block, 91 and 92 loops"},
    {"ddl_status", 0, 0x1c, 4, Access::command, "oldest answer of DIU or SIU; reading takes it"},
    {"data_generator", 0, 0x20, 4, Access::read_write, "bit 31 run"},
    {"superpage_push", 0, 0x28, 4, Access::command,
     "size in bytes; writing it pushes the descriptor. Reads size in 31:8, pushes in 7:0"},
    {"superpage_address_low", 0, 0x2c, 4, Access::read_write, "bus address, bits 31:0"},
    {"superpage_address_high", 0, 0x30, 4, Access::read_write, "bus address, bits 63:32"},
    {"info_address_low", 0, 0x40, 4, Access::read_write, "bus address of the information buffer, bits 31:0"},
    {"info_address_high", 0, 0x44, 4, Access::read_write, "bus address of the information buffer, bits 63:32"},
    {"acquisition_rate", 0, 0x50, 4, Access::read, "packets in the last second"},
    {"packets_received", 0, 0x54, 4, Access::read, "packets since the start"},
    {"first_orbit", 0, 0x60, 4, Access::read, "orbit of the start of run"},
    {"link_status", 0, 0xa0, 4, Access::read, "bit 31: QSFP enabled"},
    {"i2c", 0, 0xd0, 4, Access::command, "80 enables the QSFP"},
    {"flash_command", 0, 0xf0, 4, Access::command,
     "31:24 = 1 sets the address to 23:0, 3 writes 15:0 to the flash chip there, 4 reads from it, c0000000 fetches the "
     "serial number"},
    {"flash_data", 0, 0xf4, 4, Access::read, "15:0 answer of the flash chip: a word, or its status"},
    {"flash_status", 0, 0xf8, 4, Access::read, "not 0: ready for the next command"},
    {"serial", 0, 0xfc, 4, Access::read, "four ASCII digits, first in the lowest byte"},
    {"optical_power_0_1", 0, 0x144, 4, Access::read, "two links, 16 bits each, in 0.1 uW"},
    {"optical_power_2_3", 0, 0x148, 4, Access::read, "two links, 16 bits each, in 0.1 uW"},
    {"optical_power_4_5", 0, 0x154, 4, Access::read, "two links, 16 bits each, in 0.1 uW"},
    {"firmware_hash", 0, 0x19c, 4, Access::read, "first 32 bits of the commit"},
    {"configuration", 0, 0x1f0, 4, Access::read_write, "bit 0 dynamic offset, 15:4 C-RORC id"},
    {"time_frame", 0, 0x1f4, 4, Access::read_write, "11:0 length in orbits, 12 detection, 16 flush"},
};

/// A register by its name; a name that is not in the table does not compile.
consteval const Register& reg(std::string_view name) { return named(kRegisters, name); }

/// The map of channel 0's BAR. For the BAR of another channel, call at() with BAR 0.
inline constexpr RegisterMap kMap{"C-RORC", kRegisters};

}  // namespace rodeo::card_registers::crorc
