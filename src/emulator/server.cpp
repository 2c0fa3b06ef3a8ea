#include "emulator/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace rodeo::emulator {
namespace {

using namespace formats::vfio_user;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxMessage = max_message_bytes(kDefaultTransferBytes);
constexpr std::size_t kMaxFds = 8;
constexpr std::size_t kFlushAbove = 64 << 10;
constexpr std::size_t kMessagesPerTurn = 32;  // of one client, then the next has its turn
constexpr std::size_t kMaxClients = 1024;
constexpr auto kPatience = std::chrono::seconds{10};
constexpr off_t kServerByte = 255;  // of the lock file
constexpr int kMaxDmaMaps = 65535;

}  // namespace

void Interrupts::set(ClientId client, unsigned vector, base::UniqueFd fd) {
  const std::lock_guard lock(mutex_);
  if (vector < kMaxVectors) clients_[client][vector] = std::move(fd);
}

void Interrupts::remove_client(ClientId client) {
  const std::lock_guard lock(mutex_);
  clients_.erase(client);
}

void Interrupts::raise(unsigned vector) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, fds] : clients_) {
    const std::uint64_t one = 1;
    // A counter that is full, or a descriptor that is no eventfd, is the client's own trouble: eventfds were made non-blocking when they came.
    if (vector < kMaxVectors && fds[vector]) (void)!::write(fds[vector].get(), &one, sizeof one);
  }
  raised_.fetch_add(1, std::memory_order_relaxed);
}

void Interrupts::raise(ClientId client, unsigned vector) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  const std::uint64_t one = 1;
  if (found != clients_.end() && vector < kMaxVectors && found->second[vector])
    (void)!::write(found->second[vector].get(), &one, sizeof one);
}

struct Server::Client {
  base::UniqueFd socket;
  ClientId id = 0;
  bool negotiated = false;
  bool hang_up = false;  // once its replies are out
  bool waits_for_room = false;
  Clock::time_point since{};  // when it began not to take its replies
  std::size_t peer_fds = 1;   // descriptors that it takes in one message

  // The message that is coming in: header first, so that descriptors are known to be of this message.
  std::array<std::byte, kHeaderBytes> header{};
  std::size_t have = 0;  // bytes of header and payload
  std::vector<std::byte> payload;
  base::ReceivedFds fds;

  MessageWriter out;
  std::size_t sent = 0;  // of `out`
  struct Passenger {
    std::size_t at;  // in `out`: the message it goes with
    int fd;
  };
  std::vector<Passenger> passengers;
};

Server::Server(Device& device, DmaMaps& maps, Interrupts& interrupts, Options options)
    : device_(device), maps_(maps), interrupts_(interrupts), options_(std::move(options)) {
  take_address();
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_.get();
  if (!epoll_ || !wake_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    throw SetupError({"base.socket", fmt::format("cannot wait for sockets: {}", std::strerror(errno)), options_.address});
  }
  listen();
  thread_ = std::jthread([this] { run(); });
}

Server::~Server() {
  order(Order::stop);
  thread_.join();
  std::error_code ignored;
  std::filesystem::remove(socket_path(), ignored);
  std::filesystem::remove(lock_path(), ignored);
}

