#include "transport/control_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rodeo::transport {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Result<SocketAddress> address_of(const std::string& text, std::uint16_t port) {
  SocketAddress address;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.bytes = sizeof v4;
    std::memcpy(&address.storage, &v4, sizeof v4);
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.bytes = sizeof v6;
    std::memcpy(&address.storage, &v6, sizeof v6);
  } else {
    return std::unexpected(Error{"transport.address",
                                 fmt::format("`{}` is not a numerical address", text),
                                 {},
                                 "write it as 127.0.0.1 or ::1; `ip address` shows those of this host"});
  }
  return address;
}

std::unexpected<Error> cannot(const std::string& what, const std::string& address) {
  return std::unexpected(Error{"transport.address",
                               fmt::format("cannot {} {}: {}", what, address, std::strerror(errno)),
                               {},
                               "`ip address` shows the addresses of this host"});
}

/// Sends at once, and detects within 15 s that the other host is gone, with keepalive and with a time-out for unacknowledged
/// data. By tcp(7) that time-out also ends a connection whose peer reads nothing for so long; for a peer that may do so,
/// only keepalive is set.
void prepare(int socket, ControlSocket::Peer peer) {
  const auto set = [&](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  if (peer == ControlSocket::Peer::reads) set(IPPROTO_TCP, TCP_USER_TIMEOUT, 15'000);  // ms
}

std::string text_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    (void)::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  (void)::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), ntohs(v6->sin6_port));
}

}  // namespace

Result<ControlSocket> ControlSocket::call(const std::string& address, std::uint16_t port, Peer peer) {
  const auto to = RODEO_TRY(address_of(address, port));
  base::UniqueFd socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return cannot("open a socket to", address);
  prepare(socket.get(), peer);
  if (::connect(socket.get(), to.get(), to.bytes) != 0 && errno != EINPROGRESS) return cannot("connect to", address);
  return ControlSocket(std::move(socket));
}

Result<std::optional<formats::ControlMessage>> ControlSocket::next() {
  constexpr std::size_t kPiece = 4096;
  for (;;) {
    auto taken = formats::parse_control(std::span(in_).subspan(taken_));
    if (!taken) {
      return std::unexpected(
          Error{"transport.protocol", fmt::format("{} sent an invalid message: {}", peer(), taken.error().message())});
    }
    if (*taken) {
      taken_ += (*taken)->bytes;
      return std::move((*taken)->message);
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    const std::size_t before = in_.size();
    in_.resize(before + kPiece);
    const ssize_t came = ::recv(socket_.get(), in_.data() + before, kPiece, MSG_DONTWAIT);
    const int failed = errno;
    in_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(came, 0)));
    if (came > 0) continue;
    // ENOTCONN: still connecting.
    if (came < 0 && (failed == EAGAIN || failed == EWOULDBLOCK || failed == EINTR || failed == ENOTCONN))
      return std::nullopt;
    return std::unexpected(
        Error{"transport.closed", came == 0 ? "the peer has closed the connection" : std::strerror(failed)});
  }
}

void ControlSocket::say(const formats::ControlMessage& message) {
  formats::append_control(out_, message);
  flush();
}

void ControlSocket::say(const std::vector<std::byte>& encoded) {
  out_.insert(out_.end(), encoded.begin(), encoded.end());
  flush();
}

void ControlSocket::flush() {
  if (out_.empty()) return;
  const base::IoResult sent = base::send_some(socket_.get(), out_);
  // The rest cannot be delivered; next() returns the reason.
  if (sent.status == base::IoStatus::closed) return out_.clear();
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent.bytes));
}

void ControlSocket::end_output() {
  flush();
  (void)::shutdown(socket_.get(), SHUT_WR);
}

bool ControlSocket::peer_is_gone() const {
  pollfd one{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

void ControlSocket::wait(std::chrono::milliseconds patience) const {
  pollfd one{.fd = socket_.get(), .events = static_cast<short>(all_sent() ? POLLIN : POLLIN | POLLOUT), .revents = 0};
  (void)::poll(&one, 1, static_cast<int>(patience.count()));
}

std::string ControlSocket::peer() const {
  if (!peer_.empty()) return peer_;
  SocketAddress address;
  address.bytes = sizeof address.storage;
  if (::getpeername(socket_.get(), address.get(), &address.bytes) != 0) return "a peer that is gone";
  return text_of(address);
}

Result<ControlListener> ControlListener::open(const std::string& address) {
  const auto at = RODEO_TRY(address_of(address, 0));
  ControlListener listener;
  listener.socket_ = base::UniqueFd(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.socket_ || ::bind(listener.socket_.get(), at.get(), at.bytes) != 0 ||
      ::listen(listener.socket_.get(), SOMAXCONN) != 0)
    return cannot("listen at", address);
  SocketAddress bound;
  bound.bytes = sizeof bound.storage;
  if (::getsockname(listener.socket_.get(), bound.get(), &bound.bytes) != 0) return cannot("listen at", address);
  listener.port_ = bound.storage.ss_family == AF_INET
                       ? ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port)
                       : ntohs(reinterpret_cast<const sockaddr_in6*>(&bound.storage)->sin6_port);
  return listener;
}

std::optional<ControlSocket> ControlListener::accept() const {
  base::UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return std::nullopt;
  prepare(socket.get(), ControlSocket::Peer::reads);
  ControlSocket accepted(std::move(socket));
  accepted.peer_ = accepted.peer();  // kept now: the peer may be gone when its name is needed
  return accepted;
}

bool is_wildcard(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  return (::inet_pton(AF_INET, address.c_str(), &v4) == 1 && v4.s_addr == INADDR_ANY) ||
         (::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6));
}

bool is_loopback(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  return (::inet_pton(AF_INET, address.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24U == 127) ||
         (::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6));
}

}  // namespace rodeo::transport
