#include "card/pci/lock.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <thread>

#include <fmt/core.h>

#include "base/lock_file.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {
namespace {

// Longer than a cleanup holds its lock before it removes the file.
constexpr std::chrono::milliseconds kCleaning{20};
// Removals while one lock is taken; more do not come from a cleanup.
constexpr unsigned kMostRemovals = 100;

// A lock does not name its owner, so the file does: 16 characters for each byte, a process id and blanks.
constexpr std::size_t kNoteBytes = 16;
constexpr off_t note_place(unsigned byte) { return 4096 + static_cast<off_t>(byte * kNoteBytes); }

void leave_note(int fd, unsigned byte) {
  const std::string note = fmt::format("{:<15}\n", ::getpid());
  (void)!::pwrite(fd, note.data(), kNoteBytes, note_place(byte));
}

std::string read_note(int fd, unsigned byte) {
  std::array<char, kNoteBytes> note{};
  if (::pread(fd, note.data(), note.size(), note_place(byte)) != static_cast<ssize_t>(note.size())) return "another process";
  pid_t pid = 0;
  std::from_chars(note.data(), note.data() + note.size(), pid);
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return "another process";
  return fmt::format("process {}", pid);
}

Result<void> lock_byte(int fd, std::uint64_t first, unsigned byte, int notes, const std::string& what,
                       const std::filesystem::path& where, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(first + byte);
    lock.l_len = 1;
    if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) {
      leave_note(notes, byte);
      return {};
    }
    if (errno != EAGAIN && errno != EACCES && errno != EINTR)
      return std::unexpected(Error{"card.lock_file", fmt::format("cannot lock: {}", std::strerror(errno)), where.native(),
                                   "the file system must support locks; RODEO_RUNTIME_DIR moves the directory"});
    if (std::chrono::steady_clock::now() >= deadline)
      return std::unexpected(Error{"card.locked", fmt::format("{} is in use by {}", what, read_note(notes, byte)),
                                   where.native(), "stop that process, or choose another card or channel"});
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Result<ByteLock> ByteLock::acquire(const std::filesystem::path& file, unsigned byte, const std::string& what,
                                   std::chrono::milliseconds patience) {
  for (unsigned removed = 0;; ++removed) {
    base::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd)
      return std::unexpected(Error{"card.lock_file", fmt::format("cannot open the lock file: {}", std::strerror(errno)),
                                   file.native(), "only a user with write access to this file can use the card"});
    const int notes = fd.get();
    auto locked = lock_byte(fd.get(), 0, byte, notes, what, file, std::max(patience, kCleaning));
    // `rodeo card cleanup` locks the whole file and removes it. A lock on a removed file protects nothing.
    if (!base::is_named(fd.get(), file)) {
      if (removed < kMostRemovals) continue;
      return std::unexpected(Error{"card.lock_file", "the lock file is removed again and again", file.native(),
                                   "find the program that removes it: `rodeo card cleanup` removes it once"});
    }
    if (!locked) return std::unexpected(locked.error());
    return ByteLock(std::move(fd));
  }
}

Result<ByteLock> ByteLock::acquire(LockNode node, unsigned byte, const std::string& what, const std::filesystem::path& notes,
                                   std::chrono::milliseconds patience) {
  const base::UniqueFd note_file(notes.empty() ? -1 : ::open(notes.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  RODEO_TRY(lock_byte(node.file.get(), node.first, byte, note_file.get(), what, notes, patience));
  return ByteLock(std::move(node.file));
}

// Unlock explicitly: a child forked at this moment may still have the file description.
ByteLock::~ByteLock() {
  struct flock lock{};
  lock.l_type = F_UNLCK;
  lock.l_whence = SEEK_SET;
  if (file_) (void)::fcntl(file_.get(), F_OFD_SETLK, &lock);
}

Result<NameLock> NameLock::acquire(const std::string& name, const std::string& what) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 2 > sizeof address.sun_path)
    return std::unexpected(Error{"card.lock_file", fmt::format("the name {} is longer than an abstract socket's", name)});
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket)
    return std::unexpected(Error{"card.lock_file", fmt::format("cannot make a socket: {}", std::strerror(errno))});
  // Bind the whole address, as upstream does: the NULs after the name are part of it.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EADDRINUSE)
      return std::unexpected(Error{"card.locked", fmt::format("{} is in use by a process that holds @{}", what, name), "",
                                   "stop that process, or choose another card or channel"});
    return std::unexpected(Error{"card.lock_file", fmt::format("cannot bind @{}: {}", name, std::strerror(errno))});
  }
  return NameLock(std::move(socket));
}

std::optional<std::string> upstream_lock_name(const Address& address, std::optional<unsigned> channel) {
  if (address.domain != 0) return std::nullopt;
  const std::string place = fmt::format("{:02x}:{:02x}.{:x}", address.bus, address.device, address.function);
  return channel ? fmt::format("lice_O2_RoC_DMA_{}_chan{}_lock", place, *channel)
                 : fmt::format("lice_O2_RoC_DMA_{}_lock", place);
}

}  // namespace rodeo::card::pci