void Server::take_address() {
  // A server that ends removes its lock file: who gets the lock of a file that is no longer there tries again.
  for (;;) {
    lock_.reset(::open(lock_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock_) {
      throw SetupError({"base.runtime_dir", fmt::format("cannot make {}: {}", lock_path().native(), std::strerror(errno))});
    }
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = kServerByte;
    range.l_len = 1;
    if (::fcntl(lock_.get(), F_OFD_SETLK, &range) != 0) {
      throw SetupError({"emulator.address_taken", fmt::format("another emulator serves the card at {}", options_.address),
                        "", "end it, or give this card another address"});
    }
    struct stat here{}, there{};
    if (::fstat(lock_.get(), &here) == 0 && ::stat(lock_path().c_str(), &there) == 0 && here.st_ino == there.st_ino) break;
  }
  std::error_code ignored;
  std::filesystem::remove(socket_path(), ignored);  // of a killed one
}

void Server::listen() {
  auto listener = base::listen_unix(socket_path());
  if (!listener) throw SetupError(listener.error());
  listener_ = std::move(*listener);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener_.get();
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
}

void Server::order(Order order) {
  order_.store(order, std::memory_order_release);
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  if (order == Order::stop) return;
  while (order_.load(std::memory_order_acquire) == order) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

void Server::unplug() { order(Order::unplug); }
void Server::plug() { order(Order::plug); }

void Server::obey() {
  std::uint64_t count;
  (void)!::read(wake_.get(), &count, sizeof count);
  const Order order = order_.load(std::memory_order_acquire);
  if (order == Order::unplug && listener_) {
    drop_all();
    std::error_code ignored;
    std::filesystem::remove(socket_path(), ignored);
    listener_.reset();
  }
  if (order == Order::plug && !listener_) {
    try {
      listen();
    } catch (const SetupError&) {
      // Somebody put something under the socket's name: the card stays away.
    }
  }
  if (order != Order::stop) order_.store(Order::none, std::memory_order_release);
}

void Server::run() {
  base::set_thread_name("vfio-user");
  std::array<epoll_event, 64> events;
  base::Backoff backoff(options_.idle);
  Clock::time_point next_look{};
  while (order_.load(std::memory_order_acquire) != Order::stop) {
    const bool spin = options_.idle != base::IdlePolicy::sleep;
    const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), spin ? 0 : 1000);
    if (ready <= 0) {
      if (spin) backoff.idle();
    } else {
      backoff.reset();
    }
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_.get()) {
        obey();
        break;  // what is in `events` may be gone
      }
      if (listener_ && fd == listener_.get()) {
        accept_clients();
        continue;
      }
      if (const auto found = clients_.find(fd); found != clients_.end()) serve(*found->second);
    }
    if (const auto now = Clock::now(); now >= next_look) {
      next_look = now + std::chrono::seconds{1};
      std::vector<int> stuck;
      for (const auto& [fd, client] : clients_) {
        if (client->waits_for_room && now - client->since > kPatience) stuck.push_back(fd);
      }
      for (const int fd : stuck) {
        counters_.add(ServerCounter::hung_up);
        drop(fd);
      }
    }
  }
  drop_all();
}

void Server::accept_clients() {
  for (;;) {
    base::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Out of descriptors: the one who knocks is let in when somebody has gone; meanwhile, do not spin on him.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds{10});
      return;
    }
    if (clients_.size() >= kMaxClients) {
      counters_.add(ServerCounter::hung_up);
      continue;
    }
    auto client = std::make_unique<Client>();
    const int fd = socket.get();
    client->socket = std::move(socket);
    client->id = next_client_++;
    maps_.add_client(client->id);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    clients_.emplace(fd, std::move(client));
    client_count_.store(clients_.size(), std::memory_order_relaxed);
  }
}

void Server::drop(int fd) {
  const auto found = clients_.find(fd);
  if (found == clients_.end()) return;
  interrupts_.remove_client(found->second->id);
  maps_.remove_client(found->second->id);
  clients_.erase(found);
  client_count_.store(clients_.size(), std::memory_order_relaxed);
}

void Server::drop_all() {
  while (!clients_.empty()) drop(clients_.begin()->first);
}

void Server::serve(Client& client) {
  const int fd = client.socket.get();
  if (client.waits_for_room) flush(client);
  bool more = !client.waits_for_room;
  for (std::size_t n = 0; more && !client.hang_up && n < kMessagesPerTurn; ++n) {
    more = take_message(client);
    if (client.out.bytes().size() > kFlushAbove) flush(client);
    if (client.waits_for_room) break;
  }
  flush(client);
  if (client.hang_up && !client.waits_for_room) drop(fd);
}

