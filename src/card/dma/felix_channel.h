// DMA of a FELIX: one ring of memory with the card's write position and the driver's read pointer. Superpages are pieces of
// the ring, in order.
#pragma once

#include "card/dma/channel.h"
#include "card/dma/felix_descriptor.h"
#include "card_registers/felix.h"

namespace rodeo::card {

/// If BAR 0 can be mapped, the exchange is loads and stores alone. Superpages are pushed in the ring's order: the first at
/// offset 0, each next one at the end of the last, and at 0 again at the end of the buffer. The card starts when it has all
/// of the ring, because its first lap does not stop at the read pointer (card_registers/felix.h). A superpage is ready when
/// the card has written past its end, so the newest is best read while it grows.
class FelixChannel final : public DmaChannel {
 public:
  FelixChannel(Card& card, unsigned channel, const SharedMemory& memory, const DmaSettings& settings)
      : DmaChannel(card, channel, memory, settings) {}

  std::uint32_t granule() const override { return granule_; }

 private:
  Result<void> device_open() override;
  Result<void> device_start() override;
  Result<void> device_stop() override;
  Result<void> device_silence() override;
  Result<void> device_reset(ResetLevel level) override;
  Result<void> device_fill() override;
  PushStatus check_push(const Superpage& superpage) const override;
  void pushed(const Superpage& superpage) override {
    tail_ = (superpage.offset + superpage.bytes) % ring_;
    out_ += superpage.bytes;
  }
  void popped(const Superpage& superpage) override { out_ -= superpage.bytes; }
  std::uint32_t device_growing() const override;
  std::size_t device_outstanding() const override { return in_card_.size(); }
  Result<void> device_health(DmaHealth& health) override;
  void device_reclaim() override;

  Result<void> stop_descriptor();
  Result<std::uint64_t> position();
  Result<void> read_position();
  Result<void> apply_position(std::uint64_t position);
  Result<void> write_read_pointer();
  void collect();

  FelixDescriptor descriptor_{card_, channel_};
  std::uint32_t block_ = 1024;
  std::uint32_t granule_ = kSuperpageGranule;
  std::uint64_t ring_ = 0;  // bytes
  std::uint64_t base_ = 0;  // bus address of offset 0
  std::uint64_t tail_ = 0;  // offset at which the next superpage must be pushed
  std::uint64_t out_ = 0;   // bytes of superpages that were pushed and not popped
  // Bytes since the start, so that the numbers do not wrap: collected_ <= written_ <= read_ + ring_ <= freed_.
  std::uint64_t written_ = 0;    // bytes written by the card
  std::uint64_t freed_ = 0;      // bytes given to the card
  std::uint64_t collected_ = 0;  // bytes of ready superpages
  std::uint64_t read_ = 0;       // the read pointer in the card: the card may write up to read_ + ring_
  bool running_ = false;         // the descriptor is enabled
  bool generator_was_off_ = false;
  FixedQueue<Superpage> in_card_;
  pci::MappedRegister<std::uint64_t> position_;  // empty: access through descriptor_
  pci::MappedRegister<std::uint64_t> read_pointer_;
};

}  // namespace rodeo::card
