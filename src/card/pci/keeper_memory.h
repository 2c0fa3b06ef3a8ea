// Maps memory for a card through the keeper, and keeps the addresses of one handle's maps.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "card/pci/keeper_client.h"

namespace rodeo::card::pci {

/// For any thread.
class KeeperMemory {
 public:
  /// `physical`: the card sees physical addresses (UIO); map() asks the keeper for them.
  KeeperMemory(KeeperClient& keeper, bool physical) : keeper_(keeper), physical_(physical) {}

  Result<void> map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova);
  Result<void> unmap(std::uint64_t iova, std::uint64_t bytes);
  /// The address for the card, and the number of contiguous bytes from there.
  Result<std::pair<std::uint64_t, std::uint64_t>> bus_address(std::uint64_t iova) const;

 private:
  struct Run {
    std::uint64_t address;
    std::uint64_t bytes;
  };

  Result<void> read_physical(std::uint64_t iova, std::uint64_t bytes, std::map<std::uint64_t, Run>& runs);

  KeeperClient& keeper_;
  const bool physical_;
  mutable OwnMutex mutex_{"the keeper"};
  std::map<std::uint64_t, Run> runs_;  // runs by IOVA
};

}  // namespace rodeo::card::pci
