// A vfio-user server for one function: any number of clients, none of them trusted (docs/reference/protocols/vfio-user.md).
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "base/thread.h"
#include "base/unix_endpoint.h"
#include "base/wake.h"
#include "emulator/fair_shares.h"
#include "emulator/session.h"

namespace rodeo::emulator {

/// Listens from the constructor to the destructor on its own thread, and serves each client on a separate thread, so that an
/// answer takes no longer than a bare exchange over a socket. Clients do not wait for each other unless processors are few:
/// then a client that is ahead of others with the same demand waits (FairShares). Throws SetupError: emulator.address_taken,
/// base.socket.
class Server {
 public:
  struct Options {
    std::filesystem::path directory;  ///< directory of sockets and locks; made by the caller
    std::string address;              ///< "0000:3b:00.0"
    /// How threads of busy clients wait: they poll for a moment before they sleep, unless this is `sleep`.
    base::IdlePolicy idle = base::IdlePolicy::sleep;
  };

  Server(Device& device, DmaMaps& maps, Interrupts& interrupts, Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::filesystem::path socket_path() const { return options_.directory / (options_.address + ".sock"); }
  std::filesystem::path lock_path() const { return options_.directory / (options_.address + ".lock"); }

  /// Surprise removal: disconnects all clients and stops listening, until plug(). Any thread except a client's; returns when
  /// it is done.
  void unplug();
  void plug();

  std::size_t clients() const { return client_count_.load(std::memory_order_relaxed); }
  std::uint64_t read(ServerCounter counter) const;

 private:
  struct Client;

  void run();
  void accept_clients();
  void converse(Client& client);
  void bury();
  void drop_all();
  void handle_commands();

  enum class Order : std::uint8_t { none, unplug, plug, stop };
  void order(Order order);

  Device& device_;
  DmaMaps& maps_;
  Interrupts& interrupts_;
  Options options_;
  base::UnixEndpoint endpoint_;
  base::Wake wake_;
  ClientId next_client_ = 1;
  std::atomic<std::size_t> client_count_{0};

  FairShares shares_;  // shares of clients that access registers at full speed

  mutable std::mutex mutex_;  // guards the following members
  std::list<Client> clients_;
  std::array<std::uint64_t, static_cast<std::size_t>(ServerCounter::count)> past_{};  // counts of clients that have left

  std::atomic<Order> order_{Order::none};
  std::jthread thread_;
};

}  // namespace rodeo::emulator
