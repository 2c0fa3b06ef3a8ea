#include "network/laboratory/readout_emulator.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <optional>

#include "network/laboratory/sockets.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::size_t kPayloadBytes = std::size_t{1} << 20;  // sent repeatedly for larger fragments
constexpr std::size_t kMostRequestsAtOnce = 64;

std::uint64_t real_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

const std::byte* payload() {
  static const std::vector<std::byte> bytes(kPayloadBytes);
  return bytes.data();
}

std::uint64_t smaller_but_measured(std::uint64_t a, std::uint64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

}  // namespace

struct ReadoutEmulator::Connection {
  explicit Connection(int fd) : socket(fd) {}

  struct Reply {
    std::array<std::byte, kMessageBytes> head;
    std::uint64_t bytes;  // head and payload
    std::uint64_t sent = 0;
  };

  base::UniqueFd socket;
  std::array<std::byte, kMessageBytes * kMostRequestsAtOnce> incoming{};
  std::size_t filled = 0;
  std::deque<Reply> replies;
  bool wants_to_write = false;
};

ReadoutEmulator::ReadoutEmulator(base::UniqueFd listener)
    : listener_(std::move(listener)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      lateness_(std::make_unique<base::LatencyHistogram>()) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener_.get()}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event);
}

ReadoutEmulator::~ReadoutEmulator() = default;

void ReadoutEmulator::serve(int control, const std::function<bool()>& on_control) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = control}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, control, &event);
  std::array<epoll_event, 64> ready{};
  for (;;) {
    const int n = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = ready[static_cast<std::size_t>(i)].data.fd;
      if (fd == control) {
        if (!on_control()) return;
      } else if (fd == listener_.get()) {
        accept_all();
      } else if (const auto found = connections_.find(fd); found != connections_.end()) {
        Connection& connection = *found->second;
        const bool readable = (ready[static_cast<std::size_t>(i)].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
        if ((readable && !read_requests(connection)) || !write_replies(connection)) drop(fd);
      }
    }
  }
}

void ReadoutEmulator::accept_all() {
  for (;;) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    prepare_accepted(fd);
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    connections_.emplace(fd, std::make_unique<Connection>(fd));
  }
}

bool ReadoutEmulator::read_requests(Connection& connection) {
  iovec into{connection.incoming.data() + connection.filled, connection.incoming.size() - connection.filled};
  alignas(cmsghdr) std::array<char, 128> extra{};
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = extra.data();
  message.msg_controllen = extra.size();
  const ssize_t n = recvmsg(connection.socket.get(), &message, 0);
  if (n == 0) return false;
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec arrived{};
    std::memcpy(&arrived, CMSG_DATA(part), sizeof arrived);
    const std::uint64_t at =
        static_cast<std::uint64_t>(arrived.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(arrived.tv_nsec);
    const std::uint64_t now = real_now_ns();
    lateness_->record(now > at ? now - at : 0);
  }
  connection.filled += static_cast<std::size_t>(n);
  std::size_t at = 0;
  for (; connection.filled - at >= kMessageBytes; at += kMessageBytes) {
    const auto request =
        decode(kRequestMagic, std::span<const std::byte, kMessageBytes>(connection.incoming.data() + at, kMessageBytes));
    if (!request) {
      ++counted_.bad_requests;
      return false;
    }
    connection.replies.push_back({.head = encode(kReplyMagic, *request), .bytes = kMessageBytes + request->bytes});
  }
  std::memmove(connection.incoming.data(), connection.incoming.data() + at, connection.filled - at);
  connection.filled -= at;
  return true;
}

bool ReadoutEmulator::write_replies(Connection& connection) {
  while (!connection.replies.empty()) {
    auto& reply = connection.replies.front();
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    if (reply.sent < kMessageBytes) parts[count++] = {reply.head.data() + reply.sent, kMessageBytes - reply.sent};
    const std::uint64_t payload_sent = std::max<std::uint64_t>(reply.sent, kMessageBytes) - kMessageBytes;
    const std::uint64_t left = reply.bytes - kMessageBytes - payload_sent;
    if (left > 0)
      parts[count++] = {const_cast<std::byte*>(payload()),
                        static_cast<std::size_t>(std::min<std::uint64_t>(left, kPayloadBytes))};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t n = sendmsg(connection.socket.get(), &message, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno != EAGAIN && errno != EINTR) return false;
      watch(connection, true);
      return true;
    }
    reply.sent += static_cast<std::uint64_t>(n);
    if (reply.sent == reply.bytes) {
      connection.replies.pop_front();
      ++counted_.answers;
    }
  }
  watch(connection, false);
  return true;
}

void ReadoutEmulator::watch(Connection& connection, bool writable) {
  if (connection.wants_to_write == writable) return;
  connection.wants_to_write = writable;
  epoll_event event{.events = writable ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.fd = connection.socket.get()}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
}

void ReadoutEmulator::drop(int fd) {
  const TcpCounters last = tcp_counters(fd);
  counted_.retransmits += last.retransmits;
  smallest_round_trip_ns_ = smaller_but_measured(smallest_round_trip_ns_, last.smallest_round_trip_ns);
  connections_.erase(fd);
}

ReadoutEmulator::Counters ReadoutEmulator::total() const {
  Counters total = counted_;
  for (const auto& [fd, connection] : connections_) total.retransmits += tcp_counters(fd).retransmits;
  total.timeouts = tcp_statistic("TCPTimeouts");
  total.loss_probes = tcp_statistic("TCPLossProbes");
  total.machine_drops = laboratory::machine_drops();
  return total;
}

void ReadoutEmulator::mark() {
  marked_ = total();
  lateness_ = std::make_unique<base::LatencyHistogram>();
}

ReadoutEmulator::Counters ReadoutEmulator::counters() const {
  Counters now = total();
  now.answers -= marked_.answers;
  now.retransmits -= marked_.retransmits;
  now.timeouts -= marked_.timeouts;
  now.loss_probes -= marked_.loss_probes;
  now.bad_requests -= marked_.bad_requests;
  now.machine_drops -= marked_.machine_drops;
  return now;
}

std::uint64_t ReadoutEmulator::smallest_round_trip_ns() const {
  std::uint64_t smallest = smallest_round_trip_ns_;
  for (const auto& [fd, connection] : connections_)
    smallest = smaller_but_measured(smallest, tcp_counters(fd).smallest_round_trip_ns);
  return smallest;
}

}  // namespace rodeo::network::laboratory