bool Server::take_message(Client& client) {
  const auto receive = [&](std::span<std::byte> into) {
    const base::IoResult got = base::receive_some(client.socket.get(), into, client.fds);
    client.have += got.bytes;
    if (got.status == base::IoStatus::closed || got.status == base::IoStatus::failed) {
      client.hang_up = true;
      return false;
    }
    return got.bytes == into.size();
  };
  if (client.have < kHeaderBytes && !receive(std::span(client.header).subspan(client.have))) return false;
  const Header header = read_header(client.header);
  if (header.size < kHeaderBytes || header.size > kMaxMessage || !header.is_command() || client.fds.truncated) {
    counters_.add(ServerCounter::hung_up);
    client.hang_up = true;
    return false;
  }
  const std::size_t size = header.size - kHeaderBytes;
  if (client.payload.size() != size) client.payload.resize(size);
  if (client.have < header.size && !receive(std::span(client.payload).subspan(client.have - kHeaderBytes))) return false;
  handle(client, header);
  client.have = 0;
  client.fds.fds.clear();
  return true;
}

void Server::refuse(Client& client, const Header& header, int error) {
  counters_.add(ServerCounter::errors);
  if (!header.wants_no_reply()) client.out.error(header, error);
}

void Server::handle(Client& client, const Header& header) {
  counters_.add(ServerCounter::requests);
  const auto request = decode_request(header, client.payload);
  if (!request) {
    refuse(client, header, request.error());
    if (header.command == static_cast<std::uint16_t>(Command::version)) client.hang_up = true;
    return;
  }
  if (const auto* version = std::get_if<Version>(&*request)) return negotiate(client, header, *version);
  if (!client.negotiated) return refuse(client, header, EINVAL);
  if (client.fds.fds.size() > kMaxFds) return refuse(client, header, EINVAL);
  const bool takes_fds = std::holds_alternative<DmaMap>(*request) || std::holds_alternative<SetIrqs>(*request);
  if (!takes_fds && !client.fds.fds.empty()) return refuse(client, header, EINVAL);
  const std::size_t before = client.out.bytes().size();
  answer(client, header, *request);
  if (header.wants_no_reply()) {
    client.out.truncate(before);
    std::erase_if(client.passengers, [&](const Client::Passenger& passenger) { return passenger.at >= before; });
  }
}

void Server::negotiate(Client& client, const Header& header, const Version& version) {
  if (client.negotiated || version.major != kMajor) {
    refuse(client, header, EINVAL);
    client.hang_up = true;
    return;
  }
  client.negotiated = true;
  client.peer_fds = std::clamp<std::uint64_t>(version.capabilities.max_msg_fds, 1, kMaxFds);
  client.out.reply(header, Version{.major = kMajor,
                                   .minor = std::min(version.minor, kMinor),
                                   .capabilities = {.max_msg_fds = kMaxFds,
                                                    .max_data_xfer_size = kDefaultTransferBytes,
                                                    .max_dma_maps = kMaxDmaMaps,
                                                    .pgsizes = 4096,
                                                    .write_multiple = true}});
}

bool Server::valid(const RegionAccess& access) const {
  if (access.region >= kRegions || access.count == 0 || access.count > kDefaultTransferBytes) return false;
  const std::uint64_t bytes = device_.region(access.region).bytes;
  return access.offset <= bytes && access.count <= bytes - access.offset;
}

namespace {

/// Calls `one` for each access of a long or crooked range: naturally aligned, at most 4 bytes unless the whole is 8.
template <typename One>
void split(std::uint64_t offset, std::size_t bytes, One&& one) {
  if (bytes == 8 && offset % 8 == 0) return one(offset, std::size_t{0}, std::size_t{8});
  std::size_t at = 0;
  while (at < bytes) {
    const std::uint64_t here = offset + at;
    std::size_t width = here % 4 == 0 ? 4 : here % 2 == 0 ? 2 : 1;
    while (width > bytes - at) width /= 2;
    one(here, at, width);
    at += width;
  }
}

}  // namespace

void Server::region_write(ClientId client, const RegionAccess& access, std::span<const std::byte> data) {
  split(access.offset, access.count, [&](std::uint64_t offset, std::size_t at, std::size_t width) {
    device_.write(client, access.region, offset, data.subspan(at, width));
  });
}

