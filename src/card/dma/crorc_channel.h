// DMA of one link of a C-RORC: one superpage at a time, reported through a block of the host's memory.
#pragma once

#include "card/dma/channel.h"
#include "card_registers/crorc.h"

namespace rodeo::card {

class CrorcChannel final : public DmaChannel {
 public:
  CrorcChannel(Card& card, unsigned channel, const SharedMemory& memory, const DmaSettings& settings)
      : DmaChannel(card, channel, memory, settings) {}

 private:
  Result<void> device_open() override;
  Result<void> device_start() override;
  Result<void> device_stop() override;
  Result<void> device_silence() override;
  void device_leave() override { info_registration_.leave(); }
  Result<void> device_reset(ResetLevel level) override;
  Result<void> device_fill() override;
  std::uint32_t largest() const override { return (1U << 24) - kSuperpageGranule; }  // its size register has 24 bits
  std::size_t device_outstanding() const override { return in_flight_ ? 1 : 0; }
  Result<void> device_health(DmaHealth& health) override;
  void device_reclaim() override;

  Result<void> write(const card_registers::Register& what, std::uint32_t value) {
    return card_.write(what, value, channel_);
  }
  pci::RegionOperation operation(const card_registers::Register& what, std::uint32_t value) const {
    return {.region = channel_, .offset = what.offset, .bytes = 4, .write = true, .value = value};
  }
  pci::RegionOperation reading(const card_registers::Register& what) const {
    return {.region = channel_, .offset = what.offset, .bytes = 4, .write = false, .value = 0};
  }
  Result<void> toggle_to(card_registers::Field bit, bool on);
  Result<void> command(std::uint32_t code);
  Result<void> halt();
  Result<bool> collect();
  Result<void> flush();
  Result<void> push_next();
  Result<void> write_address(std::uint64_t address);

  DmaMemory info_;
  Registration info_registration_;
  std::optional<Superpage> in_flight_;
  std::uint32_t next_count_ = 0;  // modulo 256
};

}  // namespace rodeo::card
