// The interrupt vectors of a function: eventfds that clients lend, signalled by the card.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/fd_socket.h"
#include "emulator/device.h"

namespace rodeo::emulator {

/// The eventfds of every client, by vector. Thread-safe; no call blocks.
class Interrupts {
 public:
  static constexpr unsigned kMaxVectors = 8;
  using Fds = std::array<base::UniqueFd, kMaxVectors>;

  /// Takes the descriptor and makes it non-blocking. An empty descriptor clears the vector.
  void set(ClientId client, unsigned vector, base::UniqueFd fd);
  void remove_client(ClientId client);
  /// Signals the vector to every client that has set it.
  void raise(unsigned vector);
  void raise(ClientId client, unsigned vector);
  std::uint64_t raised() const { return raised_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::unordered_map<ClientId, Fds> clients_;
  std::atomic<std::uint64_t> raised_{0};
};

}  // namespace rodeo::emulator