void Server::region_info(Client& client, const Header& header, const RegionInfo& asked) {
  if (asked.index >= kRegions) return refuse(client, header, EINVAL);
  const Region& region = device_.region(asked.index);
  RegionInfo info{.index = asked.index, .size = region.bytes};
  if (region.bytes > 0) info.flags = RegionInfo::kRead | RegionInfo::kWrite;
  if (!region.mappable.empty()) info.flags |= RegionInfo::kMmap;
  const bool whole = asked.argsz >= region_info_bytes(region.mappable.size());
  if (whole && region.fd >= 0) client.passengers.push_back({client.out.bytes().size(), region.fd});
  client.out.reply(header, info, region.mappable, asked.argsz);
}

int Server::set_irqs(Client& client, const SetIrqs& irqs) {
  const auto action = irqs.flags & (SetIrqs::kMask | SetIrqs::kUnmask | SetIrqs::kTrigger);
  const auto data = irqs.flags & (SetIrqs::kDataNone | SetIrqs::kDataBool | SetIrqs::kDataEventfd);
  if (action != SetIrqs::kTrigger) return action == SetIrqs::kMask || action == SetIrqs::kUnmask ? ENOTSUP : EINVAL;
  if (irqs.index >= kIrqIndices) return EINVAL;
  const std::uint32_t vectors = irqs.index == kMsiIndex ? device_.vectors() : 0;
  if (irqs.start > vectors || irqs.count > vectors - irqs.start) return EINVAL;
  switch (data) {
    case SetIrqs::kDataNone:
      if (irqs.count == 0) {
        for (std::uint32_t vector = 0; vector < vectors; ++vector) interrupts_.set(client.id, vector, {});
      }
      for (std::uint32_t i = 0; i < irqs.count; ++i) interrupts_.raise(client.id, irqs.start + i);
      return 0;
    case SetIrqs::kDataBool:
      for (std::uint32_t i = 0; i < irqs.count; ++i) {
        if (irqs.data[i] != std::byte{0}) interrupts_.raise(client.id, irqs.start + i);
      }
      return 0;
    case SetIrqs::kDataEventfd:
      // No descriptors at all: they are taken back.
      if (!client.fds.fds.empty() && client.fds.fds.size() != irqs.count) return EINVAL;
      for (std::uint32_t i = 0; i < irqs.count; ++i) {
        base::UniqueFd fd;
        if (!client.fds.fds.empty()) {
          fd = std::move(client.fds.fds[i]);
          const int flags = ::fcntl(fd.get(), F_GETFL);
          (void)::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
        }
        interrupts_.set(client.id, irqs.start + i, std::move(fd));
      }
      return 0;
    default: return EINVAL;
  }
}

