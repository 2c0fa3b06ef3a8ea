// Looking after cards: `rodeo card reset | cleanup`.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "base/runtime_dir.h"
#include "card/dma/channel.h"
#include "card/dma/memory.h"
#include "card/pci/lock.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

namespace fs = std::filesystem;

struct ResetOptions {
  std::string id;
  unsigned channel = 0;
  std::string level = "internal";
};

Result<ExitCode> reset(const ResetOptions& options) {
  auto card = open_card(options.id);
  if (!card) return std::unexpected(card.error());
  // A channel wants memory, although nothing will be written to it.
  auto memory = card::DmaMemory::create(std::size_t{4} << 20);
  if (!memory) return std::unexpected(memory.error());
  auto channel = card::DmaChannel::open(
      **card, options.channel, memory->shared(),
      {.source = (*card)->type() == card::CardType::felix ? card::DataSource::fee : card::DataSource::internal,
       .check_firmware = false});
  if (!channel) return std::unexpected(channel.error());
  const auto level = options.level == "internal" ? card::ResetLevel::internal
                     : options.level == "siu"    ? card::ResetLevel::internal_siu
                                                 : card::ResetLevel::nothing;
  if (auto done = (*channel)->reset(level); !done) return std::unexpected(done.error());
  return ExitCode::done;
}

struct CleanupOptions {
  bool yes = false;
  OutputFormat format = OutputFormat::table;
};

struct Leftover {
  fs::path path;
  std::string what;
  std::uint64_t bytes = 0;
  bool ours = true;  ///< false: it only has such a name, and stays
};

constexpr const char* kNotASocket = "not ours: it has the name of a socket and is none";
constexpr const char* kNotALock = "not ours: it has the name of a lock file and is none";

/// Its kind (S_IFSOCK, S_IFREG, ...), of a symbolic link itself; 0: it is gone.
mode_t kind_of(const fs::path& path) {
  struct stat about{};
  return ::lstat(path.c_str(), &about) == 0 ? about.st_mode & S_IFMT : 0;
}

/// Whether a process listens on a Unix socket.
bool somebody_listens(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) return true;
  text.copy(address.sun_path, text.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return true;
  const int connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool refused = connected != 0 && (errno == ECONNREFUSED || errno == ENOENT);
  ::close(socket);
  return !refused;
}

/// Whether any process has a lock on any byte of the file.
bool somebody_locks(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return true;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool known = ::fcntl(file, F_OFD_GETLK, &lock) == 0;
  ::close(file);
  return !known || lock.l_type != F_UNLCK;
}

/// Whether a process has the file locked as a whole.
bool somebody_holds(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const bool free = ::flock(file, LOCK_SH | LOCK_NB) == 0;
  ::close(file);
  return !free;
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

void add(std::vector<Leftover>& list, const fs::path& path, std::string what, bool ours = true) {
  std::error_code ignored;
  struct stat about{};
  const std::uint64_t bytes =
      ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) ? static_cast<std::uint64_t>(about.st_blocks) * 512 : 0;
  list.push_back({path, std::move(what), bytes, ours});
}

template <typename Visit>
void each_file(const fs::path& directory, Visit visit) {
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    visit(entry->path());
}

