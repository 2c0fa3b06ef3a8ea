#include "process/line_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>

#include "base/fd_socket.h"
#include "base/lock_file.h"

namespace rodeo::process {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kLongestReply = 64 << 20;
constexpr std::size_t kMostClients = 16;

Error path_too_long(const std::filesystem::path& path) {
  return {"control.path_too_long", fmt::format("the socket path is longer than {} bytes", sizeof(sockaddr_un::sun_path) - 1),
          path, "set RODEO_RUNTIME_DIR to a shorter directory, or give a shorter name"};
}

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) throw SetupError(path_too_long(path));
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  return address;
}

[[noreturn]] void fail(const std::string& what, const std::filesystem::path& path) {
  throw SetupError(
      {"control.socket", fmt::format("{}: {}", what, std::strerror(errno)), path, "the directory must exist and be yours"});
}

}  // namespace

LineServer::LineServer(std::filesystem::path path) : path_(std::move(path)), lock_path_(path_.native() + ".lock") {
  const sockaddr_un address = address_of(path_);
  take_lock();
  ::unlink(path_.c_str());  // we hold the lock, so whoever made it is dead
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0) fail("cannot make a socket", path_);
  const mode_t before = ::umask(0177);
  const int bound = ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0 || ::listen(listener_, 16) != 0) fail("cannot listen", path_);
}

LineServer::~LineServer() {
  for (const Client& client : clients_) ::close(client.fd);
  if (listener_ >= 0) {
    ::close(listener_);
    ::unlink(path_.c_str());
  }
  if (lock_ >= 0) {
    ::unlink(lock_path_.c_str());
    ::close(lock_);
  }
}

void LineServer::take_lock() {
  auto lock = base::LockFile::take(lock_path_, base::LockedPart::whole());
  if (!lock && lock.error() == EWOULDBLOCK) {
    throw SetupError({"control.name_taken", fmt::format("a process named `{}` is running already", path_.stem().string()),
                      path_, "end it, or give this one another name"});
  }
  if (!lock) {
    errno = lock.error();
    fail("cannot lock the file", lock_path_);
  }
  lock_ = lock->release().release();
}

void LineServer::accept_clients() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    // Whoever stays, and says nothing, must not keep others out.
    if (clients_.size() == kMostClients) {
      ::close(clients_.front().fd);
      clients_.erase(clients_.begin());
    }
    clients_.push_back({.fd = fd, .in = {}, .out = {}});
  }
}

bool LineServer::serve_client(Client& client, const std::function<std::string(const std::string&)>& answer) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::recv(client.fd, buffer, sizeof buffer, 0);
    if (got > 0) {
      client.in.append(buffer, static_cast<std::size_t>(got));
      if (client.in.size() > kLongestLine) return false;
      continue;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
    break;
  }
  for (std::size_t end = client.in.find('\n'); end != std::string::npos; end = client.in.find('\n')) {
    client.out += answer(client.in.substr(0, end)) + "\n";
    client.in.erase(0, end + 1);
  }
  while (!client.out.empty()) {
    const ssize_t sent = ::send(client.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      client.out.erase(0, static_cast<std::size_t>(sent));
    } else if (sent == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
  return true;
}

void LineServer::serve(std::chrono::milliseconds wait, const std::function<std::string(const std::string&)>& answer) {
  std::vector<pollfd> ready{{.fd = listener_, .events = POLLIN, .revents = 0}};
  for (const Client& client : clients_) {
    ready.push_back(
        {.fd = client.fd, .events = static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT), .revents = 0});
  }
  if (::poll(ready.data(), ready.size(), static_cast<int>(wait.count())) <= 0) return;
  for (std::size_t i = clients_.size(); i-- > 0;) {
    bool keep = false;
    try {
      keep = ready[i + 1].revents == 0 || serve_client(clients_[i], answer);
    } catch (const std::exception&) {
      keep = false;  // the connection ends, and the process goes on
    }
    if (keep) continue;
    ::close(clients_[i].fd);
    clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  accept_clients();
}

bool somebody_listens(const std::filesystem::path& path) {
  sockaddr_un address{};
  try {
    address = address_of(path);
  } catch (const SetupError&) {
    return false;
  }
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  if (errno != ECONNREFUSED) return errno == EAGAIN;  // so many wait to be heard that there must be somebody
  // Whoever makes a socket holds the lock beside it before and while it is there.
  const std::string lock_path = path.native() + ".lock";
  const base::UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || !base::is_named(lock.get(), lock_path)) return false;
  ::unlink(path.c_str());
  ::unlink(lock_path.c_str());
  return false;
}

Result<std::string> ask(const std::filesystem::path& path, const std::string& line, std::chrono::milliseconds patience) {
  const auto unreachable = [&](const std::string& what) {
    return std::unexpected(Error{"control.unreachable", what, path, "is it running, as this user, under this name?"});
  };
  if (path.native().size() >= sizeof(sockaddr_un::sun_path)) return std::unexpected(path_too_long(path));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const auto socket = base::connect_unix(path, patience);
  if (!socket) return unreachable(fmt::format("nobody listens: {}", socket.error().what));
  const std::string request = line + "\n";
  if (base::send_all(socket->get(), std::as_bytes(std::span(request)), {}, patience).status != base::IoStatus::done)
    return unreachable("it takes no request");
  std::string reply;
  std::array<char, 4096> buffer{};
  base::ReceivedFds none;
  while (reply.empty() || reply.back() != '\n') {
    if (!base::wait_for(socket->get(), POLLIN, deadline))
      return unreachable(fmt::format("no answer within {} ms", patience.count()));
    const base::IoResult got = base::receive_now(socket->get(), std::as_writable_bytes(std::span(buffer)), none);
    if (got.status == base::IoStatus::closed || got.status == base::IoStatus::failed)
      return unreachable("it ended before it answered");
    reply.append(buffer.data(), got.bytes);
    if (reply.size() > kLongestReply) return unreachable("its answer has no end");
  }
  reply.pop_back();
  return reply;
}

}  // namespace rodeo::process
