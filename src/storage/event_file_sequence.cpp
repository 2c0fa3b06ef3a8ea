#include "storage/event_file_sequence.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/sentence.h"
#include "base/units.h"
#include "formats/file_marks.h"
#include "formats/words.h"
#include "storage/file_seal.h"

namespace rodeo::storage {
namespace {

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + DirectFile::kAlign - 1) / DirectFile::kAlign * DirectFile::kAlign;
}

/// The free space, and the part of it that must stay free.
std::string space_text(const DirectFile& file, std::uint64_t min_free_bytes) {
  std::string text = fmt::format("{} free", base::format_size(file.free_bytes()));
  if (min_free_bytes > 0) text += fmt::format(", of which `min_free` keeps {}", base::format_size(min_free_bytes));
  return text;
}

// An end record fits between the first and the last of this many event ends, even if the events are empty.
constexpr std::size_t kEndsKept = 1 + (formats::kFileEndBytes + formats::kSeparatorBytes - 1) / formats::kSeparatorBytes;

// Events that are compressed as a whole have no readable header.
bool compressed_blocks(const EventFileSettings& files) {
  return std::ranges::find(files.free_strings, "Compression=zlib") != files.free_strings.end();
}

std::unexpected<Error> left_open(const DirectFile& file, const std::string& why) {
  return std::unexpected(
      Error{"file.write", why, {}, file.path() + " stays as it is, and `rodeo data recover` saves its whole events"});
}

}  // namespace

struct EventFileSequence::Buffer {
  std::byte* memory = nullptr;
  std::size_t used = 0;
  std::size_t carried = 0;  // bytes at the front that repeat the end of the last buffer, which are already written
  std::vector<std::uint64_t> event_ends;  // offsets in the file
};

struct EventFileSequence::OpenFile {
  DirectFile file;
  std::string closed_path;
  std::size_t header_bytes = 0;
  std::size_t crc_offset = 0;
  std::uint32_t events_before = 0;  // events in earlier files of this sequence
  std::uint64_t bytes_before = 0;   // bytes of the events in earlier files
  // Used by the writing thread:
  formats::FileDigest digest;
  std::uint64_t ends_seen = 0;
  std::vector<std::uint64_t> last_ends;
  std::uint64_t safe_bytes = 0;  // file offset behind the last safe event; 0: none is safe
  bool sealed = false;
};

struct EventFileSequence::Job {
  std::shared_ptr<OpenFile> file;
  Buffer* buffer = nullptr;       // buffer to write and return; null: none
  bool close = false;             // then close the file
  bool sync = false;              // then flush the file to the disk
  std::optional<Error> why = {};  // why no more events follow, if the end was not requested
};

