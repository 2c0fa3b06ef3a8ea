// A PCI function as seen from its bus; a vfio-user server serves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/vfio_user.h"

namespace rodeo::emulator {

/// Number of one connection of one function; never reused.
using ClientId = std::uint64_t;

inline constexpr unsigned kRegions = 9;  // VFIO: BARs 0-5, ROM, configuration space, VGA
inline constexpr unsigned kConfigRegion = 7;
inline constexpr unsigned kIrqIndices = 5;  // VFIO: INTx, MSI, MSI-X, error, request
inline constexpr unsigned kMsiIndex = 1;

struct Region {
  std::uint64_t bytes = 0;  ///< 0: no such region
  std::vector<formats::vfio_user::Area> mappable = {};
  int fd = -1;  ///< memory of the mappable areas; owned by the device
};

/// A function. Several client threads may call it at once. A call blocks at most until the DMA engine has finished its
/// current write.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Region& region(unsigned index) const = 0;
  virtual unsigned vectors() const = 0;

  /// One access of 1, 2, 4 or 8 bytes, naturally aligned and within the region.
  virtual void read(ClientId client, unsigned region, std::uint64_t offset, std::span<std::byte> bytes) = 0;
  virtual void write(ClientId client, unsigned region, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void reset() = 0;
  /// The client has left: its memory is gone, too.
  virtual void left(ClientId client) = 0;
};

}  // namespace rodeo::emulator
