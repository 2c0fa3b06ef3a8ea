// Ends the channels of an emulated FELIX card: after the accepted triggers, with the open blocks, or cut off and counted.
#include <algorithm>
#include <array>

#include "card_registers/felix.h"
#include "emulator/felix_card.h"

namespace rodeo::emulator {
namespace {

namespace felix = card_registers::felix;

constexpr std::uint64_t kDropTurn = 4096;  // triggers that are counted as cut off at a time

}  // namespace

/// The last to-host channel is not cut off: it ends after all accepted triggers, which other cards have, too. A channel that
/// is stuck, or whose memory is gone, is cut off.
bool FelixCard::ends_in_order(unsigned index) {
  if ((!taking_.any() && source_.oldest_ns() == FelixSource::kNone) || index >= felix::kToHostDescriptors || !bus_master())
    return false;
  for (unsigned i = 0; i < felix::kToHostDescriptors; ++i) {
    if (i != index && channels_[i].running()) return false;
  }
  const Channel& channel = channels_[index];
  DmaMaps::Use use(maps());
  return !channel.stuck && use.holds(channel.client, channel.start, channel.end - channel.start);
}

void FelixCard::end(unsigned index) {
  // A real card resets the position of a disabled descriptor to the start. This card ends in order and leaves the position
  // where it ended; if the next lap would begin there, it shows the end of the memory.
  const Channel& ended = channels_[index];
  if (ended.running() && ended.position == ended.start && ended.sent > 0)
    at(felix::reg("dma_position"), index).store(ended.end, std::memory_order_release);
  channels_[index].state = Channel::State::off;
  // Data that are left without a reader would reach the next reader, which does not expect them.
  if (std::ranges::none_of(std::span(channels_).first(felix::kToHostDescriptors), &Channel::running)) clear_source();
  at(felix::reg("dma_status"), index).store(felix::kDone.mask(), std::memory_order_release);
}

/// True if all blocks that may be open have room. Each block is sent whole.
bool FelixCard::open_blocks_fit() const {
  for (unsigned i = 0; i < felix::kToHostDescriptors; ++i) {
    if (channels_[i].running() && (channels_[i].stuck || free_bytes(channels_[i]) < open_bytes(i))) return false;
  }
  return true;
}

/// Counts accepted triggers that can no longer be written as cut off.
bool FelixCard::end_cut_off() {
  if (taking_.any()) {
    ranges_.clear();
    std::uint64_t left = 0;
    while (const std::uint64_t taken = triggers_->take(kDropTurn, ranges_)) {
      left += taken;
      triggers_->done(taken);
      ranges_.clear();
    }
    triggers_cut_off_.fetch_add(left, std::memory_order_relaxed);
  }
  clear_source();
  return end_channels();
}

bool FelixCard::end_channels() {
  for (unsigned i = 0; i < felix::kToHostDescriptors; ++i) {
    if (channels_[i].state == Channel::State::ending) end(i);
  }
  taking_.end();
  return true;
}

void FelixCard::cut_off() {
  for (Channel& channel : channels_) channel.state = Channel::State::off;
  full_ = running_ = false;
  clear_source();
  taking_.end();
}

bool FelixCard::client_left(ClientId client) {
  bool any = false, others = false;
  for (unsigned i = 0; i < felix::kDescriptors; ++i) {
    Channel& channel = channels_[i];
    if (channel.running() && channel.client == client) {
      at(felix::reg("dma_enable")).fetch_and(~(std::uint64_t{1} << i), std::memory_order_relaxed);
      end(i);
      any = true;
    }
    others = others || (channel.running() && i < felix::kToHostDescriptors);
  }
  if (any && !others) {
    full_ = running_ = false;
    taking_.end();
  }
  return any;
}

void FelixCard::clear_source() {
  source_.clear();
  publish_books();
}

}  // namespace rodeo::emulator
