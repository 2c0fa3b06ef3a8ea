#include "emulator/server.h"

#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "base/fd_socket.h"
#include "base/lock_file.h"

namespace rodeo::emulator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSendAbove = 64 << 10;  // replies are sent when they exceed this size
constexpr std::size_t kMaxClients = 256;
constexpr std::size_t kMaxTurnedAway = 16;  // clients that get a refusal; further ones are disconnected at once
constexpr auto kPatience = std::chrono::seconds{10};
constexpr auto kSpin = std::chrono::microseconds{50};
constexpr off_t kServerByte = 255;  // the server's byte of the lock file
// A client keeps two threads busy: its own and the server's. The work of competing clients may differ by some milliseconds
// of accesses.
constexpr unsigned kThreadsOfClient = 2;
constexpr std::uint64_t kLookEvery = 32;
constexpr std::uint64_t kMayBeAhead = 128;

}  // namespace

struct Server::Client {
  Client(base::UniqueFd connection, ClientId id, Server& server, bool one_too_many)
      : socket(std::move(connection)),
        session(id, server.device_, server.maps_, server.interrupts_, one_too_many),
        shares(server.shares_),
        share(shares.join()) {}
  ~Client() {
    if (thread.joinable()) thread.join();
    shares.leave(share);
  }

  base::UniqueFd socket;
  VfioUserSession session;
  FairShares& shares;
  FairShares::Member& share;
  std::atomic<bool> over{false};
  std::jthread thread;  // ends before the other members are destroyed
};

Server::Server(Device& device, DmaMaps& maps, Interrupts& interrupts, Options options)
    : device_(device),
      maps_(maps),
      interrupts_(interrupts),
      options_(std::move(options)),
      shares_({.processors = std::max(1U, std::thread::hardware_concurrency()),
               .threads_each = kThreadsOfClient,
               .look_every = kLookEvery,
               .may_be_ahead = kMayBeAhead}) {
  auto endpoint = base::UnixEndpoint::open(
      {.path = socket_path(),
       .taken = {"emulator.address_taken", fmt::format("another emulator serves the card at {}", options_.address), "",
                 "end it, or give this card another address"},
       .lock = lock_path(),
       .part = base::LockedPart::byte(kServerByte)});
  if (!endpoint) throw SetupError(endpoint.error());
  endpoint_ = std::move(*endpoint);
  thread_ = std::jthread([this] { run(); });
}

Server::~Server() {
  order(Order::stop);
  thread_.join();
}

