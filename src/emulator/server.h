// A vfio-user server for one function: any number of clients, none of them trusted (docs/protocols/vfio-user.md).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/counters.h"
#include "base/error.h"
#include "base/fd_socket.h"
#include "base/thread.h"
#include "emulator/device.h"
#include "emulator/dma_maps.h"

namespace rodeo::emulator {

enum class ServerCounter : std::uint8_t { requests, errors, hung_up, count };
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(ServerCounter::count)> kServerCounters{{
    {"requests", "messages", "Requests of clients, answered or not."},
    {"request_errors", "messages", "Requests that were answered with an error."},
    {"clients_cut_off", "clients", "Connections that the server ended: broken messages, or replies that were not taken."},
}};

/// The eventfds of every client, by vector. The server's thread sets them, any thread raises.
class Interrupts {
 public:
  static constexpr unsigned kMaxVectors = 8;
  using Fds = std::array<base::UniqueFd, kMaxVectors>;

  void set(ClientId client, unsigned vector, base::UniqueFd fd);
  void remove_client(ClientId client);
  /// Signals the vector to every client that asked for it. Never blocks.
  void raise(unsigned vector);
  void raise(ClientId client, unsigned vector);
  std::uint64_t raised() const { return raised_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::unordered_map<ClientId, Fds> clients_;
  std::atomic<std::uint64_t> raised_{0};
};

/// Listens from the constructor to the destructor, on a thread of its own. Throws SetupError: emulator.address_taken, base.socket.
class Server {
 public:
  struct Options {
    std::filesystem::path directory;  ///< of sockets and locks; made by the caller
    std::string address;              ///< "0000:3b:00.0"
    base::IdlePolicy idle = base::IdlePolicy::sleep;
  };

  Server(Device& device, DmaMaps& maps, Interrupts& interrupts, Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::filesystem::path socket_path() const { return options_.directory / (options_.address + ".sock"); }
  std::filesystem::path lock_path() const { return options_.directory / (options_.address + ".lock"); }

  /// Surprise removal: hangs up on everybody and listens no more, until plugged in again. Any thread; returns when it is done.
  void unplug();
  void plug();

  std::size_t clients() const { return client_count_.load(std::memory_order_relaxed); }
  std::uint64_t read(ServerCounter counter) const { return counters_.read(counter); }

 private:
  struct Client;

  void take_address();
  void listen();
  void run();
  void accept_clients();
  void serve(Client& client);
  bool take_message(Client& client);
  void handle(Client& client, const formats::vfio_user::Header& header);
  void flush(Client& client);
  void drop(int fd);
  void drop_all();
  void obey();

  void answer(Client& client, const formats::vfio_user::Header& header, const formats::vfio_user::Request& request);
  void refuse(Client& client, const formats::vfio_user::Header& header, int error);
  void negotiate(Client& client, const formats::vfio_user::Header& header, const formats::vfio_user::Version& version);
  void region_info(Client& client, const formats::vfio_user::Header& header, const formats::vfio_user::RegionInfo& asked);
  int set_irqs(Client& client, const formats::vfio_user::SetIrqs& irqs);
  bool valid(const formats::vfio_user::RegionAccess& access) const;
  void region_write(ClientId client, const formats::vfio_user::RegionAccess& access, std::span<const std::byte> data);

  Device& device_;
  DmaMaps& maps_;
  Interrupts& interrupts_;
  Options options_;
  base::UniqueFd lock_;
  base::UniqueFd listener_;
  base::UniqueFd epoll_;
  base::UniqueFd wake_;
  std::unordered_map<int, std::unique_ptr<Client>> clients_;
  ClientId next_client_ = 1;
  std::atomic<std::size_t> client_count_{0};
  base::CounterBlock<ServerCounter> counters_;

  enum class Order : std::uint8_t { none, unplug, plug, stop };
  void order(Order order);
  std::atomic<Order> order_{Order::none};
  std::jthread thread_;
};

}  // namespace rodeo::emulator
