// `rodeo card cleanup`: removes files that dead processes left behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/lock_file.h"
#include "base/runtime_dir.h"
#include "card/pci/lock.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

namespace fs = std::filesystem;

struct CleanupOptions {
  bool yes = false;
  bool light = false;
  OutputFormat format = OutputFormat::table;
};

/// The lock of an owner, and its socket. If the lock is free and no process listens on the socket, both files may be
/// removed.
struct Guard {
  fs::path lock;
  base::LockedPart part;
  fs::path socket;
};

struct Leftover {
  fs::path path;
  std::string what;
  std::uint64_t bytes = 0;
  std::optional<Guard> guard = {};  ///< without one, the file is in use while a process has it open
  bool ours = true;                 ///< false: only the name fits, so the file stays
};

constexpr const char* kNotASocket = "not ours: named like a socket, but is not one";
constexpr const char* kNotALock = "not ours: named like a lock file, but is not one";

/// Its file type (S_IFSOCK, S_IFREG, ...); symbolic links are not followed. 0: the file is gone.
mode_t kind_of(const fs::path& path) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 ? about.st_mode & S_IFMT : 0;
}

/// Whether any process has a lock on any of these bytes of the file.
bool somebody_locks(const fs::path& path, const base::LockedPart& part) {
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return true;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = part.first;
  lock.l_len = part.count;
  return ::fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Whether a process has the file locked as a whole.
bool somebody_holds(const fs::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return !file || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

/// Whether any process of this host has the file open or mapped, as far as /proc shows.
bool somebody_uses(const fs::path& path) {
  std::error_code failure;
  struct stat wanted{};
  if (::stat(path.c_str(), &wanted) != 0) return true;
  for (fs::directory_iterator process("/proc", failure), end; !failure && process != end; process.increment(failure)) {
    const std::string name = process->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const char* list : {"fd", "map_files"}) {
      std::error_code ignored;
      for (fs::directory_iterator entry(process->path() / list, ignored), last; !ignored && entry != last;
           entry.increment(ignored)) {
        struct stat there{};
        if (::stat(entry->path().c_str(), &there) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino)
          return true;
      }
    }
  }
  return false;
}

std::uint64_t size_of(const fs::path& path) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_blocks) * 512
                                                                      : 0;
}

Leftover leftover(const fs::path& path, std::string what, std::optional<Guard> guard = {}) {
  return {.path = path, .what = std::move(what), .bytes = size_of(path), .guard = std::move(guard)};
}

Leftover not_ours(const fs::path& path, bool lock) {
  return {.path = path, .what = lock ? kNotALock : kNotASocket, .bytes = size_of(path), .guard = {}, .ours = false};
}

template <typename Visit>
void each_file(const fs::path& directory, Visit visit) {
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    visit(entry->path());
}

/// The kind of process whose socket has such a name; nullptr: unknown.
const char* owner_of(const fs::path& socket) {
  const fs::path kind = socket.extension();
  return kind == ".control"    ? "a readout"
         : kind == ".events"   ? "a readout's event sampler"
         : kind == ".emulator" ? "an emulator"
         : kind == ".trigger"  ? "a trigger authority"
                               : nullptr;
}

/// Control sockets of processes. A lock file beside each socket marks the owner of the name.
void add_control_sockets(std::vector<Leftover>& list) {
  each_file(base::runtime_directory_name(), [&](const fs::path& path) {
    const bool lock = path.extension() == ".lock";
    const fs::path socket = lock ? fs::path(path).replace_extension() : path;
    const char* const whose = owner_of(socket);
    const mode_t kind = kind_of(path);
    if (whose == nullptr || kind == 0) return;
    if (kind != static_cast<mode_t>(lock ? S_IFREG : S_IFSOCK)) return list.push_back(not_ours(path, lock));
    const fs::path lock_path = socket.native() + ".lock";
    if (base::has_listener(socket) || (kind_of(lock_path) != 0 && somebody_holds(lock_path))) return;
    list.push_back(leftover(path, fmt::format("{} of {} whose process is gone", lock ? "lock file" : "socket", whose),
                            Guard{lock_path, base::LockedPart::whole(), socket}));
  });
}

