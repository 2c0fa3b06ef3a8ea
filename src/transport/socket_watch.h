// Finds the control connections that have received something: one system call for thousands.
#pragma once

#include <array>
#include <cstddef>

#include "base/fd_socket.h"
#include "transport/control_socket.h"

namespace rodeo::transport {

/// One thread. A socket is watched until it is removed or closed.
class SocketWatch {
 public:
  /// ready() passes `whose` to visit(). Error transport.descriptors: the process or the user has no more descriptors.
  Result<void> add(const ControlSocket& socket, void* whose);
  void remove(const ControlSocket& socket);

  /// Calls visit(whose) for each socket for which next() would return something: a message, part of one, or the end. With
  /// very many sockets, some wait for the next call; a socket whose data are not read appears again. False: more sockets may
  /// be ready.
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
