// The network for publishers and subscribers: connections that carry whole pages. It hides libfabric, which is loaded with
// the library librodeo_fabric.so at the first open_fabric().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace rodeo::transport {

using FabricAddress = std::vector<std::byte>;   ///< in the provider's own format
using FabricToken = std::array<std::byte, 16>;  ///< drawn by the publisher for one connection

/// The connections of one thread over one provider. Each connection has its own memory, cut into slots of one size. From
/// send() or receive() until its event, the network owns a slot. Both ends may send and receive.
class FabricPort {
 public:
  using Connection = std::uint32_t;  ///< from 0; a number is used again after close()

  struct Event {
    enum class What : std::uint8_t {
      connected,  ///< send() may be called
      sent,       ///< the caller owns the slot again
      received,   ///< the slot contains a page of `bytes`
      broken,     ///< nothing can be sent or received; the last event of this connection
    };
    What what = What::broken;
    Connection connection = 0;
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };

  virtual ~FabricPort() = default;

  /// Makes one end of a connection. The memory must outlive it. Errors transport.memory, transport.endpoint.
  virtual Result<Connection> open(std::span<std::byte> memory, std::size_t slot_bytes) = 0;

  /// The address at which a publisher reaches this end; part of the subscription. Empty if the provider connects in the
  /// other direction.
  virtual FabricAddress address(Connection end) const = 0;

  /// The address to which subscribers connect.
  virtual FabricAddress listens_at() const = 0;

  /// For the publisher: assigns this end to the subscriber that presents the token and has this address.
  virtual Result<void> accept(Connection end, const FabricToken& token, const FabricAddress& peer) = 0;

  /// For the subscriber: connects this end to a publisher.
  virtual Result<void> connect(Connection end, const FabricAddress& publisher, const FabricToken& token) = 0;

  /// False: the network accepts nothing now; call poll() first.
  virtual bool send(Connection end, std::uint32_t slot, std::size_t bytes) = 0;
  virtual bool receive(Connection end, std::uint32_t slot) = 0;

  /// Sends bytes from any place in memory; `slot` identifies them until the event. There are at most most_parts() parts, and
  /// none is empty.
  virtual bool send(Connection end, std::uint32_t slot, std::span<const std::span<const std::byte>> parts) = 0;
  /// The value 1 means: only one piece of the connection's own memory can be sent.
  virtual std::size_t most_parts() const = 0;

  /// The events since the last call, at most as many as fit. Also advances all transfers.
  virtual std::size_t poll(std::span<Event> events) = 0;

  /// The caller owns all slots again; the connection has no further events.
  virtual void close(Connection end) = 0;
};

/// The expected number of connections of a port. With `many`, poll() asks the kernel once which of thousands have events;
/// `few` is faster for a handful that move large pages.
enum class PortSize : std::uint8_t { few, many };

/// `provider`: "tcp", "shm" or "verbs". `listen`: the numerical address at which the port is reached. Errors
/// transport.no_fabric (the library cannot be loaded), transport.provider.
Result<std::unique_ptr<FabricPort>> open_fabric(const std::string& provider, const std::string& listen,
                                                PortSize size = PortSize::few);

}  // namespace rodeo::transport
