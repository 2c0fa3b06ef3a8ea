// Memory that clients lend to a card, by client and IOVA. It is mapped from the descriptors of DMA_MAP.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/fd_socket.h"
#include "base/mapping.h"
#include "emulator/device.h"

namespace rodeo::emulator {

/// The most maps of one client. All clients share the limit of the process (vm.max_map_count, 65530 by default), so one
/// client must not use all of it.
inline constexpr std::size_t kMaxDmaMaps = 4096;

/// The maps of all clients of one function. The server's threads add and remove; the DMA engine looks up and writes under a
/// Use.
class DmaMaps {
 public:
  explicit DmaMaps(std::size_t max_maps = kMaxDmaMaps) : max_maps_(max_maps) {}
  DmaMaps(const DmaMaps&) = delete;
  DmaMaps& operator=(const DmaMaps&) = delete;

  void add_client(ClientId client);
  /// Removes the client and all memory that it lent.
  void remove_client(ClientId client);

  // The functions return 0 or an errno (docs/reference/protocols/vfio-user.md). They wait until the current Use ends.
  int map(ClientId client, const formats::vfio_user::DmaMap& map, const base::UniqueFd& fd);
  int unmap(ClientId client, std::uint64_t address, std::uint64_t bytes);
  int unmap_all(ClientId client);

  std::size_t maps() const;
  /// Number of maps whose file was shortened while mapped; data written there are lost.
  std::uint64_t lost_maps() const { return lost_maps_.load(std::memory_order_relaxed); }

  /// While an object lives, no memory is unmapped. Only one object exists at a time. Keep its work short (about a megabyte),
  /// so that unmapping does not wait.
  class Use {
   public:
    explicit Use(DmaMaps& maps);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    /// The memory of [address, address + bytes) of a client, within one map. The result may be shorter than requested, and
    /// is empty if the address is not mapped or not writable. Until this thread's next call, access is safe even if the file
    /// is cut.
    std::span<std::byte> find(ClientId client, std::uint64_t address, std::uint64_t bytes, bool write = true);
    /// Copies bytes, also across maps; false if part of the range is not mapped.
    bool write(ClientId client, std::uint64_t address, std::span<const std::byte> bytes);
    bool read(ClientId client, std::uint64_t address, std::span<std::byte> bytes);
    /// True if this client's maps hold the whole range and are writable.
    bool holds(ClientId client, std::uint64_t address, std::uint64_t bytes) const;
    /// The client whose maps hold the whole range. If several clients' maps do, the client that lent the start of the range
    /// last: an earlier one may have left unnoticed.
    std::optional<ClientId> owner(std::uint64_t address, std::uint64_t bytes) const;

   private:
    DmaMaps& maps_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  struct Map {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;   // number among all maps ever made
    base::Mapping memory = {};  // the whole mapping, huge pages included
    bool readable = false;
    bool writable = false;
    bool lost = false;
  };
  using ClientMaps = std::map<std::uint64_t, Map>;  // maps by address

  static const Map* covering(const ClientMaps& maps, std::uint64_t address, std::uint64_t bytes);

  const std::size_t max_maps_;
  mutable std::mutex mutex_;
  std::atomic<int> waiting_{0};
  std::map<ClientId, ClientMaps> clients_;
  std::uint64_t next_number_ = 0;
  std::atomic<std::uint64_t> lost_maps_{0};
};

}  // namespace rodeo::emulator
