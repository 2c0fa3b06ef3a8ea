#include "base/unix_endpoint.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace rodeo::base {

Result<UnixEndpoint> UnixEndpoint::open(Settings settings) {
  UnixEndpoint endpoint;
  if (settings.lock.empty()) settings.lock = settings.path.native() + ".lock";
  auto lock = LockFile::acquire(settings.lock, settings.part);
  if (!lock && lock.error() == EWOULDBLOCK) return std::unexpected(std::move(settings.taken));
  if (!lock)
    return std::unexpected(Error{"base.runtime_dir", std::string("cannot lock the file: ") + std::strerror(lock.error()),
                                 settings.lock.native(), "its directory must exist and be yours"});
  endpoint.lock_ = lock->release();
  endpoint.settings_ = std::move(settings);
  ::unlink(endpoint.path().c_str());  // this process holds the lock, so the socket's owner is dead
  RODEO_TRY(endpoint.listen());
  return endpoint;
}

UnixEndpoint& UnixEndpoint::operator=(UnixEndpoint&& other) noexcept {
  std::swap(settings_, other.settings_);
  std::swap(lock_, other.lock_);
  std::swap(listener_, other.listener_);
  return *this;
}

UnixEndpoint::~UnixEndpoint() {
  hide();
  if (lock_) ::unlink(settings_.lock.c_str());
}

UniqueFd UnixEndpoint::accept() const {
  UniqueFd socket(::accept4(get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket && out_of_descriptors(errno)) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  return socket;
}

void UnixEndpoint::hide() {
  if (listener_) ::unlink(path().c_str());
  listener_.reset();
}

Result<void> UnixEndpoint::listen() {
  listener_ = RODEO_TRY(listen_unix(path(), settings_.backlog, settings_.type));
  return {};
}

}  // namespace rodeo::base
