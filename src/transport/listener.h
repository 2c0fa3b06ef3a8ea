// The listening side of a process on the network: its control port, its entry on the bus, its ports of libfabric, and new
// peers until they have passed the handshake and sent their request. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/log.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
#include "transport/fabric_ports.h"
#include "transport/handshake.h"
#include "transport/random.h"

namespace rodeo::transport {

/// Counts of peers that were turned away or cut off, and of the usual reasons.
struct Refusals {
  std::uint64_t peers = 0;
  std::uint64_t version = 0;     ///< the peer speaks another version
  std::uint64_t secret = 0;      ///< the peer has no secret, or another one
  std::uint64_t unreadable = 0;  ///< a message cannot be read, or has no place

  /// Counts one refusal. `code` is the code of the error that the peer receives.
  static Refusals from_code(std::string_view code);
  Refusals& operator+=(const Refusals& more);
  /// Adds them to the counters of the publisher or service.
  template <typename Counter>
  void count(base::CounterBlock<Counter>& counters) const {
    counters.add(Counter::refused_peers, peers);
    counters.add(Counter::refused_version, version);
    counters.add(Counter::refused_secret, secret);
    counters.add(Counter::refused_unreadable, unreadable);
  }
};

struct ListenerSettings {
  std::string name;                   ///< on the bus and in the log
  std::string address = "127.0.0.1";  ///< numerical
  std::string secret = {};            ///< required if `address` is not a loopback address
  PortSize ports = PortSize::few;
  std::uint64_t instance = random_number();
};

class Listener {
 public:
  /// Throws SetupError if the address is not one of this host, or if it needs a secret and has none.
  explicit Listener(ListenerSettings settings);

  std::uint16_t port() const { return listener_.port(); }

  /// Enters this process on the bus until withdraw() or the destructor. Uses only the description in `entry`: links,
  /// service, providers, sizes. Throws SetupError if the name is taken.
  void advertise(const std::filesystem::path& bus, BusEntry entry);
  void withdraw() { advertisement_.reset(); }

  /// Called with a new connection and its first message. On success the callee moves the socket to itself. After an error
  /// the socket stays, and the peer gets the reason.
  using OnPeer = std::function<Result<void>(ControlSocket&, formats::ControlMessage)>;
  /// Accepts new connections, up to a limit at a time, and reads from each. Returns the refusals; a peer that is silent for
  /// ten seconds is one. Does not block.
  Refusals poll(std::uint64_t now_ns, const OnPeer& on_peer);

  /// The port of a provider. Error transport.provider: it is not in the entry on the bus.
  Result<FabricPort*> port_of(const std::string& provider);
  FabricPorts& ports() { return ports_; }

 private:
  struct NewPeer {
    ControlSocket socket;
    Handshake handshake;
    std::uint64_t since_ns = 0;
  };
  /// False: the peer is no longer new, because it was handed over or refused.
  bool read(NewPeer& peer, std::uint64_t now_ns, const OnPeer& on_peer, Refusals& refusals);
  void refuse(NewPeer& peer, const Error& why, Refusals& refusals);

  const ListenerSettings settings_;
  ControlListener listener_;
  FabricPorts ports_;
  std::vector<std::string> providers_;
  std::optional<Advertisement> advertisement_;
  std::vector<NewPeer> new_peers_;
  std::map<std::string, base::LogThrottle> throttles_;  ///< by reason, so that one reason does not hide another
};

}  // namespace rodeo::transport
