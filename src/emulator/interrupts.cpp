#include "emulator/interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace rodeo::emulator {
namespace {

/// A full counter, or a descriptor that is not an eventfd, concerns only its client; the call does not block.
void signal(const base::UniqueFd& fd) {
  const std::uint64_t one = 1;
  if (fd) (void)!::write(fd.get(), &one, sizeof one);
}

}  // namespace

void Interrupts::set(ClientId client, unsigned vector, base::UniqueFd fd) {
  if (vector >= kMaxVectors) return;
  if (fd) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    (void)::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
  }
  const std::lock_guard lock(mutex_);
  clients_[client][vector] = std::move(fd);
}

void Interrupts::remove_client(ClientId client) {
  const std::lock_guard lock(mutex_);
  clients_.erase(client);
}

void Interrupts::raise(unsigned vector) {
  if (vector >= kMaxVectors) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, fds] : clients_) signal(fds[vector]);
  raised_.fetch_add(1, std::memory_order_relaxed);
}

void Interrupts::raise(ClientId client, unsigned vector) {
  if (vector >= kMaxVectors) return;
  const std::lock_guard lock(mutex_);
  if (const auto found = clients_.find(client); found != clients_.end()) signal(found->second[vector]);
}

}  // namespace rodeo::emulator