/// What processes that are gone have left: ours, and what upstream's tools leave (buffers on huge pages, C-RORC info blocks).
std::vector<Leftover> leftovers() {
  std::vector<Leftover> list;
  // Sockets by which processes are asked and told, each with a lock file beside it that says who has the name.
  each_file(base::runtime_directory_name(), [&](const fs::path& path) {
    const bool lock = path.extension() == ".lock";
    const fs::path socket = lock ? fs::path(path).replace_extension() : path;
    const char* const whose = socket.extension() == ".control"    ? "a readout"
                              : socket.extension() == ".events"   ? "a readout's event sampler"
                              : socket.extension() == ".emulator" ? "an emulator"
                                                                  : nullptr;
    if (whose == nullptr) return;
    const mode_t kind = kind_of(path);
    if (kind != 0 && kind != static_cast<mode_t>(lock ? S_IFREG : S_IFSOCK))
      return add(list, path, lock ? kNotALock : kNotASocket, false);
    if (somebody_listens(socket) || (lock && somebody_holds(path))) return;
    add(list, path, fmt::format("{} of {} whose process is gone", lock ? "lock file" : "socket", whose));
  });
  const fs::path cards = base::runtime_directory_name() / "cards";
  each_file(cards, [&](const fs::path& path) {
    const mode_t kind = kind_of(path);
    if (path.extension() == ".sock" && kind != 0) {
      if (kind != S_IFSOCK) return add(list, path, kNotASocket, false);
      if (!somebody_listens(path)) add(list, path, "socket of an emulated card whose process is gone");
    }
    if (path.extension() == ".lock" && kind != 0) {
      // Those of cards have the address in their name.
      if (kind != S_IFREG || !card::pci::Address::parse(path.stem().native())) return add(list, path, kNotALock, false);
      fs::path socket = path;
      socket.replace_extension(".sock");
      const bool alive = fs::exists(socket) && somebody_listens(socket);
      if (!alive && !somebody_locks(path)) add(list, path, "lock file that nobody holds");
    }
  });
  const auto begins = [](const fs::path& path, std::string_view prefix) {
    return path.filename().string().starts_with(prefix);
  };
  each_file("/dev/shm", [&](const fs::path& path) {
    const std::string name = path.filename().string();
    if (begins(path, "AliceO2_RoC_") && name.ends_with("_sp_info") && !somebody_uses(path))
      add(list, path, "information block of a C-RORC channel");
  });
  for (const char* directory : {"/var/lib/hugetlbfs/global/pagesize-1GB", "/var/lib/hugetlbfs/global/pagesize-2MB"}) {
    each_file(directory, [&](const fs::path& path) {
      const bool buffer = begins(path, "readout") || begins(path, "roc-bench-dma") || begins(path, "o2-roc-bench-dma") ||
                          begins(path, "rodeo-");
      if (buffer && !somebody_uses(path)) add(list, path, "DMA buffer on huge pages");
    });
  }
  return list;
}

Result<ExitCode> cleanup(const CleanupOptions& options) {
  Table table({{"file", "path"}, {"what", "what"}, {"size [B]", "size_bytes"}, {"", "outcome"}});
  bool failed = false;
  bool waiting = false;
  for (const Leftover& one : leftovers()) {
    std::string outcome = one.ours ? "would be removed" : "stays";
    waiting = waiting || (one.ours && !options.yes);
    if (options.yes && one.ours) {
      std::error_code failure;
      outcome = fs::remove(one.path, failure) ? "removed" : "not removed: " + failure.message();
      failed = failed || static_cast<bool>(failure);
    }
    table.add_row({Cell(one.path.string()), Cell(one.what), one.bytes, Cell(outcome)});
  }
  table.print(options.format);
  if (waiting) fmt::print(stderr, "nothing was removed; rodeo card cleanup --yes does\n");
  return failed ? ExitCode::failed : ExitCode::done;
}

}  // namespace

void add_card_care(Command& card) {
  auto options = std::make_shared<ResetOptions>();
  Command& resets = card.verb("reset", "Resets a DMA channel that nobody owns");
  resets.example("rodeo card reset --id '#0'", "counters and queues")
      .example("rodeo card reset --id '#0' --channel 2 --level siu", "a C-RORC's link as well");
  add_card_id(resets, options->id);
  resets.option("--channel", options->channel, "DMA channel");
  resets.choice("--level,--reset", options->level, {"nothing", "internal", "siu"}, "How far");
  resets.run([options] { return reset(*options); });

  auto cleanup_options = std::make_shared<CleanupOptions>();
  Command& cleans = card.verb("cleanup", "What processes that are gone have left behind: sockets, locks, buffers");
  cleans.example("rodeo card cleanup", "says what it would remove").example("rodeo card cleanup --yes", "removes it");
  cleans.flag("--yes", cleanup_options->yes, "Remove it");
  cleans.output(cleanup_options->format);
  cleans.paragraph(
      "What a living process listens on, locks or has open is never touched; what only has the name of a socket "
      "or a lock file is named, and stays.");
  cleans.run([cleanup_options] { return cleanup(*cleanup_options); });
}

}  // namespace rodeo::cli