EventFileSequence::EventFileSequence(Settings settings)
    : settings_(std::move(settings)),
      buffer_bytes_(aligned(settings_.buffer_bytes)),
      encoder_(settings_.files, settings_.first_file_number),
      with_checks_(!compressed_blocks(settings_.files)) {
  std::error_code error;
  const auto refuse = [&](const std::string& why, const std::string& next) {
    throw SetupError(Error{"readout.cannot_write", why, settings_.directory.string(), next});
  };
  if (settings_.directory.empty())
    refuse("the name of the directory for event files is empty", "name one; \".\" is the working directory");
  std::filesystem::create_directories(settings_.directory, error);
  if (error) refuse(fmt::format("cannot make the directory: {}", error.message()), "name a directory that you may write to");
  const std::string core = core_file_name(settings_.files);
  for (const auto& entry : std::filesystem::directory_iterator(settings_.directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(core + "._") || settings_.first_file_number > 1) continue;
    if (!settings_.files.simple_name.empty())
      throw SetupError(
          Error{"file.exists", "is there already", entry.path().string(), "remove it, or name another directory"});
    refuse(fmt::format("run {} has files here already: {}", settings_.files.run.run_number, name),
           "leave run.number out, or --set run.number=0, to take the next free number; or give the consumer another "
           "`directory`");
  }
  if (error) refuse(fmt::format("cannot read the directory: {}", error.message()), "name a directory that you may write to");
  // Creating a file is the only test of permissions, read-only mounts and quotas. The file has no name, so a crash leaves no
  // file behind. If the file system does not support or refuses this, a named file is created.
  if (!base::UniqueFd(::open(settings_.directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600))) {
    const std::string probe = path_of(fmt::format(".{}.{}.probe", core, ::getpid()));
    Result<DirectFile> made = DirectFile::create(probe, settings_.disk);
    if (!made) throw SetupError(made.error());
    ::unlink(probe.c_str());
  }

  Result<base::Arena> arena = base::Arena::create(buffer_bytes_ * settings_.buffers);
  if (!arena) throw SetupError(arena.error().within("cannot allocate file buffers"));
  arena_ = std::move(*arena);
  jobs_.reserve(settings_.buffers);
  for (unsigned i = 0; i < settings_.buffers; ++i) {
    auto& buffer = buffers_.emplace_back(std::make_unique<Buffer>());
    buffer->memory = arena_.data() + i * buffer_bytes_;
    buffer->event_ends.reserve(buffer_bytes_ / 128);
    free_.push_back(buffer.get());
  }
}

EventFileSequence::~EventFileSequence() { close(); }

void EventFileSequence::start() {
  if (Result<void> opened = open_file(0); !opened) throw SetupError(opened.error());
  thread_ = std::thread([this] { run(); });
}

// Opens the next file, and then closes the previous one: only after the opening is it known not to be the last file.
Result<void> EventFileSequence::open_file(std::size_t first_event_bytes) {
  put_header_checks();
  EventFileEncoder next = encoder_;
  const auto header = next.begin_file(std::time(nullptr), make_guid());
  DirectFile made = RODEO_TRY(DirectFile::create(path_of(next.writing_name()), settings_.disk));
  const std::uint64_t event = first_event_bytes == 0 ? 0 : formats::kSeparatorBytes + first_event_bytes;
  if (made.make_room(aligned(header.size() + event + formats::kFileEndBytes)) == Room::full) {
    ::unlink(made.path().c_str());
    return std::unexpected(Error{
        "readout.disk_full", fmt::format("no space for another file ({})", space_text(made, settings_.disk.min_free_bytes)),
        settings_.directory.string(), "free space there, or name another directory"});
  }
  close_file(false);
  made_.push_back(made.path());
  encoder_ = std::move(next);
  file_ = std::make_shared<OpenFile>(OpenFile{.file = std::move(made),
                                              .closed_path = path_of(encoder_.file_name()),
                                              .header_bytes = header.size(),
                                              .crc_offset = encoder_.crc_offset(),
                                              .events_before = encoder_.blocks_in_sequence(),
                                              .bytes_before = event_bytes_,
                                              .digest = {},
                                              .ends_seen = 0,
                                              .last_ends = {},
                                              .safe_bytes = 0,
                                              .sealed = false});
  file_->last_ends.reserve(2 * kEndsKept);
  direct_.store(file_->file.direct(), std::memory_order_relaxed);
  put(header);
  return {};
}

