// Memory that clients lend to a card: by client and IOVA, mapped from the descriptors that came with DMA_MAP.
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

/// Maps of one client. All clients of a process share what the system lets it have (vm.max_map_count, 65530 by default): one alone cannot take
/// it from the others.
inline constexpr std::size_t kMaxDmaMaps = 4096;

/// The maps of all clients of one function. The server's thread adds and removes; the DMA engine looks up and writes under a Use.
class DmaMaps {
 public:
  explicit DmaMaps(std::size_t max_maps = kMaxDmaMaps) : max_maps_(max_maps) {}
  DmaMaps(const DmaMaps&) = delete;
  DmaMaps& operator=(const DmaMaps&) = delete;

  void add_client(ClientId client);
  /// With all that it lent.
  void remove_client(ClientId client);

  // 0 or an errno, as docs/protocols/vfio-user.md says. They wait for a Use that is under way.
  int map(ClientId client, const formats::vfio_user::DmaMap& map, const base::UniqueFd& fd);
  int unmap(ClientId client, std::uint64_t address, std::uint64_t bytes);
  int unmap_all(ClientId client);

  std::size_t maps() const;
  /// Maps whose file was made shorter under them; what was written there is lost.
  std::uint64_t lost_maps() const { return lost_maps_.load(std::memory_order_relaxed); }

  /// While one of these lives, no memory goes away. One at a time; kept short (a megabyte or so), so that unmapping does not wait.
  class Use {
   public:
    explicit Use(DmaMaps& maps);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    /// The memory behind [address, address + bytes) of a client, as far as it is one map: may be shorter than asked, and is empty where
    /// nothing is mapped or it may not be written. Until the next call of this thread, touching it is safe even if its file is cut.
    std::span<std::byte> find(ClientId client, std::uint64_t address, std::uint64_t bytes, bool write = true);
    /// Copies, over borders of maps; false if part of the range is not mapped.
    bool write(ClientId client, std::uint64_t address, std::span<const std::byte> bytes);
    bool read(ClientId client, std::uint64_t address, std::span<std::byte> bytes);
    /// Whether this client's maps hold the whole range, to be written.
    bool holds(ClientId client, std::uint64_t address, std::uint64_t bytes) const;
    /// Of the clients whose maps hold the whole range, the one that lent its begin last: one before it may be gone, which nobody has seen yet.
    std::optional<ClientId> owner(std::uint64_t address, std::uint64_t bytes) const;

   private:
    DmaMaps& maps_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  struct Map {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;   // of all maps that were ever made
    base::Mapping memory = {};  // the whole mapping, huge pages included
    bool readable = false;
    bool writable = false;
    bool lost = false;
  };
  using ClientMaps = std::map<std::uint64_t, Map>;  // by address

  static const Map* covering(const ClientMaps& maps, std::uint64_t address, std::uint64_t bytes);

  const std::size_t max_maps_;
  mutable std::mutex mutex_;
  std::atomic<int> waiting_{0};
  std::map<ClientId, ClientMaps> clients_;
  std::uint64_t next_number_ = 0;
  std::atomic<std::uint64_t> lost_maps_{0};
};

}  // namespace rodeo::emulator
