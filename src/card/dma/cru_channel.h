// DMA of a CRU endpoint: each link has a queue of superpages, a free-running count of finished ones and a FIFO of their
// sizes.
#pragma once

#include "card/dma/channel.h"
#include "card_registers/cru.h"

namespace rodeo::card {

/// If accesses trap, a fill() that collects superpages also reads the counts at the end of its batch; the next fill() does
/// not read them again.
class CruChannel final : public DmaChannel {
 public:
  CruChannel(Card& card, unsigned channel, const SharedMemory& memory, const DmaSettings& settings)
      : DmaChannel(card, channel, memory, settings) {}

  /// Sizes come back in 24 bits.
  std::uint32_t largest() const override { return (1U << 24) - kSuperpageGranule; }

 private:
  struct Link {
    unsigned id = 0;
    FixedQueue<Superpage> queue;        // superpages that the card has, oldest first
    std::uint32_t done = 0;             // collected since the reset, modulo 2^32
    std::uint32_t counted = 0;          // finished according to the card, not collected yet
    std::uint32_t take = 0;             // superpages to collect in this round
    std::optional<std::uint32_t> high;  // value of the card's address register
    std::size_t outstanding() const { return queue.size() - take; }
  };

  Result<void> device_open() override;
  Result<void> device_start() override;
  Result<void> device_stop() override;
  /// After this the card cannot write to memory, and its earlier writes have arrived, because the configuration space was
  /// read.
  Result<void> device_silence() override { return card_.function().set_bus_master(false); }
  Result<void> device_reset(ResetLevel level) override;
  Result<void> device_fill() override { return exchange(true, ready_room()); }
  std::size_t device_outstanding() const override;
  Result<void> device_health(DmaHealth& health) override;
  void device_reclaim() override;

  Result<void> find_links();
  Result<void> halt();
  Result<void> wait_for_flush();
  Result<void> exchange(bool with_pushes, std::size_t most);
  void plan_counts();
  Result<void> apply_counts(std::size_t from);
  void plan_collection(std::size_t most);
  void plan_pushes();
  Result<std::uint32_t> read_size_slowly(const Link& link);
  bool uses_links() const { return settings_.source != DataSource::internal; }

  std::uint32_t depth_ = card_registers::cru::kDefaultFifoDepth;
  std::vector<Link> links_;
  bool counts_are_new_ = false;    // the counts were read at the end of the last batch
  std::vector<Link*> collection_;  // links of this round, in order
  std::vector<pci::RegionOperation> operations_;
};

}  // namespace rodeo::card