EventFileSequence::Outcome EventFileSequence::append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes) {
  if (!ended_ && failed_.load(std::memory_order_acquire)) ended_ = true;  // the disk failed during a write
  if (ended_) return Outcome::refused;
  if (encoder_.must_roll_over(bytes + formats::HeaderCheckList::record_bytes(checks_.size() + 1))) {
    if (Result<void> opened = open_file(bytes); !opened) {
      finish(opened.error());
      return Outcome::refused;
    }
  }
  // Room for the event, the header checks and the end record, so that the file can always be closed.
  const std::uint64_t most =
      encoder_.file_bytes() + formats::kSeparatorBytes + bytes + formats::HeaderCheckList::record_bytes(checks_.size() + 1);
  if (file_->file.make_room(aligned(most + formats::kFileEndBytes)) == Room::full) {
    finish(disk_full(file_->file));
    return Outcome::refused;
  }
  // A record of header checks is part of the block that it follows. This block gets it if the block cannot be extended
  // later, or if the list is full.
  const std::size_t used = filling_ == nullptr ? 0 : filling_->used;
  const bool stays = used + formats::kSeparatorBytes + bytes < buffer_bytes_;
  std::span<const std::byte> checks;
  if (with_checks_) {
    const std::uint32_t number = encoder_.blocks_in_sequence() + 1;
    checks_.add(number, formats::header_check(number, pieces));
    if (!stays || checks_.full()) checks = checks_.record();
  }
  put(encoder_.separator(static_cast<std::uint32_t>(bytes + checks.size())));
  last_separator_ = stays && checks.empty() ? filling_->memory + used : nullptr;
  event_bytes_ += bytes + checks.size();
  for (const auto& piece : pieces) put(piece);
  put(checks);
  // If the last buffer was handed over with this event, the next buffer may store the end of the event, too.
  if (filling_ == nullptr) filling_ = acquire_buffer();
  filling_->event_ends.push_back(encoder_.file_bytes());
  events_.fetch_add(1, std::memory_order_relaxed);
  return Outcome::taken;
}

void EventFileSequence::put(std::span<const std::byte> bytes) {
  unflushed_ = true;
  while (!bytes.empty()) {
    if (filling_ == nullptr) filling_ = acquire_buffer();
    const std::size_t n = std::min(bytes.size(), buffer_bytes_ - filling_->used);
    std::memcpy(filling_->memory + filling_->used, bytes.data(), n);
    filling_->used += n;
    bytes = bytes.subspan(n);
    if (filling_->used == buffer_bytes_) hand_over({.file = file_, .buffer = std::exchange(filling_, nullptr)});
  }
}

// Appends the pending header checks to the block of the last event.
void EventFileSequence::put_header_checks() {
  if (checks_.size() == 0) return;
  const std::span<const std::byte> record = checks_.record();
  std::byte* const size = std::exchange(last_separator_, nullptr) + 3 * formats::kWordBytes;
  formats::store_word(size, formats::load_word(size) + static_cast<std::uint32_t>(record.size()));
  encoder_.extend_block(record.size());
  event_bytes_ += record.size();
  filling_->event_ends.pop_back();
  put(record);
  if (filling_ == nullptr) filling_ = acquire_buffer();
  filling_->event_ends.push_back(encoder_.file_bytes());
}

bool EventFileSequence::takes_at_once(std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  // An event larger than all buffers is accepted once all other data are written.
  if (free_.size() + (filling_ != nullptr ? 1 : 0) == buffers_.size()) return true;
  const std::size_t room = free_.size() * buffer_bytes_ + (filling_ != nullptr ? buffer_bytes_ - filling_->used : 0);
  // Room is also needed for the end of this file, the beginning of the next one, and a buffer for the end of a flush.
  constexpr std::size_t kRecords = 64 << 10;
  return formats::kSeparatorBytes + bytes + kRecords < room;
}

bool EventFileSequence::flush() {
  if (!unflushed_ || file_ == nullptr || ended_) return true;
  if (checks_.size() > 0) {
    const bool fills = filling_->used + formats::HeaderCheckList::record_bytes(checks_.size()) >= buffer_bytes_;
    const std::lock_guard lock(mutex_);
    if (fills && free_.empty()) return false;
  }
  put_header_checks();
  if (filling_ == nullptr) {
    hand_over({.file = file_, .sync = true});
    unflushed_ = false;
    return true;
  }
  // The disk takes whole blocks: the part in the last block is written again, from the front of the next buffer.
  const std::size_t carried = filling_->used % DirectFile::kAlign;
  Buffer* next = nullptr;
  if (carried > 0) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return false;
    next = free_.back();
    free_.pop_back();
  }
  if (next != nullptr) {
    std::memcpy(next->memory, filling_->memory + filling_->used - carried, carried);
    next->used = next->carried = carried;
    next->event_ends.clear();
  }
  hand_over({.file = file_, .buffer = std::exchange(filling_, next), .sync = true});
  unflushed_ = false;
  return true;
}

