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
  Result<void> device_reset(ResetLevel level) override;
  Result<void> device_fill() override;
  std::size_t device_outstanding() const override { return in_flight_ ? 1 : 0; }
  Result<void> device_health(DmaHealth& health) override;
  void device_reclaim() override;

  Result<void> write(const card_registers::Register& what, std::uint32_t value) {
    return card_.write(what, value, channel_);
  }
  Result<void> toggle_to(card_registers::Field bit, bool on);
  Result<void> command(std::uint32_t code);
  Result<void> halt();
  Result<bool> collect();
  Result<void> push_next();

  DmaMemory info_;
  Registration info_registration_;
  std::optional<Superpage> in_flight_;
  std::uint32_t next_count_ = 0;  // modulo 256
};

}  // namespace rodeo::card
