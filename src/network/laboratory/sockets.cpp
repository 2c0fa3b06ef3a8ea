#include "network/laboratory/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace rodeo::network::laboratory {

namespace {

constexpr int kConnectPatienceMs = 10'000;

std::unexpected<Error> failed(const std::string& what, int reason, std::string next = {}) {
  return std::unexpected(Error{"network.agent", fmt::format("{}: {}", what, std::strerror(reason)), "", std::move(next)});
}

std::optional<sockaddr_in> address_of(const std::string& address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &result.sin_addr) != 1) return std::nullopt;
  return result;
}

Result<base::UniqueFd> tcp_socket(const std::string& congestion_control) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket) return failed("cannot open a socket", errno);
  if (setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, congestion_control.data(),
                 static_cast<socklen_t>(congestion_control.size())) != 0)
    return std::unexpected(Error{"network.unsupported",
                                 fmt::format("no congestion control `{}`: {}", congestion_control, std::strerror(errno)), "",
                                 "see /proc/sys/net/ipv4/tcp_available_congestion_control; all but those in "
                                 "tcp_allowed_congestion_control need root"});
  return socket;
}

void no_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Result<base::UniqueFd> listen_at(const std::string& address, std::uint16_t port, const std::string& congestion_control) {
  const auto where = address_of(address, port);
  if (!where)
    return std::unexpected(Error{"network.hosts", fmt::format("`{}` is not an IPv4 address", address), "",
                                 "give the address of the data network: 10.0.0.1"});
  auto socket = RODEO_TRY(tcp_socket(congestion_control));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&*where), sizeof *where) != 0 || listen(socket.get(), 1024) != 0)
    return failed(fmt::format("cannot listen at {}:{}", address, port), errno, "is that an address of this host?");
  return socket;
}

std::uint16_t port_of(int socket) {
  sockaddr_in where{};
  socklen_t size = sizeof where;
  getsockname(socket, reinterpret_cast<sockaddr*>(&where), &size);
  return ntohs(where.sin_port);
}

Result<base::UniqueFd> connect_to(const std::string& endpoint, const std::string& congestion_control) {
  const std::size_t colon = endpoint.rfind(':');
  std::uint16_t port = 0;
  if (colon != std::string::npos) std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), port);
  const auto where = address_of(endpoint.substr(0, std::min(colon, endpoint.size())), port);
  if (!where || port == 0)
    return std::unexpected(Error{"network.agent", fmt::format("`{}` is not an address with a port", endpoint)});
  auto socket = RODEO_TRY(tcp_socket(congestion_control));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&*where), sizeof *where) != 0) {
    int reason = errno;
    if (reason == EINPROGRESS) {
      pollfd waiting{socket.get(), POLLOUT, 0};
      socklen_t size = sizeof reason;
      if (poll(&waiting, 1, kConnectPatienceMs) <= 0)
        reason = ETIMEDOUT;
      else
        getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
    }
    if (reason != 0)
      return failed(fmt::format("cannot reach readout {}", endpoint), reason,
                    "is the address that of the data network, and no firewall in between?");
  }
  no_delay(socket.get());
  const linger reset{.l_onoff = 1, .l_linger = 0};  // a closed node must leave no data in flight
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  return socket;
}

void prepare_accepted(int socket) {
  no_delay(socket);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

TcpCounters tcp_counters(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  const bool measured = info.tcpi_min_rtt != 0 && info.tcpi_min_rtt != ~__u32{0};
  return {.retransmits = info.tcpi_total_retrans,
          .smallest_round_trip_ns = measured ? std::uint64_t{info.tcpi_min_rtt} * 1000 : 0};
}

std::uint64_t tcp_statistic(const std::string& name) {  // the file has pairs of lines: names, then values
  std::ifstream file("/proc/thread-self/net/netstat");
  std::string names;
  std::string values;
  while (std::getline(file, names) && std::getline(file, values)) {
    std::istringstream name_words(names);
    std::istringstream value_words(values);
    std::string one;
    std::string value;
    while (name_words >> one && value_words >> value) {
      std::uint64_t number = 0;
      if (one == name) std::from_chars(value.data(), value.data() + value.size(), number);
      if (one == name) return number;
    }
  }
  return 0;
}

std::uint64_t machine_drops() {  // the number is in the second column of a line for each CPU, hexadecimal
  std::ifstream file("/proc/net/softnet_stat");
  std::uint64_t sum = 0;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::uint64_t processed = 0;
    std::uint64_t dropped = 0;
    if (words >> std::hex >> processed >> dropped) sum += dropped;
  }
  return sum;
}

bool become_real_time() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  const sched_param priority{.sched_priority = 1};
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
}

}  // namespace rodeo::network::laboratory