void EventFileSequence::close_file(bool last, std::optional<Error> why) {
  if (file_ == nullptr) return;
  put_header_checks();
  put(encoder_.end_file(std::time(nullptr), last));
  hand_over({.file = std::move(file_), .buffer = std::exchange(filling_, nullptr), .close = true, .why = std::move(why)});
  file_ = nullptr;
}

void EventFileSequence::close() { finish({}); }

void EventFileSequence::end() { end({}); }

void EventFileSequence::end(std::optional<Error> why) {
  close_file(true, std::move(why));
  ended_ = true;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void EventFileSequence::finish(std::optional<Error> why) {
  if (!thread_.joinable()) return;
  end(std::move(why));
  thread_.join();
}

EventFileSequence::Buffer* EventFileSequence::acquire_buffer() {
  std::unique_lock lock(mutex_);
  if (free_.empty()) {
    waits_.fetch_add(1, std::memory_order_relaxed);
    changed_.wait(lock, [this] { return !free_.empty(); });
  }
  Buffer* buffer = free_.back();
  free_.pop_back();
  buffer->used = 0;
  buffer->carried = 0;
  buffer->event_ends.clear();
  return buffer;
}

void EventFileSequence::hand_over(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

Error EventFileSequence::disk_full(const DirectFile& file) const {
  return {"readout.disk_full",
          fmt::format("the disk is full ({})", space_text(file, settings_.disk.min_free_bytes)),
          {},
          settings_.when_full};
}

void EventFileSequence::run() {
  cpu_.attach();
  base::set_thread_name(settings_.thread_name);
  // A file size limit is treated like a full disk; the signal must not end the process.
  sigset_t size_limit;
  sigemptyset(&size_limit);
  sigaddset(&size_limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &size_limit, nullptr);
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !jobs_.empty() || ending_; });
      if (jobs_.empty()) break;
      job = std::move(jobs_.front());
      jobs_.erase(jobs_.begin());
    }
    write(job);
    if (job.buffer != nullptr) {
      {
        const std::lock_guard lock(mutex_);
        free_.push_back(job.buffer);
      }
      changed_.notify_all();
    }
  }
  done_.store(true, std::memory_order_release);
  cpu_.detach();
}

