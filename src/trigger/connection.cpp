#include "trigger/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/lock_file.h"
#include "base/runtime_dir.h"
#include "transport/control_socket.h"
#include "transport/random.h"
#include "transport/secret.h"

namespace rodeo::trigger {
namespace {

using namespace protocol;

constexpr std::size_t kReadBytes = 128 << 10;  // size of the buffer: two of the largest messages
constexpr std::string_view kExtension = ".trigger";

std::unexpected<Error> failed(std::string_view what, const std::string& where, int error) {
  return std::unexpected(Error{"trigger.socket", fmt::format("{}: {}", what, std::strerror(error)), where,
                               "check that the authority is running and that this is its address"});
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& host, const std::string& port, const std::string& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return std::unexpected(Error{"trigger.socket", fmt::format("cannot find host {}: {}", host, ::gai_strerror(error)),
                                 where, "write HOST:PORT, for example 127.0.0.1:5000"});
  return Addresses(found);
}

std::string text_of(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) return "?";
  return address->sa_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

void without_delay(int socket) {
  const int on = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

bool TriggerConnection::receive() {
  if (in_.empty()) in_.resize(kReadBytes);
  if (read_ > 0) {
    std::memmove(in_.data(), in_.data() + read_, have_ - read_);
    have_ -= read_;
    read_ = 0;
  }
  if (have_ == in_.size()) return true;
  ssize_t got = 0;
  do {
    got = ::recv(socket_.get(), in_.data() + have_, in_.size() - have_, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got > 0) have_ += static_cast<std::size_t>(got);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

std::expected<std::optional<Message>, Wrong> TriggerConnection::next() {
  const std::span<const std::byte> bytes = std::span(in_).subspan(read_, have_ - read_);
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const auto header = RODEO_TRY(decode_header(bytes.first<kHeaderBytes>()));
  if (bytes.size() < kHeaderBytes + header.body_bytes) return std::nullopt;
  auto message = RODEO_TRY(decode(header.type, bytes.subspan(kHeaderBytes, header.body_bytes)));
  read_ += kHeaderBytes + header.body_bytes;
  return message;
}

bool TriggerConnection::send(const Message& message) {
  encode(message, out_);
  return flush();
}

bool TriggerConnection::flush() {
  while (sent_ < out_.size()) {
    const ssize_t done = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done > 0) {
      sent_ += static_cast<std::size_t>(done);
    } else if (done < 0 && errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
  out_.clear();
  sent_ = 0;
  return true;
}

void TriggerConnection::greet(transport::Handshake::Side side, const std::string& secret) {
  handshake_.emplace(side, formats::ControlHello{.nonce = transport::random_bytes<32>(), .program = "rodeo"}, secret);
  Greeting hello;
  handshake_->begin(hello.control);
  (void)send(hello);
}

Result<void> TriggerConnection::on_greeting(const Greeting& greeting) {
  Greeting answer;
  Result<void> taken;
  for (std::span<const std::byte> left = greeting.control; taken && !left.empty();) {
    const auto message = formats::parse_control(left);
    if (!message || !*message) return std::unexpected(Error{"transport.protocol", "it sent an invalid handshake"});
    taken = handshake_->on_message((*message)->message, answer.control);
    left = left.subspan((*message)->bytes);
  }
  if (!answer.control.empty()) (void)send(answer);
  return taken;
}

Result<std::string> TriggerAddress::secret(const std::filesystem::path& file, std::string_view key) const {
  if (!is_tcp()) return std::string();
  if (file.empty() && host_ != "localhost" && !transport::is_loopback(host_))
    return std::unexpected(Error{"transport.no_secret",
                                 fmt::format("{} is reached from other hosts, and there is no secret", text_),
                                 {},
                                 fmt::format("set {}, the same secret for the authority and its followers", key)});
  return transport::read_secret(file);
}

Result<TriggerAddress> TriggerAddress::parse(const std::string& text) {
  TriggerAddress address;
  address.text_ = text;
  const auto wrong = [&](std::string what) {
    return std::unexpected(Error{"trigger.address", fmt::format("`{}`: {}", text, what), "",
                                 "write a name (a Unix socket in the runtime directory), or HOST:PORT"});
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) {
    if (text.empty() || text.find('/') != std::string::npos) return wrong("that is not a name of a socket");
    return address;
  }
  address.host_ = text.substr(0, colon);
  address.port_ = text.substr(colon + 1);
  if (address.host_.size() > 2 && address.host_.front() == '[' && address.host_.back() == ']')
    address.host_ = address.host_.substr(1, address.host_.size() - 2);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(address.port_.data(), address.port_.data() + address.port_.size(), port);
  if (error != std::errc{} || end != address.port_.data() + address.port_.size() || port > 65535)
    return wrong(fmt::format("`{}` is not a port", address.port_));
  if (address.host_.empty()) return wrong("the host is missing");
  return address;
}

Result<base::UniqueFd> TriggerAddress::connect(std::chrono::milliseconds patience) const {
  if (!is_tcp()) {
    const auto path = RODEO_TRY(base::runtime_socket(text_ + std::string(kExtension)));
    auto socket = base::connect_unix(path, patience);
    if (!socket) return std::unexpected(Error{"trigger.socket", socket.error().what, path.native(), ""});
    (void)::fcntl(socket->get(), F_SETFL, ::fcntl(socket->get(), F_GETFL) | O_NONBLOCK);
    return socket;
  }
  const auto found = RODEO_TRY(resolve(host_, port_, text_, 0));
  int error = ENOENT;
  const auto deadline = std::chrono::steady_clock::now() + patience;  // covers all addresses together
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    base::UniqueFd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
      error = errno;
      continue;
    }
    without_delay(socket.get());
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    error = errno;
    if (error != EINPROGRESS) continue;
    socklen_t size = sizeof error;
    error = ETIMEDOUT;
    if (base::wait_for(socket.get(), POLLOUT, deadline) &&
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
      return socket;
  }
  return failed("cannot connect", text_, error);
}

Result<TriggerAddress::Listener> TriggerAddress::listen() const {
  Listener listener;
  if (!is_tcp()) {
    const auto path = RODEO_TRY(base::runtime_socket(text_ + std::string(kExtension)));
    auto endpoint =
        base::UnixEndpoint::open({.path = path,
                                  .taken = {"trigger.taken", fmt::format("another process serves triggers as `{}`", text_),
                                            path.native(), "end that process, or serve under another name"}});
    if (!endpoint && endpoint.error().code == "trigger.taken") return std::unexpected(endpoint.error());
    if (!endpoint) return std::unexpected(Error{"trigger.socket", endpoint.error().what, path.native(), ""});
    listener.named = std::move(*endpoint);
    listener.where = path.native();
    return listener;
  }
  const auto found = RODEO_TRY(resolve(host_, port_, text_, AI_PASSIVE));
  int error = ENOENT;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    base::UniqueFd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.get(), 64) == 0) {
      sockaddr_storage bound{};
      socklen_t size = sizeof bound;
      (void)::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
      listener.where = text_of(reinterpret_cast<const sockaddr*>(&bound), size);
      listener.tcp = std::move(socket);
      return listener;
    }
    error = errno;
  }
  if (error == EADDRINUSE)
    return std::unexpected(
        Error{"trigger.taken", "another process listens there", text_, "end that process, or serve on another port"});
  return failed("cannot listen", text_, error);
}

base::UniqueFd accept_connection(const TriggerAddress::Listener& listener) {
  base::UniqueFd socket(::accept4(listener.socket(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket && listener.tcp) without_delay(socket.get());
  return socket;
}

std::string peer_of(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "?";
  if (peer.ss_family != AF_UNIX) return text_of(reinterpret_cast<const sockaddr*>(&peer), size);
  ucred who{};
  size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return "?";
  return fmt::format("process {}", who.pid);
}

}  // namespace rodeo::trigger
