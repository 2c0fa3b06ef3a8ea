#include "emulator/config_space.h"

#include <bit>
#include <cstring>

namespace rodeo::emulator {
namespace {

constexpr std::size_t kCommand = 0x04;
constexpr std::size_t kPower = 0x40;
constexpr std::size_t kMsi = 0x48;
constexpr std::size_t kExpress = 0x60;
constexpr std::size_t kDeviceControl = kExpress + 8;
constexpr std::uint16_t kBusMaster = 1U << 2;
constexpr std::uint16_t kFunctionReset = 1U << 15;  // bit of the device control register

}  // namespace

template <typename T>
void ConfigSpace::put(std::size_t at, T value, T writable) {
  std::memcpy(bytes_.data() + at, &value, sizeof value);
  std::memcpy(writable_.data() + at, &writable, sizeof writable);
}

ConfigSpace::ConfigSpace(card_registers::PciId id, std::span<const card_registers::BarSize> bars, ExpressSettings express) {
  put<std::uint16_t>(0x00, id.vendor);
  put<std::uint16_t>(0x02, id.device);
  put<std::uint16_t>(kCommand, 0, 0x0547);  // I/O, memory, bus master, parity, SERR, INTx disable
  put<std::uint16_t>(0x06, 0x0010);         // capability list
  put<std::uint32_t>(0x08, 0x11800001);     // other signal processing controller, revision 1
  put<std::uint8_t>(0x0c, 0, 0xff);         // cache line
  put<std::uint16_t>(0x2c, id.vendor);      // subsystem
  put<std::uint16_t>(0x2e, id.device);
  put<std::uint8_t>(0x34, kPower);      // first capability
  put<std::uint8_t>(0x3c, 0xff, 0xff);  // interrupt line
  for (const auto& bar : bars) put<std::uint32_t>(0x10 + 4 * bar.bar, 0, static_cast<std::uint32_t>(~(bar.bytes - 1)));

  put<std::uint8_t>(kPower, 0x01);
  put<std::uint8_t>(kPower + 1, kMsi);
  put<std::uint16_t>(kPower + 2, 0x0003);          // version 1.2
  put<std::uint16_t>(kPower + 4, 0x0008, 0x0003);  // D0; no soft reset

  put<std::uint8_t>(kMsi, 0x05);
  put<std::uint8_t>(kMsi + 1, kExpress);
  put<std::uint16_t>(kMsi + 2, 0x0086, 0x0071);  // 64-bit address, 8 vectors
  put<std::uint32_t>(kMsi + 4, 0, 0xfffffffc);
  put<std::uint32_t>(kMsi + 8, 0, 0xffffffff);
  put<std::uint16_t>(kMsi + 12, 0, 0xffff);

  put<std::uint8_t>(kExpress, 0x10);
  put<std::uint8_t>(kExpress + 1, 0);
  put<std::uint16_t>(kExpress + 2, 0x0002);  // endpoint, version 2
  const auto payload_code = static_cast<unsigned>(std::countr_zero(express.max_payload / 128));
  put<std::uint32_t>(kExpress + 4, 0x10008002);  // function-level reset, at most 512-byte payload
  put<std::uint16_t>(kDeviceControl, static_cast<std::uint16_t>(0x2810 | payload_code << 5), 0x7fff);
  put<std::uint32_t>(kExpress + 12, 0x00000083);                                               // 8 GT/s, 8 lanes
  put<std::uint16_t>(kExpress + 16, 0, 0x01fb);                                                // link control
  put<std::uint16_t>(kExpress + 18, static_cast<std::uint16_t>(0x0003 | express.lanes << 4));  // link status
  put<std::uint16_t>(kExpress + 40, 0, 0x001f);                                                // device control 2
  put<std::uint32_t>(kExpress + 44, 0x0000000e);                                               // link speeds 2.5 to 8 GT/s
  put<std::uint16_t>(kExpress + 48, 0x0003, 0x000f);                                           // link control 2
  initial_ = bytes_;
}

void ConfigSpace::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::memcpy(bytes.data(), bytes_.data() + offset, bytes.size());
}

bool ConfigSpace::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  constexpr std::size_t kResetByte = kExpress + 9;
  bool reset = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = offset + i;
    if (at == kResetByte && (bytes[i] & std::byte{kFunctionReset >> 8}) != std::byte{0}) reset = true;
    bytes_[at] = (bytes_[at] & ~writable_[at]) | (bytes[i] & writable_[at]);
  }
  return reset;
}

bool ConfigSpace::bus_master() const {
  std::uint16_t command;
  std::memcpy(&command, bytes_.data() + kCommand, sizeof command);
  return (command & kBusMaster) != 0;
}

unsigned ConfigSpace::max_payload() const {
  std::uint16_t control;
  std::memcpy(&control, bytes_.data() + kDeviceControl, sizeof control);
  return 128U << (control >> 5 & 7);
}

unsigned ConfigSpace::max_read_request() const {
  std::uint16_t control;
  std::memcpy(&control, bytes_.data() + kDeviceControl, sizeof control);
  return 128U << (control >> 12 & 7);
}

void ConfigSpace::reset() { bytes_ = initial_; }

}  // namespace rodeo::emulator