void EventFileSequence::write(Job& job) {
  OpenFile& file = *job.file;
  if (failed_file_ != nullptr) {
    // A file opened after the failure has no data on disk.
    if (job.close && job.file != failed_file_) ::unlink(file.file.path().c_str());
    return;
  }
  if (job.buffer != nullptr) {
    Buffer& buffer = *job.buffer;
    // The carried bytes were written before; this buffer overwrites the block that contains them.
    const std::uint64_t before = file.digest.bytes() - buffer.carried;
    if (buffer.carried > 0) file.file.rewind_to(before);
    for (std::int64_t slept_ms = 0; slept_ms * 1'000'000 < delay_ns_.load(std::memory_order_relaxed); ++slept_ms)
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    const std::size_t padded = static_cast<std::size_t>(aligned(buffer.used));
    std::memset(buffer.memory + buffer.used, 0, padded - buffer.used);
    const DirectFile::Written written = file.file.write({buffer.memory, padded});
    if (written.error != 0) {
      const Error why =
          means_full(written.error) ? disk_full(file.file)
          : written.error == EFBIG
              ? Error{"file.size_limit",
                      "a file cannot become larger: the limit of this process, or of the file system",
                      {},
                      "raise the limit (ulimit -f), or write smaller files"}
              : Error{"file.write", fmt::format("cannot write to {}: {}", file.file.path(), std::strerror(written.error))};
      if (written.earlier) return fail(job, why, left_open(file.file, "what was written before may be lost"));
      fail(job, why, salvage(file, buffer, std::max(file.digest.bytes(), before + std::min(written.bytes, buffer.used))));
      return;
    }
    file.digest.update({buffer.memory + buffer.carried, buffer.used - buffer.carried});
    bytes_written_.fetch_add(buffer.used - buffer.carried, std::memory_order_relaxed);
    file.ends_seen += buffer.event_ends.size();
    const auto tail = std::span(buffer.event_ends).last(std::min(buffer.event_ends.size(), kEndsKept));
    file.last_ends.insert(file.last_ends.end(), tail.begin(), tail.end());
    if (file.last_ends.size() > kEndsKept) file.last_ends.erase(file.last_ends.begin(), file.last_ends.end() - kEndsKept);
  }
  if (!job.close) {
    if (!job.sync) return;
    if (const int error = file.file.sync(); error != 0) {
      const Error why{"file.write", fmt::format("cannot flush {} to the disk: {}", file.file.path(), std::strerror(error))};
      return fail(job, why, left_open(file.file, "bytes that are not flushed may be lost"));
    }
    return make_safe(file);
  }
  const Result<std::string> sealed = seal(file, file.digest, file.ends_seen);
  if (!sealed || job.why) fail(job, job.why, sealed);
}

void EventFileSequence::make_safe(OpenFile& file) {
  if (!file.last_ends.empty()) file.safe_bytes = file.last_ends.back();
  safe_events_.store(file.events_before + file.ends_seen, std::memory_order_release);
}

Result<std::string> EventFileSequence::seal(OpenFile& file, const formats::FileDigest& digest, std::uint64_t events) {
  if (const int error = file.file.finish(digest.bytes()); error != 0)
    return left_open(file.file, fmt::format("cannot close {}: {}", file.file.path(), std::strerror(error)));
  if (const auto sealed = seal_event_file(file.file, file.closed_path, file.crc_offset, digest.crc32()); !sealed)
    return left_open(file.file, base::in_a_line(sealed.error()));
  file.sealed = true;
  events_kept_.fetch_add(events, std::memory_order_relaxed);
  safe_events_.store(file.events_before + events, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    files_.push_back({.path = file.closed_path,
                      .bytes = digest.bytes(),
                      .events = events,
                      .adler32 = digest.adler32_when_sealed(file.crc_offset)});
  }
  std::string closed = fmt::format("{} was closed with {}", file.closed_path, base::counted(events, "event"));
  if (const auto flushed = flush_directory_of(file.closed_path); !flushed)
    return std::unexpected(
        Error{"file.write", base::in_a_line(flushed.error()), {}, closed + ", but a power cut may take its name"});
  return closed;
}

