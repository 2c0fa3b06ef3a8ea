#include "emulator/cru_slow_control.h"

#include <array>
#include <memory>

#include "card_registers/cru.h"
#include "emulator/cru_card.h"

namespace rodeo::emulator {
namespace {

namespace cru = card_registers::cru;

constexpr std::uint32_t kScaChannels = 22;  // channels 0 to 21: control, SPI, GPIO, 16 of I2C, JTAG, ADC, DAC
constexpr std::uint32_t kScaAdc = 20;
constexpr std::uint32_t kScaReadId = 0xd1;
constexpr std::uint32_t kScaChip = 0x5ca;
constexpr std::uint32_t kInvalidChannel = 2, kInvalidCommand = 4;
constexpr std::uint32_t kGbtxAddress = 1;
constexpr std::uint32_t kReady = 1U << 31, kEmpty = 1U << 16;
constexpr std::size_t kMostAnswers = 16;

}  // namespace

void SlowControl::exchange_sca(std::uint32_t command, std::uint32_t data) {
  const std::uint32_t channel = command >> 24;
  const std::uint32_t code = command & 0xff;
  sca_command_ = command & 0xffff0000U;
  sca_data_ = 0;
  if (channel >= kScaChannels) {
    sca_command_ |= kInvalidChannel;
  } else if (code == kScaReadId) {
    if (channel == kScaAdc) {
      sca_data_ = kScaChip;
    } else {
      sca_command_ |= kInvalidCommand;
    }
  } else if (code % 2 == 0) {
    sca_memory_[channel << 8 | code] = data;
  } else if (const auto found = sca_memory_.find(channel << 8 | (code - 1)); found != sca_memory_.end()) {
    sca_data_ = found->second;
  }
}

void SlowControl::ic(std::uint32_t command, std::uint32_t word) {
  const std::uint32_t address = ic_request_ & 0xffff;
  if (command == 1) ic_request_ = word;
  if (command == 4) {
    gbtx_[address] = ic_request_ >> 16 & 0xff;
    ic_answer_ = kReady | kGbtxAddress << 8;
  }
  if (command == 8 && ic_answers_.size() < kMostAnswers) {
    ic_answers_.push_back(gbtx_[address]);
    ic_answer_ = kReady | kGbtxAddress << 8;
  }
  if (command == 2) {
    ic_answer_ = ic_answers_.empty() ? kEmpty : kReady | kGbtxAddress << 8 | ic_answers_.front();
    if (!ic_answers_.empty()) ic_answers_.pop_front();
  }
}

bool SlowControl::send_swt(std::uint32_t low, std::uint32_t medium, std::uint32_t high) {
  if (words_.size() >= kMostWords) return false;
  words_.push_back({low, medium, high & 0xfff});
  return true;
}

std::uint32_t SlowControl::read_swt() {
  if (words_.empty()) return 0;
  taken_ = words_.front();
  words_.pop_front();
  return taken_.low;
}

void SlowControl::reset() {
  words_.clear();
  ic_answers_.clear();
  sca_command_ = sca_data_ = ic_answer_ = 0;
}

void CruCard::define_slow_control() {
  RegisterFile& regs = registers();
  // This includes the links of the other endpoint, which reach the same front-ends.
  auto links = std::make_shared<std::array<SlowControl, 2 * cru::kLinks>>();
  // Without light no front-end answers. The state of the light at the other endpoint's links is not known here.
  const auto lit = [this](std::uint32_t row) {
    const std::uint32_t first = cru::kLinks * endpoint_;
    return row < first || row >= first + cru::kLinks || links_[row - first].up;
  };
  const auto get = [this](const card_registers::Register& reg, std::uint32_t row) {
    return static_cast<std::uint32_t>(registers().get(reg, row));
  };
  regs.on_write(cru::reg("sca_control"), [links, get, lit](std::uint32_t row, std::uint64_t value) {
    if (!lit(row)) return (*links)[row].no_answer();
    if (value == 4)
      (*links)[row].exchange_sca(get(cru::reg("sca_write_command"), row), get(cru::reg("sca_write_data"), row));
  });
  regs.on_read(cru::reg("sca_read_command"), [links](std::uint32_t row) { return (*links)[row].sca_command(); });
  regs.on_read(cru::reg("sca_read_data"), [links](std::uint32_t row) { return (*links)[row].sca_data(); });
  regs.on_write(cru::reg("ic_command"), [links, get, lit](std::uint32_t row, std::uint64_t value) {
    if (!lit(row)) return (*links)[row].no_answer();
    (*links)[row].ic(static_cast<std::uint32_t>(value), get(cru::reg("ic_write"), row));
  });
  regs.on_read(cru::reg("ic_read"), [links](std::uint32_t row) { return (*links)[row].ic_answer(); });
  regs.on_write(cru::reg("swt_write"), [this, links, get, lit](std::uint32_t row, std::uint64_t value) {
    if (!lit(row)) return;
    const bool taken = (*links)[row].send_swt(static_cast<std::uint32_t>(value), get(cru::reg("swt_write_medium"), row),
                                              get(cru::reg("swt_write_high"), row));
    if (!taken) swt_words_lost_.fetch_add(1, std::memory_order_relaxed);
  });
  regs.on_read(cru::reg("swt_monitor"), [links](std::uint32_t row) { return (*links)[row].swt_waiting() << 16; });
  regs.on_read(cru::reg("swt_read"), [links](std::uint32_t row) { return (*links)[row].read_swt(); });
  regs.on_read(cru::reg("swt_read_medium"), [links](std::uint32_t row) { return (*links)[row].swt_medium(); });
  regs.on_read(cru::reg("swt_read_high"), [links](std::uint32_t row) { return (*links)[row].swt_high(); });
  regs.on_write(cru::reg("slow_control_reset"), [links](std::uint32_t row, std::uint64_t value) {
    if (value == 1) (*links)[row].reset();
  });
}

}  // namespace rodeo::emulator
