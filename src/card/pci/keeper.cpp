#include "card/pci/keeper.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/fd_socket.h"
#include "base/log.h"
#include "base/runtime_dir.h"
#include "base/sentence.h"
#include "base/unix_endpoint.h"
#include "card/pci/keeper_protocol.h"
#include "card/pci/kept_function.h"

namespace rodeo::card::pci {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kMostClients = 256;
constexpr std::size_t kMostMaps = 4096;

std::unexpected<Error> failed(std::string code, std::string what, std::string where, std::string next = {}) {
  return std::unexpected(Error{std::move(code), std::move(what), std::move(where), std::move(next)});
}

struct Client {
  std::uint64_t number = 0;
  Descriptor socket;
  ucred peer{};
  KeptFunction* function = nullptr;
};

class Keeper {
 public:
  explicit Keeper(const KeeperSettings& settings) : settings_(settings) {}

  Result<void> listen();
  void serve();

 private:
  Result<gid_t> group() const;
  void accept_one();
  /// False: the client has disconnected or misbehaved.
  bool serve_one(Client& client);
  Result<KeeperReply> answer(Client& client, const KeeperRequest& request, std::vector<Descriptor>& descriptors,
                             std::vector<int>& passed);
  Result<KeptFunction*> function(const Address& address, bool uio);
  Result<std::string> lock_file(const Address& address) const;
  void leave(Client& client);
  std::string status() const;
  bool busy() const;

  const KeeperSettings& settings_;
  fs::path path_;
  gid_t group_ = static_cast<gid_t>(-1);
  base::UnixEndpoint endpoint_;
  VfioGroups groups_;
  std::vector<std::unique_ptr<KeptFunction>> functions_;
  std::vector<Client> clients_;
  std::uint64_t next_client_ = 1;
  bool stopping_ = false;
};

Result<gid_t> Keeper::group() const {
  const std::string name = settings_.group.empty() ? "rodeo" : settings_.group;
  const struct group* found = ::getgrnam(name.c_str());
  if (found != nullptr) return found->gr_gid;
  if (settings_.group.empty()) return ::getegid();
  return failed("card.keeper", fmt::format("there is no group {}", name), "",
                fmt::format("sudo groupadd --system {0}; sudo usermod -aG {0} USER", name));
}

Result<void> Keeper::listen() {
  path_ = settings_.socket;
  if (path_.empty()) {
    path_ = RODEO_TRY(keeper_socket());
  }
  std::error_code failure;
  fs::create_directories(path_.parent_path(), failure);
  group_ = RODEO_TRY(group());
  endpoint_ = RODEO_TRY(base::UnixEndpoint::open({.path = path_,
                                                  .taken = {"card.held", "another keeper runs already", path_.string(),
                                                            "`rodeo card keep --status` shows what it holds"},
                                                  .lock = path_.parent_path() / "keeper.lock",
                                                  .type = SOCK_SEQPACKET}));
  // Set the group before the mode: until then only the owner can connect.
  if ((group_ != ::getegid() && ::chown(path_.c_str(), static_cast<uid_t>(-1), group_) != 0) ||
      ::chmod(path_.c_str(), 0660) != 0)
    return failed("card.keeper", fmt::format("cannot open the socket to its group: {}", std::strerror(errno)),
                  path_.string());
  return {};
}

void Keeper::serve() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM}) {
    // A signalfd delivers a blocked signal even if the signal is ignored, but an ignored signal must not end the keeper.
    struct sigaction present{};
    sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const Descriptor signal(::signalfd(-1, &signals, SFD_CLOEXEC));
  auto idle_since = Clock::now();
  while (!stopping_) {
    if (busy()) idle_since = Clock::now();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(idle_since + settings_.idle - Clock::now());
    if (left.count() <= 0) break;
    std::vector<pollfd> ready{{endpoint_.get(), POLLIN, 0}, {signal.get(), POLLIN, 0}, {settings_.stop, POLLIN, 0}};
    const std::size_t first = ready.size();
    for (const Client& client : clients_) ready.push_back({client.socket.get(), POLLIN, 0});
    const int wait = busy() ? -1 : static_cast<int>(left.count());
    if (::poll(ready.data(), ready.size(), wait) < 0) continue;
    if (ready[1].revents != 0 || ready[2].revents != 0) break;
    for (std::size_t i = first; i < ready.size() && !stopping_; ++i) {
      if (ready[i].revents == 0) continue;
      Client& client = clients_[i - first];
      if (!serve_one(client)) leave(client);
    }
    std::erase_if(clients_, [](const Client& client) { return !client.socket; });
    if (ready[0].revents != 0) accept_one();
  }
  for (Client& client : clients_) leave(client);
}