// The disk took only part of a buffer. Ends the file after the last whole event behind which the end record fits into the
// written part, but never before an event that was reported as safe: then the disk must take the record, or the file stays
// open.
Result<std::string> EventFileSequence::salvage(OpenFile& file, const Buffer& failed, std::uint64_t written_bytes) {
  std::vector<std::uint64_t> ends = file.last_ends;
  ends.insert(ends.end(), failed.event_ends.begin(), failed.event_ends.end());
  std::uint64_t events = file.ends_seen + failed.event_ends.size();
  const std::uint64_t safe = safe_events() > file.events_before ? safe_events() - file.events_before : 0;
  while (!ends.empty() && events > safe && ends.back() + formats::kFileEndBytes > written_bytes) {
    ends.pop_back();
    --events;
  }
  const std::uint64_t end = ends.empty() ? file.header_bytes : ends.back();
  if (end + formats::kFileEndBytes > written_bytes && safe == 0) {
    const std::string& path = file.file.path();
    if (written_bytes <= file.header_bytes && ::unlink(path.c_str()) == 0) return path + " was removed: no event is in it";
    return left_open(file.file, "there is no room for the end record");
  }
  const std::uint64_t block_bytes = end - file.header_bytes - events * formats::kSeparatorBytes;
  const auto record =
      formats::encode_file_end({.closed = formats::FileTime::of(std::time(nullptr)),
                                .blocks_in_file = static_cast<std::uint32_t>(events),
                                .mib_in_file = formats::rounded_mib(block_bytes),
                                .blocks_in_sequence = file.events_before + static_cast<std::uint32_t>(events),
                                .mib_in_sequence = formats::rounded_mib(file.bytes_before + block_bytes),
                                .last_file = 1});
  const std::uint64_t size = end + record.size();
  int error = file.file.finish(written_bytes);
  if (error == 0) error = file.file.patch(end, record);
  if (error == 0) error = file.file.finish(size);
  if (error != 0) return left_open(file.file, fmt::format("cannot end {}: {}", file.file.path(), std::strerror(error)));
  // The digest of the final bytes is computed from the file: earlier buffers are gone.
  formats::FileDigest digest;
  std::vector<std::byte> piece(1 << 20);
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), size - at));
    const ssize_t n = ::pread(file.file.descriptor(), piece.data(), wanted, static_cast<off_t>(at));
    if (n <= 0) return left_open(file.file, fmt::format("cannot read {} again", file.file.path()));
    digest.update({piece.data(), static_cast<std::size_t>(n)});
    at += static_cast<std::uint64_t>(n);
  }
  bytes_written_.fetch_add(size - std::min(size, file.digest.bytes()), std::memory_order_relaxed);
  return seal(file, digest, events);
}

void EventFileSequence::fail(const Job& job, std::optional<Error> why, const Result<std::string>& outcome) {
  failed_file_ = job.file;
  std::string end = outcome ? *outcome : base::in_a_line(outcome.error());
  if (OpenFile& file = *job.file; settings_.keep_only_safe && !outcome && !file.sealed) {
    const auto bytes = static_cast<off_t>(std::max<std::uint64_t>(file.safe_bytes, file.header_bytes));
    if (::ftruncate(file.file.descriptor(), bytes) == 0) end += "; events that were not safe are cut off";
  }
  if (std::error_code unknown;
      std::filesystem::status(settings_.directory, unknown).type() == std::filesystem::file_type::not_found) {
    why = Error{"file.directory_gone", "the directory was removed or renamed while files were written to it",
                settings_.directory.string(),
                "if it was renamed, `rodeo data recover` saves the events of the .writing file there"};
    end = "the open file is lost with it";
  }
  const std::lock_guard lock(mutex_);
  code_ = why ? why->code : outcome.error().code;
  cause_ = why ? why->what : outcome.error().what;
  failure_ = why ? base::in_a_line({why->code, why->what + ": " + end, why->where, why->next}) : end;
  failed_.store(true, std::memory_order_release);
  over_.store(true, std::memory_order_release);
}

EventFileSequence::Status EventFileSequence::status() const {
  Status out;
  out.events = events_.load(std::memory_order_relaxed);
  if (done_.load(std::memory_order_acquire)) out.events_lost = out.events - events_kept_.load(std::memory_order_relaxed);
  out.bytes_written = bytes_written_.load(std::memory_order_relaxed);
  out.waits = waits_.load(std::memory_order_relaxed);
  out.direct = direct_.load(std::memory_order_relaxed);
  out.cpu_seconds = cpu_.seconds();
  const std::lock_guard lock(mutex_);
  out.files = files_;
  out.failure = failure_;
  out.cause = cause_;
  out.code = code_;
  return out;
}

}  // namespace rodeo::storage
