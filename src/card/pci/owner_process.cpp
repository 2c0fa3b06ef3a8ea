#include "card/pci/owner_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace rodeo::card::pci {
namespace {

// The number of forks since the first process started: a child has another number than its parent.
constinit std::atomic<unsigned> generation{0};

/// The state for fork handlers. It is never destroyed, because a fork may come while the process ends.
struct Forks {
  std::mutex mutex;
  std::vector<int> files;  // the open OwnDescriptors

  Forks() { ::pthread_atfork(&before, &in_parent, &in_child); }
  static void before();
  static void in_parent();
  static void in_child();
};

Forks& forks() {
  static Forks& only = *new Forks;
  return only;
}

void Forks::before() { forks().mutex.lock(); }
void Forks::in_parent() { forks().mutex.unlock(); }

// Makes only async-signal-safe calls: the parent may have had other threads.
void Forks::in_child() {
  Forks& own = forks();
  generation.fetch_add(1, std::memory_order_relaxed);
  const int null = own.files.empty() ? -1 : ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int file : own.files) {
    if (null < 0 || ::dup3(null, file, O_CLOEXEC) < 0) ::close(file);
  }
  if (null >= 0) ::close(null);
  own.files.clear();
  own.mutex.unlock();
}

}  // namespace

OwnerProcess::OwnerProcess() : generation_(generation.load(std::memory_order_relaxed)) { (void)forks(); }

bool OwnerProcess::here() const noexcept { return generation_ == generation.load(std::memory_order_relaxed); }

std::unexpected<Error> forked(std::string where) {
  return std::unexpected(Error{"card.forked", "the parent of this process opened the card, before the fork",
                               std::move(where), "open it after the fork, in the process that uses it"});
}

OwnDescriptor::OwnDescriptor(base::UniqueFd file) : file_(std::move(file)) {
  if (!file_) return;
  const std::lock_guard guard(forks().mutex);
  forks().files.push_back(file_.get());
}

OwnDescriptor& OwnDescriptor::operator=(OwnDescriptor&& other) noexcept {
  if (this == &other) return *this;
  reset();
  file_ = std::move(other.file_);
  return *this;
}

// Close under the mutex, so that no fork comes between the two steps.
void OwnDescriptor::reset() {
  if (!file_) return;
  const std::lock_guard guard(forks().mutex);
  std::erase(forks().files, file_.get());
  file_.reset();
}

}  // namespace rodeo::card::pci
