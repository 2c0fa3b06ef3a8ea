// A card belongs to the process that opened it. A forked child has copies of its parent's objects; these must not reach the
// card.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::card::pci {

/// Remembers the process that created the object. For any thread; here() costs a load. Children from vfork() or clone(),
/// without the C library's fork(), count as the parent until they execute another program.
class OwnerProcess {
 public:
  OwnerProcess();
  /// False in a child that was forked after the object was created.
  bool here() const noexcept;

 private:
  unsigned generation_;
};

/// The error of a call on a parent's object in a child: card.forked.
std::unexpected<Error> forked(std::string where);

/// The mutex of an object that belongs to one process. hold() always checks the process first: in a forked child, a thread
/// that does not exist there may hold the mutex for ever.
class OwnMutex {
 public:
  /// `where` is a part of the error.
  explicit OwnMutex(std::string where) : where_(std::move(where)) {}
  /// Error card.forked in a child.
  [[nodiscard]] Result<std::unique_lock<std::mutex>> hold() {
    if (!owner_.here()) return forked(where_);
    return std::unique_lock(mutex_);
  }
  bool here() const noexcept { return owner_.here(); }

 private:
  const OwnerProcess owner_;
  const std::string where_;
  std::mutex mutex_;
};

/// A descriptor that only the opening process has: in a forked child its number is /dev/null from the first moment. So a
/// child cannot send on its parent's socket, and no lock or connection outlives the parent in a child. Move only; the
/// destructor closes it.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(base::UniqueFd file);
  OwnDescriptor(OwnDescriptor&&) noexcept = default;
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept;
  ~OwnDescriptor() { reset(); }

  int get() const { return file_.get(); }
  explicit operator bool() const { return static_cast<bool>(file_); }
  void reset();

 private:
  base::UniqueFd file_;
};

}  // namespace rodeo::card::pci
