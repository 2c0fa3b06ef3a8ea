#include "readout/consumer/sample_server.h"

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <utility>

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kPatienceNs = 5'000'000'000;
constexpr std::uint8_t kMostReaders = 64;

}  // namespace

SampleServer::SampleServer(std::filesystem::path path) {
  Error taken{"readout.socket", "another readout serves events under this name", path.string(),
              "give this readout, or its event_sampler, another name"};
  auto endpoint =
      base::UnixEndpoint::open({.path = std::move(path), .taken = std::move(taken), .backlog = int{kMostReaders}});
  if (!endpoint) throw SetupError(endpoint.error());
  endpoint_ = std::move(*endpoint);
}

void SampleServer::serve(int timeout_ms, std::uint64_t now_ns) {
  polled_.assign(1, {.fd = endpoint_.get(), .events = POLLIN, .revents = 0});
  for (const auto& reader : readers_) {
    const bool waits = !reader->pending.empty();
    polled_.push_back({.fd = reader->fd.get(), .events = static_cast<short>(POLLIN | (waits ? POLLOUT : 0)), .revents = 0});
  }
  if (::poll(polled_.data(), polled_.size(), timeout_ms) < 0) return;
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    Reader& reader = *readers_[i];
    const short events = polled_[i + 1].revents;
    if ((events & POLLIN) != 0) {
      std::byte ignored[512];
      const ssize_t n = ::recv(reader.fd.get(), ignored, sizeof ignored, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) reader.gone = true;
    }
    if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0) reader.gone = true;
    if (!reader.gone && !reader.pending.empty()) push(reader, now_ns);
  }
  erase_gone();
  if (polled_[0].revents != 0) accept_readers();
}

void SampleServer::accept_readers() {
  while (base::UniqueFd fd = endpoint_.accept()) {
    if (readers_.size() == kMostReaders) {
      ++counters_.readers_dropped;
      continue;
    }
    readers_.push_back(std::make_unique<Reader>());
    readers_.back()->fd = std::move(fd);
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
  erase_gone();
}

void SampleServer::push(Reader& reader, std::uint64_t now_ns) {
  while (reader.pending_from < reader.pending.size()) {
    const ssize_t n = ::send(reader.fd.get(), reader.pending.data() + reader.pending_from,
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

void SampleServer::erase_gone() {
  std::erase_if(readers_, [](const auto& reader) { return reader->gone; });
}

}  // namespace rodeo::readout
