#include "card/dma/from_host_channel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "card/operations/require_type.h"

namespace rodeo::card {
namespace {

namespace felix = card_registers::felix;
using felix::reg;

}  // namespace

Result<std::unique_ptr<FromHostChannel>> FromHostChannel::open(Card& card) {
  RODEO_TRY(require_type(card, CardType::felix, "a from-host descriptor"));
  RODEO_TRY(card.check_map());
  const auto descriptors = RODEO_TRY(card.read64(reg("generic_constants"))) & 0xff;
  if (descriptors < 2 || descriptors > felix::kMaxDescriptors)
    return std::unexpected(Error{"card.misbehaved", fmt::format("the card claims {} DMA descriptors", descriptors),
                                 card.address().text(), "`rodeo card firmware` says whether its firmware is known"});
  const auto index = static_cast<unsigned>(descriptors) - 1;
  auto lock = RODEO_TRY(card.lock(index, fmt::format("the way to the front-ends of {}", card.address().text())));
  auto memory = RODEO_TRY(DmaMemory::create(kRingBytes, card.found().numa_node));
  auto opened = std::unique_ptr<FromHostChannel>(new FromHostChannel(card, index, std::move(memory)));
  opened->lock_ = std::move(lock);
  opened->registration_ =
      RODEO_TRY(Registration::map(card.function(), opened->memory_.shared(), card.address().function * 6U + index));
  RODEO_TRY_WITHIN(opened->start(), "cannot start the way to the front-ends");
  return opened;
}

Result<void> FromHostChannel::start() {
  const auto base = registration_->bus_address(0, kRingBytes);
  if (!base)
    return std::unexpected(Error{"card.dma_memory", "the ring must be contiguous for the card", card_.address().text(),
                                 "use an IOMMU, or huge pages"});
  base_ = *base;
  const auto five_bits = RODEO_TRY(card_.read64(reg("from_host_length_is_5bit")));
  length_ = five_bits == 1 ? formats::FromHostLength::bytes : formats::FromHostLength::words;
  // Stop a descriptor that a former owner left running.
  RODEO_TRY(descriptor_.disable());
  RODEO_TRY(descriptor_.write(reg("dma_start"), base_));
  RODEO_TRY(descriptor_.write(reg("dma_end"), base_ + kRingBytes));
  RODEO_TRY(descriptor_.write(reg("dma_control"),
                              felix::kFromHostTlpBytes / 4 | felix::kFromHost.mask() | felix::kWrapAround.mask()));
  RODEO_TRY(descriptor_.write(reg("dma_read_pointer"), base_));
  RODEO_TRY(descriptor_.count_every_lap());
  RODEO_TRY(card_.function().set_bus_master(true));
  running_ = true;
  return descriptor_.enable();
}

FromHostChannel::~FromHostChannel() {
  if (running_) (void)descriptor_.disable();  // fails if the card is gone
}

Result<std::size_t> FromHostChannel::pending() {
  const auto position = RODEO_TRY(descriptor_.read(reg("dma_position")));
  const std::uint64_t taken = position - base_ == kRingBytes ? 0 : position - base_;
  if (taken >= kRingBytes || taken % formats::kFromHostPacketBytes != 0)
    return std::unexpected(Error{
        "card.misbehaved",
        fmt::format("the card reads at {:#x}, outside of its ring of {:#x} bytes at {:#x}", position, kRingBytes, base_),
        card_.address().text(), "reset the card"});
  return at_ >= taken ? at_ - taken : kRingBytes - taken + at_;
}

Result<bool> FromHostChannel::write(std::span<const std::byte> packets) {
  const std::size_t waits = RODEO_TRY(pending());
  // Keep one packet free: equal positions mean an empty ring.
  if (packets.size() + formats::kFromHostPacketBytes > kRingBytes - waits) return false;
  const std::span<std::byte> ring = memory_.bytes();
  const std::size_t first = std::min(packets.size(), kRingBytes - at_);
  std::memcpy(ring.data() + at_, packets.data(), first);
  std::memcpy(ring.data(), packets.data() + first, packets.size() - first);
  const std::size_t next = (at_ + packets.size()) % kRingBytes;
  std::atomic_thread_fence(std::memory_order_release);  // needed if the register is not mapped
  RODEO_TRY(descriptor_.write(reg("dma_read_pointer"), base_ + next));
  at_ = next;
  return true;
}

}  // namespace rodeo::card
