// Whose a card is: the process that opened it. A forked child has copies of its parent's objects and must not reach through them.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::card::pci {

/// Remembers the process that made it. Any thread; asking costs a load. Children made by vfork() or clone() without the C library's fork() count as the
/// parent, as far as they do not execute another program.
class OwnerProcess {
 public:
  OwnerProcess();
  /// False in a child that was forked since.
  bool here() const noexcept;

 private:
  unsigned generation_;
};

/// What a call on a parent's object comes to in a child: card.forked.
std::unexpected<Error> forked(std::string where);

/// The mutex of an object of one process. There is no way to hold it but to ask whose it is: in a forked child it may be held for ever, by a thread that
/// is not there.
class OwnMutex {
 public:
  /// `where`: of the error.
  explicit OwnMutex(std::string where) : where_(std::move(where)) {}
  /// card.forked in a child.
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

/// A descriptor that only the process which opened it has: in a forked child its number stands for /dev/null from the first moment. So a child says
/// nothing on a socket of its parent's, and neither a lock nor a connection outlives the parent in it. Move only; closed at the end.
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
