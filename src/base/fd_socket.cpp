#include "base/fd_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rodeo::base {
namespace {

using Clock = std::chrono::steady_clock;

IoResult failed_with(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINTR) return {IoStatus::partial, 0};
  if (error == EPIPE || error == ECONNRESET) return {IoStatus::closed, 0};
  return {IoStatus::failed, 0};
}

IoResult send_flags(int socket, std::span<const std::byte> bytes, std::span<const int> fds, int flags) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFdsPerReceive)> control{};
  if (!fds.empty()) {
    if (fds.size() > kMaxFdsPerReceive) {
      errno = EINVAL;
      return {IoStatus::failed, 0};
    }
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  if (sent < 0) return failed_with(errno);
  return {static_cast<std::size_t>(sent) == bytes.size() ? IoStatus::done : IoStatus::partial,
          static_cast<std::size_t>(sent)};
}

IoResult receive_flags(int socket, std::span<std::byte> into, ReceivedFds& fds, int flags) {
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFdsPerReceive)> control;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  if (received < 0) return failed_with(errno);
  std::size_t handed_out = 0;
  if (message.msg_controllen > 0) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      handed_out += count;
      for (std::size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
        fds.fds.emplace_back(fd);
      }
    }
  }
  // MSG_CTRUNC with a full set of descriptors: the peer sent more. With fewer: no descriptor number was left for the others.
  if ((message.msg_flags & MSG_CTRUNC) != 0) (handed_out == kMaxFdsPerReceive ? fds.truncated : fds.no_room) = true;
  if (received == 0 && !into.empty()) return {IoStatus::closed, 0};
  return {static_cast<std::size_t>(received) == into.size() ? IoStatus::done : IoStatus::partial,
          static_cast<std::size_t>(received)};
}

Result<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = path.native();
  if (name.size() >= sizeof address.sun_path) {
    return std::unexpected(Error{"base.socket",
                                 "the path of a socket is longer than the 107 characters that the system takes", name,
                                 "use a shorter RODEO_RUNTIME_DIR"});
  }
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  return address;
}

std::unexpected<Error> socket_error(const char* code, const char* what, const std::filesystem::path& path) {
  return std::unexpected(Error{code, std::string(what) + ": " + std::strerror(errno), path.native()});
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

bool wait_for(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll{socket, events, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::min<long long>(left, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call returns the error
  }
}

void occupy_standard_streams() {
  constexpr std::array<int, 3> kModes{O_WRONLY, O_RDONLY, O_WRONLY};
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // open() takes the lowest free number: all below are in use by now.
    if (::fcntl(stream, F_GETFD) < 0) (void)!::open("/dev/null", kModes[static_cast<std::size_t>(stream)]);
  }
}

Result<std::array<UniqueFd, 2>> make_pipe() {
  const auto failed = [] {
    return std::unexpected(Error{"base.resources", std::string("cannot make a pipe: ") + std::strerror(errno)});
  };
  std::array<int, 2> made{-1, -1};
  if (::pipe2(made.data(), O_CLOEXEC) != 0) return failed();
  std::array<UniqueFd, 2> ends{UniqueFd(made[0]), UniqueFd(made[1])};
  for (UniqueFd& end : ends) {
    if (end.get() > STDERR_FILENO) continue;
    UniqueFd above(::fcntl(end.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!above) return failed();
    end = std::move(above);
  }
  return ends;
}

bool out_of_descriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

IoResult send_some(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  return send_flags(socket, bytes, fds, 0);
}

IoResult send_all(int socket, std::span<const std::byte> bytes, std::span<const int> fds,
                  std::chrono::nanoseconds patience) {
  std::size_t sent = 0;
  Clock::time_point deadline{};
  for (;;) {
    const IoResult one = send_flags(socket, bytes.subspan(sent), sent == 0 ? fds : std::span<const int>{}, MSG_DONTWAIT);
    sent += one.bytes;
    if (one.status != IoStatus::partial) return {one.status, sent};
    if (one.bytes > 0) continue;
    if (deadline == Clock::time_point{}) deadline = Clock::now() + patience;
    if (!wait_for(socket, POLLOUT, deadline)) return {IoStatus::partial, sent};
  }
}

IoResult receive_some(int socket, std::span<std::byte> into, ReceivedFds& fds) {
  return receive_flags(socket, into, fds, 0);
}

IoResult receive_now(int socket, std::span<std::byte> into, ReceivedFds& fds) {
  return receive_flags(socket, into, fds, MSG_DONTWAIT);
}

IoResult receive_all(int socket, std::span<std::byte> into, ReceivedFds& fds, std::chrono::nanoseconds patience) {
  std::size_t received = 0;
  Clock::time_point deadline{};
  while (received < into.size()) {
    const IoResult one = receive_flags(socket, into.subspan(received), fds, MSG_DONTWAIT);
    received += one.bytes;
    if (one.status == IoStatus::closed || one.status == IoStatus::failed) return {one.status, received};
    if (one.bytes > 0) continue;
    if (deadline == Clock::time_point{}) deadline = Clock::now() + patience;
    if (!wait_for(socket, POLLIN, deadline)) return {IoStatus::partial, received};
  }
  return {IoStatus::done, received};
}

Result<UniqueFd> connect_unix(const std::filesystem::path& path, std::chrono::milliseconds patience) {
  const auto address = RODEO_TRY(address_of(path));
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket_error("base.resources", "cannot make a socket", path);
  // If a server accepts no connections, its queue fills; connect() then waits as long as a send may.
  const timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};
  const timeval for_ever{};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return socket_error("base.socket", "cannot connect", path);
  }
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &for_ever, sizeof for_ever);
  return socket;
}

Result<UniqueFd> listen_unix(const std::filesystem::path& path, int backlog, int type) {
  const auto address = RODEO_TRY(address_of(path));
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket_error("base.resources", "cannot make a socket", path);
  // bind() gives the name the mode of the socket, so other users can never connect.
  if (::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), backlog) != 0)
    return socket_error("base.runtime_dir", "cannot listen", path);
  return socket;
}

bool has_listener(const std::filesystem::path& path) {
  const auto address = address_of(path);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!address || !socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0)
    return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace rodeo::base