bool Keeper::busy() const {
  return !clients_.empty() || std::any_of(functions_.begin(), functions_.end(), [](const auto& one) { return one->kept; });
}

void Keeper::accept_one() {
  Client client;
  client.socket = Descriptor(::accept4(endpoint_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client.socket && base::out_of_descriptors(errno)) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  socklen_t size = sizeof client.peer;
  if (!client.socket || ::getsockopt(client.socket.get(), SOL_SOCKET, SO_PEERCRED, &client.peer, &size) != 0) return;
  if (clients_.size() >= kMostClients) {
    base::log_warning("refused process {}: {} clients are connected", client.peer.pid, clients_.size());
    return;
  }
  client.number = next_client_++;
  clients_.push_back(std::move(client));
}

bool Keeper::serve_one(Client& client) {
  // The packet has arrived, or the client has gone.
  auto packet = receive_packet(client.socket.get(), std::chrono::milliseconds{100});
  if (!packet || packet->bytes.empty()) return false;
  const auto request = decode_request(packet->bytes);
  if (!request) {
    send_packet(client.socket.get(), encode(KeeperOperation::status, request.error()));
    return false;
  }
  std::vector<int> passed;
  const auto reply = answer(client, *request, packet->descriptors, passed);
  if (!reply) {
    base::log_info("process {}: {}", client.peer.pid, base::in_a_line(reply.error()));
    return send_packet(client.socket.get(), encode(request->operation, reply.error()));
  }
  return send_packet(client.socket.get(), encode(*reply), passed);
}

Result<KeeperReply> Keeper::answer(Client& client, const KeeperRequest& request, std::vector<Descriptor>& descriptors,
                                   std::vector<int>& passed) {
  KeeperReply reply;
  reply.operation = request.operation;
  const auto set_text = [&](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text.substr(0, kKeeperMostData)));
    reply.data.assign(bytes.begin(), bytes.end());
  };
  const bool needs_function = request.operation == KeeperOperation::map || request.operation == KeeperOperation::unmap ||
                              request.operation == KeeperOperation::physical ||
                              request.operation == KeeperOperation::reset || request.operation == KeeperOperation::lock;
  if (needs_function && client.function == nullptr)
    return failed("card.keeper", "no function was opened on this connection", "");
  switch (request.operation) {
    case KeeperOperation::open_vfio:
    case KeeperOperation::open_uio: {
      if (client.function != nullptr) return failed("card.keeper", "a connection has one function", "");
      const auto opened = RODEO_TRY(function(request.address, request.operation == KeeperOperation::open_uio));
      const auto path = RODEO_TRY(lock_file(request.address));
      client.function = opened;
      passed = client.function->descriptors();
      reply.value = client.function->value();
      set_text(path);
      break;
    }
    case KeeperOperation::map: {
      if (descriptors.size() != 1) return failed("card.keeper", "a map needs one descriptor", "");
      if (client.function->maps(client.number) >= kMostMaps)
        return failed("card.dma_memory", fmt::format("a process may map {} pieces of memory", kMostMaps), "",
                      "map larger pieces");
      RODEO_TRY(client.function->map(client.number, descriptors[0].get(), request.offset, request.iova, request.bytes));
      break;
    }
    case KeeperOperation::unmap: {
      RODEO_TRY(client.function->unmap(client.number, request.iova, request.bytes));
      reply.value = request.bytes;
      break;
    }
    case KeeperOperation::physical: {
      const auto runs =
          RODEO_TRY(client.function->physical(client.number, request.iova, kKeeperMostData / sizeof(PhysicalRun)));
      for (const PhysicalRun& run : runs) reply.value += run.bytes;
      const auto bytes = std::as_bytes(std::span(runs));
      reply.data.assign(bytes.begin(), bytes.end());
      break;
    }
    case KeeperOperation::keep: {
      const auto found = std::find_if(functions_.begin(), functions_.end(),
                                      [&](const auto& one) { return one->address() == request.address; });
      if (found == functions_.end())
        return failed("card.keeper", "the keeper does not hold this function", request.address.text(), "open it first");
      (*found)->kept = (request.flags & kKeepFlag) != 0;
      break;
    }
    case KeeperOperation::reset: {
      RODEO_TRY(client.function->reset());
      break;
    }
    case KeeperOperation::lock: {
      auto node = RODEO_TRY(client.function->lock_node());
      passed = {node.file.get()};
      reply.value = node.first;
      descriptors.clear();
      descriptors.push_back(std::move(node.file));  // keep it until it has been sent; then only the client has it
      break;
    }
    case KeeperOperation::status: set_text(status()); break;
    case KeeperOperation::stop:
      if (std::any_of(functions_.begin(), functions_.end(), [](const auto& one) { return one->in_use(); }))
        return failed("card.held", "a card has memory of a running program mapped", "",
                      "end the program first; `rodeo card keep --status` names it");
      stopping_ = true;
      break;
  }
  return reply;
}

