#include "card/dma/felix_channel.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "card/pci/express_link.h"

namespace rodeo::card {
namespace {

namespace felix = card_registers::felix;
using felix::reg;

/// The length of the card's packets: the host's Max_Payload_Size, but no longer than a block, so that positions lie at block
/// ends. A longer packet is malformed, which is a fatal error for a host.
Result<std::uint32_t> packet_bytes(pci::Function& function, std::uint32_t block) {
  const auto link = RODEO_TRY_WITHIN(pci::read_express_link(function), "cannot read Max_Payload_Size");
  const unsigned payload = link && link->payload_bytes > 0 ? link->payload_bytes : pci::kSmallestPayloadBytes;
  return std::min(payload, std::uint32_t{1} << std::countr_zero(block));
}

}  // namespace

Result<void> FelixChannel::device_open() {
  RODEO_TRY(descriptor_.disable());
  const auto block = RODEO_TRY(card_.read64(reg("block_bytes")));
  // Older firmware does not have this register.
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
  tail_ = out_ = written_ = freed_ = collected_ = read_ = 0;
  running_ = false;
  in_card_.clear();
  RODEO_TRY(device_reset(ResetLevel::internal));
  RODEO_TRY(descriptor_.write(reg("dma_start"), base_));
  RODEO_TRY(descriptor_.write(reg("dma_end"), base_ + ring_));
  const std::uint32_t packet = RODEO_TRY(packet_bytes(card_.function(), block_));
  RODEO_TRY(descriptor_.write(reg("dma_control"), packet / 4 | felix::kWrapAround.mask()));
  RODEO_TRY(descriptor_.write(reg("dma_read_pointer"), base_));
  RODEO_TRY(descriptor_.count_every_lap());
  if (settings_.source == DataSource::internal) {
    const auto generator = RODEO_TRY(card_.read64(reg("generator_control")));
    generator_was_off_ = (generator & 1U) == 0;
    RODEO_TRY(card_.write(reg("generator_control"), 1));
  }
  // write_read_pointer() enables the descriptor once the card has been given all of the ring.
  return {};
}

PushStatus FelixChannel::check_push(const Superpage& superpage) const {
  if (superpage.offset != tail_ || superpage.bytes > ring_ - tail_) return PushStatus::out_of_order;
  // A second superpage in the same place would let the card overwrite unread data.
  return superpage.bytes > ring_ - out_ ? PushStatus::full : PushStatus::done;
}

Result<std::uint64_t> FelixChannel::position() {
  if (position_) return position_.load();
  return descriptor_.read(reg("dma_position"));
}

Result<void> FelixChannel::read_position() {
  const std::uint64_t at = RODEO_TRY(position());
  if (written_ > 0 || at != base_) return apply_position(at);
  // The position is the same for no data and for a whole first lap; only the parity differs.
  const auto status = static_cast<std::uint32_t>(RODEO_TRY(descriptor_.read(reg("dma_status"))));
  return felix::kEvenDma.of(status) != 0 ? apply_position(base_ + ring_) : Result<void>{};
}

Result<void> FelixChannel::apply_position(std::uint64_t position) {
  if (position == UINT64_MAX) RODEO_TRY(card_.check_answers());
  std::uint64_t offset = position - base_;
  if (offset == ring_ && written_ > 0) offset = 0;
  if (offset > ring_ || offset % block_ != 0)
    return misbehaved(
        DmaCounter::position_errors,
        fmt::format("the write position {:#x} is not within the ring of {:#x} bytes at {:#x}", position, ring_, base_));
  const std::uint64_t before = written_ % ring_;
  const std::uint64_t advance = offset >= before ? offset - before : ring_ - before + offset;
  const std::uint64_t free = read_ + ring_ - written_;
  if (advance > free)
    return misbehaved(DmaCounter::position_errors, fmt::format("the card wrote {} bytes where {} were free", advance, free));
  written_ += advance;
  return {};
}

Result<void> FelixChannel::write_read_pointer() {
  if (freed_ < ring_) return {};
  if (!running_) {
    running_ = true;
    return descriptor_.enable();
  }
  // The card cannot see a whole lap in one step: keep one block back.
  const std::uint64_t read = std::min(freed_ - ring_, written_ - std::min<std::uint64_t>(written_, block_));
  if (read == read_) return {};
  read_ = read;
  const std::uint64_t pointer = base_ + read % ring_;
  if (!read_pointer_) return descriptor_.write(reg("dma_read_pointer"), pointer);
  read_pointer_.store(pointer);
  return {};
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
  auto stopped = stop_descriptor();
  // Restore the generator.
  if (std::exchange(generator_was_off_, false)) RODEO_TRY(card_.write(reg("generator_control"), 0));
  return stopped;
}

Result<void> FelixChannel::device_silence() {
  if (!running_) return {};
  RODEO_TRY(descriptor_.disable());
  running_ = false;
  return {};
}

Result<void> FelixChannel::stop_descriptor() {
  if (!running_) return {};
  const auto before = read_position();
  RODEO_TRY(device_silence());
  if (!before) return before;
  // The position of a disabled descriptor goes back to the start; on an emulated card it may stay at the end of the data.
  if (const auto last = RODEO_TRY(position()); last != base_) RODEO_TRY(apply_position(last));
  // The ready queue has room for all superpages: it holds the whole ring.
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
