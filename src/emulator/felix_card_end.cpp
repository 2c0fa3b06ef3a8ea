// How the channels of an emulated FELIX card end: behind the triggers that were accepted, with the open blocks, or cut off under a name.
#include <algorithm>
#include <array>

#include "card_registers/felix.h"
#include "emulator/felix_card.h"

namespace rodeo::emulator {
namespace {

namespace felix = card_registers::felix;

constexpr std::uint64_t kDropTurn = 4096;  // triggers that are counted as cut off at a time

}  // namespace

/// The last channel that takes data is not cut off: it ends behind the triggers that were accepted, which other cards have too. Not if there is nobody
/// to take them.
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
  // What a card does with the position of a descriptor that is off is to put it back to the start. This one ends in order, and leaves the position where
  // it ended: at the end of the memory if that is where the next lap would begin.
  const Channel& ended = channels_[index];
  if (ended.running() && ended.position == ended.start && ended.sent > 0)
    at(felix::reg("dma_position"), index).store(ended.end, std::memory_order_release);
  channels_[index].state = Channel::State::off;
  // What nobody takes any more would come to the next reader, who does not expect it.
  if (std::ranges::none_of(std::span(channels_).first(felix::kToHostDescriptors), &Channel::running)) clear_source();
  at(felix::reg("dma_status"), index).store(felix::kDone.mask(), std::memory_order_release);
}

/// Open blocks are as many as links send, at most, and each goes out whole.
bool FelixCard::open_blocks_fit() const {
  for (unsigned i = 0; i < felix::kToHostDescriptors; ++i) {
    if (channels_[i].running() && (channels_[i].stuck || free_bytes(channels_[i]) < open_bytes(i))) return false;
  }
  return true;
}

/// What was accepted and cannot be written any more is lost under a name.
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
  keep_books();
}

}  // namespace rodeo::emulator
