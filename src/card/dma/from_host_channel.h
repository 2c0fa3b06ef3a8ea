// Sends packets from the host to the front-ends of a FELIX: a ring of memory that the driver fills and the card empties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "card/card.h"
#include "card/dma/felix_descriptor.h"
#include "card/dma/memory.h"
#include "card/dma/registration.h"
#include "card/pci/lock.h"
#include "formats/from_host.h"

namespace rodeo::card {

/// For one owner a card, and one thread. The card must outlive the object. The descriptor runs while the object lives; the
/// destructor drops pending bytes.
class FromHostChannel {
 public:
  static constexpr std::size_t kRingBytes = 2U << 20;  ///< one 2 MiB huge page, if the host has any

  /// Takes the lock of the card's last descriptor and starts it. Errors card.wrong_type (not a FELIX), card.locked (it has
  /// an owner), card.timeout, base.memory.
  static Result<std::unique_ptr<FromHostChannel>> open(Card& card);
  ~FromHostChannel();
  FromHostChannel(const FromHostChannel&) = delete;
  FromHostChannel& operator=(const FromHostChannel&) = delete;

  /// The unit of the length field in this card's packets.
  formats::FromHostLength length() const { return length_; }

  /// Gives the card packets of formats/from_host.h, all of them or none. False: the ring has no room for them now. More
  /// packets than the ring can hold never find room. Never waits. Error card.misbehaved: the card's position is outside of
  /// its memory.
  Result<bool> write(std::span<const std::byte> packets);

  /// Bytes that the card has not taken yet.
  Result<std::size_t> pending();

 private:
  FromHostChannel(Card& card, unsigned index, DmaMemory memory)
      : card_(card), descriptor_(card, index), memory_(std::move(memory)) {}
  Result<void> start();

  Card& card_;
  FelixDescriptor descriptor_;
  DmaMemory memory_;
  std::optional<pci::ByteLock> lock_;
  std::optional<Registration> registration_;
  formats::FromHostLength length_ = formats::FromHostLength::words;
  std::uint64_t base_ = 0;  // bus address of the ring
  std::size_t at_ = 0;      // offset of the next packet in the ring
  bool running_ = false;
};

}  // namespace rodeo::card
