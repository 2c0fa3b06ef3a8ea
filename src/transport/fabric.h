// The network as publishers and subscribers see it: connections over which whole pages go one way. It hides libfabric, which is loaded with
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

using FabricAddress = std::vector<std::byte>;   ///< as the provider writes it
using FabricToken = std::array<std::byte, 16>;  ///< drawn by the publisher for one connection

/// What one thread has of one provider. A connection has memory of its own, cut into slots of one size; a slot is the network's from send() or
/// receive() until its event. Both ends may send and receive.
class FabricPort {
 public:
  using Connection = std::uint32_t;  ///< from 0; a number is used again after close()

  struct Event {
    enum class What : std::uint8_t {
      connected,  ///< sending may begin
      sent,       ///< the slot is the caller's again
      received,   ///< the slot has a page of `bytes`
      broken,     ///< nothing goes any more; the last event of this connection
    };
    What what = What::broken;
    Connection connection = 0;
    std::uint32_t slot = 0;
    std::uint32_t bytes = 0;
  };

  virtual ~FabricPort() = default;

  /// An end of a connection. The memory must outlive it. Errors transport.memory, transport.endpoint.
  virtual Result<Connection> open(std::span<std::byte> memory, std::size_t slot_bytes) = 0;

  /// Where a publisher reaches this end: what goes with the subscription. Empty where the provider connects the other way round.
  virtual FabricAddress address(Connection end) const = 0;

  /// Where subscribers connect to.
  virtual FabricAddress listens_at() const = 0;

  /// Publisher: this end is for who comes with the token from a subscriber whose end has this address.
  virtual Result<void> accept(Connection end, const FabricToken& token, const FabricAddress& peer) = 0;

  /// Subscriber.
  virtual Result<void> connect(Connection end, const FabricAddress& publisher, const FabricToken& token) = 0;

  /// False: not now; poll() first.
  virtual bool send(Connection end, std::uint32_t slot, std::size_t bytes) = 0;
  virtual bool receive(Connection end, std::uint32_t slot) = 0;

  /// The same for bytes that lie anywhere: the slot is only a name for them until its event. At most most_parts(), none empty.
  virtual bool send(Connection end, std::uint32_t slot, std::span<const std::span<const std::byte>> parts) = 0;
  /// 1: only memory of the connection can be sent, from one place.
  virtual std::size_t most_parts() const = 0;

  /// What has happened, at most as many as there is room for. Moves the network on.
  virtual std::size_t poll(std::span<Event> events) = 0;

  /// All slots are the caller's again; no event comes of it any more.
  virtual void close(Connection end) = 0;
};

/// How many connections a port is to have. With `many`, poll() asks the kernel once which of thousands have something; with `few` it is faster for a handful
/// that move large pages.
enum class PortSize : std::uint8_t { few, many };

/// `provider`: "tcp", "shm" or "verbs". `listen`: the numerical address at which it is reached. Errors transport.no_fabric (the library cannot be
/// loaded), transport.provider.
Result<std::unique_ptr<FabricPort>> open_fabric(const std::string& provider, const std::string& listen,
                                                PortSize size = PortSize::few);

}  // namespace rodeo::transport
