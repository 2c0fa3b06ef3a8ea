// The calling side of a control connection: chooses the network, and passes the handshake. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
#include "transport/handshake.h"
#include "transport/provider_choice.h"

namespace rodeo::transport {

class Caller {
 public:
  /// Chooses the provider for the next call: `wanted`, or with "auto" the best one that has not failed. Error
  /// transport.provider: this machine has none that the process offers.
  Result<void> choose_provider(const std::string& wanted, const BusEntry& entry, const Here& here);
  const std::string& provider() const { return provider_; }
  /// Selects the next provider after a failed call. False: every provider has been tried.
  bool next_provider() { return ++failures_ % choices_ != 0; }
  void forget_failures() { failures_ = 0; }

  /// Calls the process of an entry on the bus, and sends HELLO. Returns before the connection is made. `instance` is the
  /// caller's own. Error transport.address.
  Result<void> call(const BusEntry& entry, const std::string& secret, std::uint64_t instance,
                    ControlSocket::Peer peer = ControlSocket::Peer::reads);
  const BusEntry& entry() const { return entry_; }
  /// Reads a message of the handshake and answers it. True: the handshake is done. Errors: those of Handshake::on_message().
  Result<bool> on_greeting(const formats::ControlMessage& message);
  /// Error transport.closed: the entry belongs to another process than the one at its address.
  Result<void> check_instance() const { return transport::check_instance(entry_, handshake_->peer().instance); }

  ControlSocket socket;

 private:
  BusEntry entry_;
  std::optional<Handshake> handshake_;
  std::string provider_;
  std::size_t choices_ = 1;
  std::size_t failures_ = 0;
};

}  // namespace rodeo::transport
