#include "transport/socket_watch.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rodeo::transport {
namespace {

std::unexpected<Error> cannot_watch() {
  return std::unexpected(Error{"transport.descriptors",
                               std::string("cannot watch one more connection: ") + std::strerror(errno),
                               {},
                               "`ulimit -n` and `sysctl fs.epoll.max_user_watches` show the limits"});
}

}  // namespace

Result<void> SocketWatch::add(const ControlSocket& socket, void* whose) {
  if (!poll_) {
    poll_ = base::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!poll_) return cannot_watch();
  }
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.ptr = whose}};
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, socket.descriptor(), &event) != 0) return cannot_watch();
  ++watched_;
  return {};
}

void SocketWatch::remove(const ControlSocket& socket) {
  epoll_event none{};
  if (socket.is_open() && ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket.descriptor(), &none) == 0) --watched_;
}

std::size_t SocketWatch::wait() {
  if (watched_ == 0) return 0;
  std::array<epoll_event, std::tuple_size_v<decltype(some_)>> events;
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) some_[static_cast<std::size_t>(i)] = events[static_cast<std::size_t>(i)].data.ptr;
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

}  // namespace rodeo::transport