void Server::order(Order order) {
  order_.store(order, std::memory_order_release);
  wake_.wake();
  if (order == Order::stop) return;
  while (order_.load(std::memory_order_acquire) == order) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

void Server::unplug() { order(Order::unplug); }
void Server::plug() { order(Order::plug); }

void Server::handle_commands() {
  const Order order = order_.load(std::memory_order_acquire);
  if (order == Order::unplug && endpoint_) {
    drop_all();
    endpoint_.hide();
  }
  // If another file has taken the socket's name, the card stays removed.
  if (order == Order::plug && !endpoint_) (void)endpoint_.listen();
  // Clears the order, unless a new one has arrived: the destructor's order must not be lost.
  Order done = order;
  if (order != Order::stop) order_.compare_exchange_strong(done, Order::none, std::memory_order_acq_rel);
}

void Server::run() {
  base::set_thread_name("vfio-user");
  while (order_.load(std::memory_order_acquire) != Order::stop) {
    std::array<pollfd, 2> fds{
        {{wake_.get(), POLLIN, 0}, {endpoint_.get(), POLLIN, 0}}};  // poll() ignores a descriptor of -1
    (void)::poll(fds.data(), fds.size(), -1);
    if ((fds[0].revents & POLLIN) != 0) {
      wake_.clear();
      bury();
      handle_commands();
      continue;  // the listener may be gone
    }
    if (fds[1].revents != 0) accept_clients();
  }
  drop_all();
}

void Server::accept_clients() {
  for (;;) {
    base::UniqueFd socket(::accept4(endpoint_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      // Out of descriptors: the client is accepted when another one has left; until then, wait in steps.
      if (base::out_of_descriptors(errno)) std::this_thread::sleep_for(std::chrono::milliseconds{10});
      return;
    }
    const std::lock_guard lock(mutex_);
    if (clients_.size() >= kMaxClients + kMaxTurnedAway) {
      ++past_[static_cast<std::size_t>(ServerCounter::hung_up)];
      continue;
    }
    Client& client = clients_.emplace_back(std::move(socket), next_client_++, *this, clients_.size() >= kMaxClients);
    try {
      client.thread = std::jthread([this, &client] { converse(client); });
    } catch (const std::system_error&) {  // the system has no thread available
      clients_.pop_back();
      ++past_[static_cast<std::size_t>(ServerCounter::hung_up)];
    }
    client_count_.store(clients_.size(), std::memory_order_relaxed);
  }
}

std::uint64_t Server::read(ServerCounter counter) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = past_[static_cast<std::size_t>(counter)];
  for (const Client& client : clients_) sum += client.session.read(counter);
  return sum;
}

/// Removes the clients whose threads have ended.
void Server::bury() {
  std::list<Client> dead;
  {
    const std::lock_guard lock(mutex_);
    for (auto client = clients_.begin(); client != clients_.end();) {
      const auto next = std::next(client);
      if (client->over.load(std::memory_order_acquire)) {
        for (std::size_t i = 0; i < past_.size(); ++i) past_[i] += client->session.read(static_cast<ServerCounter>(i));
        dead.splice(dead.end(), clients_, client);
      }
      client = next;
    }
  }
  dead.clear();
  const std::lock_guard lock(mutex_);
  client_count_.store(clients_.size(), std::memory_order_relaxed);
}

void Server::drop_all() {
  {
    const std::lock_guard lock(mutex_);
    for (const Client& client : clients_) (void)::shutdown(client.socket.get(), SHUT_RDWR);
  }
  // Only this thread adds clients, so none is added here.
  for (Client& client : clients_) client.thread.join();
  bury();
}

/// Runs on the client's thread.
void Server::converse(Client& client) {
  base::set_thread_name("vfio-user-peer");
  const int socket = client.socket.get();
  VfioUserSession& session = client.session;
  base::ReceivedFds fds;
  const auto receive = [&] {
    const std::span<std::byte> room = session.room();
    if (options_.idle != base::IdlePolicy::sleep) {
      for (const auto end = Clock::now() + kSpin; Clock::now() < end;) {
        const base::IoResult got = base::receive_now(socket, room, fds);
        if (got.bytes > 0 || got.status != base::IoStatus::partial) return got;
        if (options_.idle == base::IdlePolicy::yield) {
          ::sched_yield();
        } else {
          base::cpu_relax();
        }
      }
    }
    return base::receive_some(socket, room, fds);
  };
  const auto reply = [&] {
    const bool sent = session.send_replies([&](std::span<const std::byte> bytes, std::span<const int> with) {
      const base::IoResult result = base::send_all(socket, bytes, with, kPatience);
      if (result.status == base::IoStatus::partial) session.cut_off();  // the client does not take its replies
      return result.status == base::IoStatus::done;
    });
    if (!sent) session.end();
  };
  while (!session.over()) {
    const base::IoResult got = receive();
    if (got.status == base::IoStatus::closed || got.status == base::IoStatus::failed) break;
    if (got.bytes == 0) continue;  // interrupted by a signal
    session.received(got.bytes, fds);
    std::uint64_t messages = 0;
    while (session.handle_message()) {
      ++messages;
      if (session.reply_bytes() > kSendAbove) reply();
    }
    if (session.reply_bytes() > 0) reply();
    shares_.wait_turn(client.share, messages);
  }
  (void)::shutdown(socket, SHUT_RDWR);
  shares_.rest(client.share);
  client.over.store(true, std::memory_order_release);
  wake_.wake();
}

}  // namespace rodeo::emulator
