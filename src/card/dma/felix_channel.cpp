#include "card/dma/felix_channel.h"

#include <atomic>
#include <numeric>
#include <utility>

#include <fmt/core.h>

namespace rodeo::card {
namespace {

namespace felix = card_registers::felix;
using felix::reg;

}  // namespace

Result<void> FelixChannel::device_open() {
  RODEO_TRY(descriptor_.disable());
  const auto block = RODEO_TRY(card_.read64(reg("block_bytes")));
  // Older firmware has no such register.
  block_ = block == 0 ? 1024 : static_cast<std::uint32_t>(block);
  if (block_ % 1024 != 0 || block_ > 64 * 1024)
    return std::unexpected(
        Error{"card.misbehaved", fmt::format("the card claims blocks of {} bytes", block), card_.address().text(),
              "`rodeo card firmware` says whether its firmware is known; a reset or a power cycle may help"});
  granule_ = std::lcm(kSuperpageGranule, block_);
  ring_ = memory_.bytes.size() / granule_ * granule_;
  if (ring_ < 2 * static_cast<std::uint64_t>(granule_))
    return std::unexpected(Error{"card.dma_memory", fmt::format("the ring of a FELIX has at least {} bytes", 2 * granule_),
                                 card_.address().text(), "give it more memory"});
  const auto bar = RODEO_TRY(card_.bar(0));
  position_ = bar->mapped<std::uint64_t>(reg("dma_position").at(channel_));
  read_pointer_ = bar->mapped<std::uint64_t>(reg("dma_read_pointer").at(channel_));
  const std::size_t pieces = ring_ / granule_;
  in_card_ = FixedQueue<Superpage>(pieces);
  set_capacities(pieces, pieces, pieces);
  return {};
}

Result<void> FelixChannel::device_reset(ResetLevel) { return descriptor_.disable(); }

Result<void> FelixChannel::device_start() {
  const auto address = registration_.bus_address(0, ring_);
  if (!address)
    return std::unexpected(Error{"card.dma_memory", "the ring of a FELIX must be contiguous for the card",
                                 card_.address().text(), "use an IOMMU, or one 1 GiB huge page"});
  base_ = *address;
  tail_ = out_ = written_ = freed_ = collected_ = announced_ = 0;
  running_ = false;
  in_card_.clear();
  RODEO_TRY(device_reset(ResetLevel::internal));
  RODEO_TRY(descriptor_.write(reg("dma_start"), base_));
  RODEO_TRY(descriptor_.write(reg("dma_end"), base_ + ring_));
  RODEO_TRY(descriptor_.write(reg("dma_control"), felix::kTlpBytes / 4 | felix::kWrapAround.mask()));
  if (settings_.source == DataSource::internal) {
    const auto generator = RODEO_TRY(card_.read64(reg("generator_control")));
    generator_was_off_ = (generator & 1U) == 0;
    RODEO_TRY(card_.write(reg("generator_control"), 1));
  }
  // Enabled by the first superpage: a descriptor without any would take the whole ring for free.
  return {};
}

PushStatus FelixChannel::check_push(const Superpage& superpage) const {
  if (superpage.offset != tail_ || superpage.bytes > ring_ - tail_) return PushStatus::out_of_order;
  // Twice in the ring, the card would write over what nobody has read.
  return superpage.bytes > ring_ - out_ ? PushStatus::full : PushStatus::done;
}

Result<void> FelixChannel::read_position() {
  std::uint64_t position = 0;
  if (position_ != nullptr) {
    position = std::atomic_ref(*const_cast<std::uint64_t*>(position_)).load(std::memory_order_acquire);
  } else {
    position = RODEO_TRY(descriptor_.read(reg("dma_position")));
  }
  std::uint64_t offset = position - base_;
  if (offset == ring_) offset = 0;
  if (offset >= ring_ || offset % block_ != 0)
    return misbehaved(
        DmaCounter::position_errors,
        fmt::format("the write position {:#x} is not within the ring of {:#x} bytes at {:#x}", position, ring_, base_));
  const std::uint64_t before = written_ % ring_;
  const std::uint64_t advance = offset >= before ? offset - before : ring_ - before + offset;
  if (advance > announced_ - written_)
    return misbehaved(DmaCounter::position_errors,
                      fmt::format("the card wrote {} bytes where {} were free", advance, announced_ - written_));
  written_ += advance;
  return {};
}

Result<void> FelixChannel::write_read_pointer() {
  // Never a whole free ring: the card could not tell it from a full one.
  const std::uint64_t limit = std::min(freed_, written_ + ring_ - block_);
  if (limit == announced_) return {};
  announced_ = limit;
  const std::uint64_t pointer = base_ + limit % ring_;
  if (read_pointer_ != nullptr) {
    std::atomic_ref(*const_cast<std::uint64_t*>(read_pointer_)).store(pointer, std::memory_order_release);
  } else if (auto done = descriptor_.write(reg("dma_read_pointer"), pointer); !done) {
    return done;
  }
  if (running_) return {};
  running_ = true;
  return descriptor_.enable();
}

void FelixChannel::collect() {
  while (!in_card_.empty() && written_ - collected_ >= in_card_.front().bytes && ready_has_room()) {
    collected_ += in_card_.front().bytes;
    const Superpage superpage = in_card_.pop();
    deliver(superpage, superpage.bytes, -1);
  }
}

Result<void> FelixChannel::device_fill() {
  if (running_) {
    RODEO_TRY(read_position());
    collect();
  }
  while (!transfer_.empty() && in_card_.room() > 0) {
    const Superpage superpage = transfer_.pop();
    in_card_.push(superpage);
    freed_ += superpage.bytes;
    counters_.add(DmaCounter::superpages_pushed);
  }
  return write_read_pointer();
}

std::uint32_t FelixChannel::device_growing() const {
  if (in_card_.empty() || written_ - collected_ >= in_card_.front().bytes) return 0;
  return static_cast<std::uint32_t>(written_ - collected_);
}

Result<void> FelixChannel::device_stop() {
  RODEO_TRY(stop_descriptor());
  // Left as it was found.
  return std::exchange(generator_was_off_, false) ? card_.write(reg("generator_control"), 0) : Result<void>{};
}

Result<void> FelixChannel::stop_descriptor() {
  if (!running_) return {};
  running_ = false;
  RODEO_TRY(descriptor_.disable());
  RODEO_TRY(read_position());
  // There is room for all of them: the ready queue holds the whole ring.
  collect();
  if (!in_card_.empty() && written_ > collected_) {
    const auto rest = static_cast<std::uint32_t>(written_ - collected_);
    deliver(in_card_.pop(), rest, -1);
  }
  return {};
}

void FelixChannel::device_reclaim() {
  while (!in_card_.empty()) give_back(in_card_.pop());
}

Result<void> FelixChannel::device_health(DmaHealth& health) {
  health.dropped_packets = RODEO_TRY(card_.read64(reg("blocks_dropped"), channel_));
  const auto temperature = RODEO_TRY(card_.read64(reg("temperature")));
  health.temperature_celsius = felix::temperature_celsius(temperature);
  return {};
}

}  // namespace rodeo::card