Result<KeptFunction*> Keeper::function(const Address& address, bool uio) {
  const auto found =
      std::find_if(functions_.begin(), functions_.end(), [&](const auto& one) { return one->address() == address; });
  if (found != functions_.end()) {
    if (((*found)->back_end() == BackEnd::uio) == uio) return found->get();
    return failed("card.held", "the keeper has opened the card with the other back end (VFIO, UIO)", address.text(),
                  "rodeo card keep --stop");
  }
  auto opened = RODEO_TRY(uio ? KeptFunction::open_uio(address) : KeptFunction::open_vfio(address, groups_));
  functions_.push_back(std::move(opened));
  return functions_.back().get();
}

Result<std::string> Keeper::lock_file(const Address& address) const {
  const fs::path path = path_.parent_path() / (address.text() + ".lock");
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file)
    return failed("card.keeper", fmt::format("cannot make the lock file of the card: {}", std::strerror(errno)),
                  path.string());
  if ((group_ != ::getegid() && ::fchown(file.get(), static_cast<uid_t>(-1), group_) != 0) ||
      ::fchmod(file.get(), 0660) != 0)
    base::log_warning("cannot open {} to its group: {}", path.string(), std::strerror(errno));
  return path.string();
}

void Keeper::leave(Client& client) {
  if (client.function != nullptr) {
    if (const auto bytes = client.function->mapped_bytes(client.number); bytes > 0)
      base::log_info("process {} left {} MiB mapped for {}", client.peer.pid, bytes >> 20,
                     client.function->address().text());
    client.function->release(client.number);
  }
  client.socket = Descriptor();
}

std::string Keeper::status() const {
  std::string text = "{\"functions\":[";
  for (const auto& one : functions_) {
    std::string users;
    for (const Client& client : clients_) {
      if (client.function != one.get()) continue;
      users += fmt::format("{}{{\"pid\":{},\"uid\":{},\"mapped_bytes\":{}}}", users.empty() ? "" : ",", client.peer.pid,
                           client.peer.uid, one->mapped_bytes(client.number));
    }
    text += fmt::format("{}{{\"address\":\"{}\",\"back_end\":\"{}\",\"kept\":{},\"clients\":[{}]}}",
                        &one == functions_.data() ? "" : ",", one->address().text(),
                        one->back_end() == BackEnd::uio ? "uio" : "vfio", one->kept, users);
  }
  return text + "]}";
}

void write_to(int pipe, std::string_view text) {
  if (pipe < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(pipe, text.data(), text.size());
  ::close(pipe);
}

}  // namespace

Result<fs::path> keeper_socket() {
  if (const char* own = std::getenv("RODEO_KEEPER_SOCKET"); own != nullptr && *own != '\0') return fs::path(own);
  if (::geteuid() == 0) return fs::path(kSharedKeeperSocket);
  return base::runtime_socket("keeper.sock");
}

Result<fs::path> function_lock_file(const Address& address) {
  const std::string name = address.text() + ".lock";
  // Root's keeper may hold a card that a user opens.
  const fs::path shared = kSharedKeeperSocket;
  if (std::getenv("RODEO_KEEPER_SOCKET") == nullptr && ::access(shared.c_str(), F_OK) == 0)
    return shared.parent_path() / name;
  const auto socket = RODEO_TRY(keeper_socket());
  return socket.parent_path() / name;
}

Result<void> run_keeper(const KeeperSettings& settings) {
  Keeper keeper(settings);
  if (const auto done = keeper.listen(); !done) {
    // Send the error in the protocol's form: the starting program shows it.
    const std::vector<std::byte> packet = encode(KeeperOperation::status, done.error());
    write_to(settings.ready, {reinterpret_cast<const char*>(packet.data()), packet.size()});
    return done;
  }
  write_to(settings.ready, "ready");
  keeper.serve();
  return {};
}

}  // namespace rodeo::card::pci
