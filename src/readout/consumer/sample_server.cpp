#include "readout/consumer/sample_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/lock_file.h"

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kPatienceNs = 5'000'000'000;
constexpr std::size_t kMostReaders = 64;

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why, const std::string& next) {
  throw SetupError(Error{"readout.socket", why, path.string(), next});
}

}  // namespace

SampleServer::SampleServer(std::filesystem::path path) : path_(std::move(path)) {
  const sockaddr_un address = address_of(path_);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  auto lock = base::LockFile::take(lock_path(), base::LockedPart::whole());
  if (!lock && lock.error() == EWOULDBLOCK)
    refuse(path_, "another readout serves events under this name", "give this readout, or its event_sampler, another name");
  if (!lock) refuse(lock_path(), fmt::format("cannot lock the file: {}", std::strerror(lock.error())), "");
  lock_ = lock->release();
  ::unlink(path_.c_str());
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0 || ::bind(listener_, name, sizeof address) != 0 || ::chmod(path_.c_str(), 0600) != 0 ||
      ::listen(listener_, static_cast<int>(kMostReaders)) != 0) {
    const int error = errno;
    if (listener_ >= 0) ::close(listener_);
    ::unlink(lock_path().c_str());
    refuse(path_, fmt::format("cannot listen for readers of events: {}", std::strerror(error)), "");
  }
}

SampleServer::~SampleServer() {
  close_readers();
  ::close(listener_);
  ::unlink(path_.c_str());
  ::unlink(lock_path().c_str());  // while it is still locked
}

void SampleServer::close_readers() {
  for (const auto& reader : readers_) ::close(reader->fd);
  readers_.clear();
}

void SampleServer::serve(int timeout_ms, std::uint64_t now_ns) {
  polled_.assign(1, {.fd = listener_, .events = POLLIN, .revents = 0});
  for (const auto& reader : readers_) {
    const bool waits = !reader->pending.empty();
    polled_.push_back({.fd = reader->fd, .events = static_cast<short>(POLLIN | (waits ? POLLOUT : 0)), .revents = 0});
  }
  if (::poll(polled_.data(), polled_.size(), timeout_ms) < 0) return;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    Reader& reader = *readers_[i];
    const short events = polled_[i + 1].revents;
    if ((events & POLLIN) != 0) {
      std::byte ignored[512];
      const ssize_t n = ::recv(reader.fd, ignored, sizeof ignored, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) reader.gone = true;
    }
    if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0) reader.gone = true;
    if (!reader.gone && !reader.pending.empty()) push(reader, now_ns);
  }
  forget_the_gone();
  if (polled_[0].revents != 0) accept_readers();
}

void SampleServer::accept_readers() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    if (readers_.size() == kMostReaders) {
      ::close(fd);
      ++counters_.readers_dropped;
      continue;
    }
    readers_.push_back(std::make_unique<Reader>());
    readers_.back()->fd = fd;
    ++counters_.readers_seen;
  }
}

void SampleServer::send(SampleHeader header, std::span<const std::byte> event, std::uint64_t now_ns) {
  header.event_bytes = static_cast<std::uint32_t>(event.size());
  for (const auto& reader : readers_) {
    if (reader->gone) continue;
    if (!reader->pending.empty()) {
      ++reader->missed;
      ++counters_.missed;
      continue;
    }
    header.missed = std::exchange(reader->missed, 0);
    const auto bytes = encode_sample_header(header);
    reader->pending.assign(bytes.begin(), bytes.end());
    reader->pending.insert(reader->pending.end(), event.begin(), event.end());
    reader->pending_from = 0;
    reader->stuck_since_ns = now_ns;
    ++counters_.sent;
    push(*reader, now_ns);
  }
  forget_the_gone();
}

void SampleServer::push(Reader& reader, std::uint64_t now_ns) {
  while (reader.pending_from < reader.pending.size()) {
    const ssize_t n = ::send(reader.fd, reader.pending.data() + reader.pending_from,
                             reader.pending.size() - reader.pending_from, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      reader.pending_from += static_cast<std::size_t>(n);
      reader.stuck_since_ns = now_ns;
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (now_ns - reader.stuck_since_ns > kPatienceNs) {
        reader.gone = true;
        ++counters_.readers_dropped;
      }
      return;
    } else {
      reader.gone = true;
      return;
    }
  }
  reader.pending.clear();
}

void SampleServer::forget_the_gone() {
  std::erase_if(readers_, [](const auto& reader) {
    if (reader->gone) ::close(reader->fd);
    return reader->gone;
  });
}

}  // namespace rodeo::readout
