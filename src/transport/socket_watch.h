// Which of many control connections have something to say: one system call for all of them.
#pragma once

#include <array>
#include <cstddef>

#include "base/fd_socket.h"
#include "transport/control_socket.h"

namespace rodeo::transport {

/// One thread. Sockets are watched until they are removed or closed.
class SocketWatch {
 public:
  /// `whose` comes back from ready(). Error transport.descriptors: the process, or the user, may have no more of them.
  Result<void> add(const ControlSocket& socket, void* whose);
  void remove(const ControlSocket& socket);

  /// Calls visit(whose) for each of which next() would return something: a message, part of one, or the end. Where there are very many some of them come the
  /// next time; those that are not taken come again.
  /// False: there may be such.
  template <typename Visit>
  bool ready(Visit&& visit) {
    const std::size_t count = wait();
    for (std::size_t i = 0; i < count; ++i) visit(some_[i]);
    return count < some_.size();
  }

 private:
  std::size_t wait();

  base::UniqueFd poll_;
  std::size_t watched_ = 0;
  std::array<void*, 512> some_{};
};

}  // namespace rodeo::transport