void Server::answer(Client& client, const Header& header, const Request& request) {
  const auto finish = [&](int error) {
    if (error != 0) return refuse(client, header, error);
    client.out.reply(header);
  };
  if (const auto* read = std::get_if<RegionRead>(&request)) {
    if (!valid(*read)) return refuse(client, header, EINVAL);
    const std::span<std::byte> data = client.out.reply_read(header, *read);
    split(read->offset, read->count, [&](std::uint64_t offset, std::size_t at, std::size_t width) {
      device_.read(client.id, read->region, offset, data.subspan(at, width));
    });
  } else if (const auto* write = std::get_if<RegionWrite>(&request)) {
    if (!valid(*write)) return refuse(client, header, EINVAL);
    region_write(client.id, *write, write->data);
    client.out.reply(header, RegionAccess{*write});
  } else if (const auto* multi = std::get_if<WriteMulti>(&request)) {
    for (std::size_t i = 0; i < multi->size(); ++i) {
      if (const SmallWrite one = (*multi)[i]; one.count > sizeof one.value || !valid(one))
        return refuse(client, header, EINVAL);
    }
    for (std::size_t i = 0; i < multi->size(); ++i) {
      const SmallWrite one = (*multi)[i];
      region_write(client.id, one, std::as_bytes(std::span(&one.value, 1)).first(one.count));
    }
    client.out.reply_write_multi(header, multi->size());
  } else if (const auto* map = std::get_if<DmaMap>(&request)) {
    if (client.fds.fds.size() > 1) return refuse(client, header, EINVAL);
    const base::UniqueFd none;
    finish(maps_.map(client.id, *map, client.fds.fds.empty() ? none : client.fds.fds.front()));
  } else if (const auto* unmap = std::get_if<DmaUnmap>(&request)) {
    if ((unmap->flags & ~DmaUnmap::kAll) != 0) return refuse(client, header, ENOTSUP);
    const bool all = (unmap->flags & DmaUnmap::kAll) != 0;
    if (all && (unmap->address != 0 || unmap->size != 0)) return refuse(client, header, EINVAL);
    const int error = all ? maps_.unmap_all(client.id) : maps_.unmap(client.id, unmap->address, unmap->size);
    if (error != 0) return refuse(client, header, error);
    client.out.reply(header, *unmap);
  } else if (std::holds_alternative<DeviceInfo>(request)) {
    client.out.reply(header,
                     DeviceInfo{.flags = DeviceInfo::kReset | DeviceInfo::kPci, .regions = kRegions, .irqs = kIrqIndices});
  } else if (const auto* region = std::get_if<RegionInfo>(&request)) {
    region_info(client, header, *region);
  } else if (const auto* io_fds = std::get_if<RegionIoFds>(&request)) {
    if (io_fds->index >= kRegions) return refuse(client, header, EINVAL);
    client.out.reply(header, RegionIoFds{.index = io_fds->index});
  } else if (const auto* irq = std::get_if<IrqInfo>(&request)) {
    if (irq->index >= kIrqIndices) return refuse(client, header, EINVAL);
    IrqInfo info{.index = irq->index};
    if (irq->index == kMsiIndex) {
      info.flags = IrqInfo::kEventfd | IrqInfo::kNoResize;
      info.count = device_.vectors();
    }
    client.out.reply(header, info);
  } else if (const auto* irqs = std::get_if<SetIrqs>(&request)) {
    finish(set_irqs(client, *irqs));
  } else if (std::holds_alternative<DeviceReset>(request)) {
    device_.reset();
    finish(0);
  } else {
    refuse(client, header, ENOTSUP);
  }
}

void Server::flush(Client& client) {
  const auto all = client.out.bytes();
  while (client.sent < all.size()) {
    // Descriptors go with the first byte of their message, and what stands before it goes alone.
    const bool aboard = !client.passengers.empty() && client.passengers.front().at == client.sent;
    const std::size_t next = aboard && client.passengers.size() > 1  ? client.passengers[1].at
                             : !aboard && !client.passengers.empty() ? client.passengers.front().at
                                                                     : all.size();
    const std::span<const int> fds = aboard ? std::span(&client.passengers.front().fd, 1) : std::span<const int>{};
    const base::IoResult one = base::send_some(client.socket.get(), all.subspan(client.sent, next - client.sent), fds);
    client.sent += one.bytes;
    if (aboard && one.bytes > 0) client.passengers.erase(client.passengers.begin());
    if (one.status == base::IoStatus::partial && one.bytes > 0) continue;
    if (one.status == base::IoStatus::partial) {
      if (!client.waits_for_room) client.since = Clock::now();
      client.waits_for_room = true;
      epoll_event event{};
      event.events = EPOLLOUT;  // no more of its requests until it has taken its replies
      event.data.fd = client.socket.get();
      (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.socket.get(), &event);
      return;
    }
    if (one.status != base::IoStatus::done) {
      client.hang_up = true;
      client.out.clear();
      client.sent = 0;
      client.waits_for_room = false;
      return;
    }
  }
  client.out.clear();
  client.sent = 0;
  if (client.waits_for_room) {
    client.waits_for_room = false;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = client.socket.get();
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.socket.get(), &event);
  }
}

}  // namespace rodeo::emulator