/// Sockets of emulated cards and locks of cards. Their names contain the card's address.
void add_cards(std::vector<Leftover>& list) {
  each_file(base::runtime_directory_name() / "cards", [&](const fs::path& path) {
    const bool lock = path.extension() == ".lock";
    const mode_t kind = kind_of(path);
    if ((!lock && path.extension() != ".sock") || kind == 0) return;
    if (kind != static_cast<mode_t>(lock ? S_IFREG : S_IFSOCK) || (lock && !card::pci::Address::parse(path.stem().native())))
      return list.push_back(not_ours(path, lock));
    // A client that outlives the server keeps its channel locks; only the server uses the socket.
    const Guard guard{fs::path(path).replace_extension(".lock"),
                      lock ? base::LockedPart::all_bytes() : base::LockedPart::byte(card::pci::kServerByte),
                      fs::path(path).replace_extension(".sock")};
    if (base::has_listener(guard.socket) || (kind_of(guard.lock) != 0 && somebody_locks(guard.lock, guard.part))) return;
    list.push_back(
        leftover(path, lock ? "lock file without a holder" : "socket of an emulated card whose process is gone", guard));
  });
}

/// Leftovers of ReadoutCard's tools (C-RORC info blocks), and DMA buffers on huge pages.
void add_buffers(std::vector<Leftover>& list) {
  const auto begins = [](const fs::path& path, std::string_view prefix) {
    return path.filename().string().starts_with(prefix);
  };
  each_file("/dev/shm", [&](const fs::path& path) {
    if (begins(path, "AliceO2_RoC_") && path.native().ends_with("_sp_info") && !somebody_uses(path))
      list.push_back(leftover(path, "information block of a C-RORC channel"));
  });
  for (const char* directory : {"/var/lib/hugetlbfs/global/pagesize-1GB", "/var/lib/hugetlbfs/global/pagesize-2MB"}) {
    each_file(directory, [&](const fs::path& path) {
      const bool buffer = begins(path, "readout") || begins(path, "roc-bench-dma") || begins(path, "o2-roc-bench-dma") ||
                          begins(path, "rodeo-");
      if (buffer && !somebody_uses(path)) list.push_back(leftover(path, "DMA buffer on huge pages"));
    });
  }
}

std::vector<Leftover> leftovers() {
  std::vector<Leftover> list;
  add_control_sockets(list);
  add_cards(list);
  add_buffers(list);
  return list;
}

struct Removal {
  std::string outcome;
  bool failed = false;
};

/// Checks again under the owner's lock: since the search, a process may have started to use the file.
Removal remove(const Leftover& one) {
  Removal used{"stays: in use again"};
  std::optional<base::LockFile> lock;
  if (one.guard) {
    auto taken = base::LockFile::acquire(one.guard->lock, one.guard->part);
    if (!taken && taken.error() == EWOULDBLOCK) return used;
    if (!taken)
      return {fmt::format("not removed: cannot lock {}: {}", one.guard->lock.native(), std::strerror(taken.error())), true};
    lock = std::move(*taken);
    if (base::has_listener(one.guard->socket)) {
      if (lock->made()) lock->remove();
      return used;
    }
  } else if (somebody_uses(one.path)) {
    return kind_of(one.path) == 0 ? Removal{"removed"} : used;
  }
  std::error_code failure;
  fs::remove(one.path, failure);
  if (lock && lock->made()) lock->remove();
  return failure ? Removal{"not removed: " + failure.message(), true} : Removal{"removed"};
}

Result<ExitCode> cleanup(const CleanupOptions& options) {
  Table table({{"file", "path"}, {"what", "what"}, {"size [B]", "size_bytes"}, {"", "outcome"}});
  bool failed = false;
  bool waiting = false;
  for (const Leftover& one : leftovers()) {
    std::string outcome = one.ours ? "would be removed" : "stays";
    waiting = waiting || (one.ours && !options.yes);
    if (options.yes && one.ours) {
      const Removal removal = remove(one);
      outcome = removal.outcome;
      failed = failed || removal.failed;
    }
    table.add_row({Cell(one.path.string()), Cell(one.what), one.bytes, Cell(outcome)});
  }
  table.print(options.format);
  if (waiting) say("nothing was removed; `rodeo card cleanup --yes` removes\n");
  return failed ? ExitCode::failed : ExitCode::done;
}

}  // namespace

void add_card_cleanup(Command& card) {
  auto options = std::make_shared<CleanupOptions>();
  Command& cleans = card.verb("cleanup", "Removes leftovers of dead processes: sockets, locks, buffers");
  cleans.example("rodeo card cleanup", "lists what it would remove").example("rodeo card cleanup --yes", "removes it");
  cleans.flag("--yes", options->yes, "Remove it");
  cleans.flag("--light", options->light, "No effect: no kernel modules are reloaded. Kept for ReadoutCard's scripts");
  cleans.output(options->format);
  cleans.paragraph(
      "Files that a living process listens on, locks or has open are never touched. A file that only has the name of a "
      "socket or lock file is listed and stays. Each file is checked again and then removed under its owner's lock.");
  cleans.run([options] { return cleanup(*options); });
}

}  // namespace rodeo::cli
