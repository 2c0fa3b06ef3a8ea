#include "readout/consumer/file_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "formats/header_checks.h"

namespace rodeo::readout {
namespace {

/// Bytes for the check of an event's header: 2, plus its share of the 16 bytes of a record, usually of 256 events.
constexpr std::size_t kCheckBytes = 3;
constexpr std::uint64_t kCheckRecordBytes = formats::HeaderCheckList::record_bytes(1);

// The byte limit includes the records of files.
EventShare::Settings share_for(const FileWriterSettings& settings) {
  EventShare::Settings share = settings.share;
  if (share.max_bytes == 0) return share;
  const std::uint64_t records =
      storage::EventFileEncoder(settings.files.files).begin_file(0, storage::make_guid()).size() + formats::kFileEndBytes;
  const std::uint64_t largest = settings.files.files.max_bytes;
  const std::uint64_t files = largest == 0 ? 1 : share.max_bytes / largest + 1;
  // Each buffer and each file ends with a record of checks, even a short one.
  const std::uint64_t checks = kCheckRecordBytes * (share.max_bytes / settings.files.buffer_bytes + 1 + files);
  share.max_bytes -= std::min(share.max_bytes - 1, records * files + checks);  // not 0, because 0 would mean no limit
  return share;
}

storage::EventFileSequence::Settings files_for(const FileWriterSettings& settings) {
  storage::EventFileSequence::Settings files = settings.files;
  files.when_full = "free space there, or give the consumer another `directory`";
  if (files.disk.min_free_bytes > 0) files.when_full += " or a smaller `min_free`";
  return files;
}

/// Reasons that end the writing: the ends of error codes and of unwritten_ counters. The last one stands for all other
/// errors.
constexpr std::array<std::string_view, 4> kFailures{"disk_full", "size_limit", "directory_gone", "write_failed"};

QueueSettings with_defaults(QueueSettings queue) {
  if (queue.threads == 0) queue.threads = 1;  // the writer must not work in the builder's thread, because a disk may stall
  return queue;
}

}  // namespace

class FileWriter::WritingWorker final : public Worker {
 public:
  explicit WritingWorker(FileWriter& writer) : writer_(writer) {
    if (writer.settings_.compression_level > 0) compressor_.emplace(writer.settings_.compression_level);
    pieces_.reserve(4096);
  }

  void work(FragmentPtr fragment) override {
    if (writer_.failed()) {
      writer_.leave_out(Unwritten::failed, std::move(fragment));
      return;
    }
    const storage::EventFileSequence::Outcome outcome = compressor_ ? write_compressed(*fragment) : write(*fragment);
    if (outcome == storage::EventFileSequence::Outcome::taken) {
      writer_.pass_on(std::move(fragment));
      return;
    }
    writer_.fail(writer_.files_->status().failure);
    writer_.leave_out(Unwritten::failed, std::move(fragment));
  }

 private:
  storage::EventFileSequence::Outcome write(const Fragment& fragment) {
    writer_.frame_.store(fragment, event_stamp(fragment), ends_);
    pieces_.clear();
    pieces_.emplace_back(ends_.head);
    for (const FragmentPart& part : fragment.all_parts()) pieces_.emplace_back(part.data, part.size);
    pieces_.emplace_back(ends_.tail);
    return writer_.append(pieces_, ends_.head.size() + fragment.payload_bytes() + ends_.tail.size());
  }

  storage::EventFileSequence::Outcome write_compressed(const Fragment& fragment) {
    const std::size_t size =
        writer_.frame_.store_compressed(fragment, event_stamp(fragment), *compressor_, ends_, compressed_);
    const std::span<const std::byte> event(compressed_.data(), size);
    return writer_.append({&event, 1}, size);
  }

  FileWriter& writer_;
  formats::EventEnds ends_;
  std::vector<std::span<const std::byte>> pieces_;
  std::optional<formats::ZlibCompressor> compressor_;
  std::vector<std::byte> compressed_;
};

FileWriter::FileWriter(FileWriterSettings settings)
    : QueuedConsumer(with_defaults(settings.queue)),
      settings_(std::move(settings)),
      frame_(settings_.frame),
      share_(share_for(settings_)),
      files_(std::make_unique<storage::EventFileSequence>(files_for(settings_))) {}

FileWriter::~FileWriter() { FileWriter::stop(); }

void FileWriter::set_run(const RunInfo& run) {
  FileWriterSettings settings = settings_;
  apply_run(settings.frame, run);
  settings.files.files.run.run_number = run.run_number;
  files_ = std::make_unique<storage::EventFileSequence>(files_for(settings));
  frame_ = formats::EventFrame(settings.frame);
  settings_ = std::move(settings);
}

void FileWriter::start() {
  files_->start();
  QueuedConsumer::start();
}

void FileWriter::stop() {
  QueuedConsumer::stop();
  files_->close();
  if (const auto files = files_->status(); !files.failure.empty()) fail(files.failure);
}

void FileWriter::insert(FragmentPtr fragment) {
  const std::size_t bytes = settings_.share.max_bytes == 0 ? 0
                                                           : formats::kSeparatorBytes + frame_.bytes_around(*fragment) +
                                                                 fragment->payload_bytes() + kCheckBytes;
  switch (share_.decide(*fragment, bytes)) {
    case ShareVerdict::accepted:
      if (settings_.wait_when_full) {
        enqueue(std::move(fragment));
      } else if (!try_enqueue(fragment)) {
        share_.give_back(bytes);
        leave_out(Unwritten::queue_full, std::move(fragment));
      }
      return;
    case ShareVerdict::beyond_fraction: return leave_out(Unwritten::fraction, std::move(fragment));
    case ShareVerdict::beyond_rate: return leave_out(Unwritten::rate, std::move(fragment));
    case ShareVerdict::beyond_bytes: return leave_out(Unwritten::bytes, std::move(fragment));
  }
}

void FileWriter::leave_out(Unwritten why, FragmentPtr fragment) {
  unwritten_[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  pass_on(std::move(fragment));
}

storage::EventFileSequence::Outcome FileWriter::append(std::span<const std::span<const std::byte>> pieces,
                                                       std::size_t bytes) {
  const std::lock_guard lock(append_mutex_);
  const std::uint64_t largest = settings_.files.files.max_bytes;
  if (bytes > largest && largest > 0 && !std::exchange(warned_of_large_events_, true)) {
    base::log_warning(
        "{}: events of {} bytes are larger than max_file_size = {}: each of them gets its own file, which is slow",
        settings().name, bytes, largest);
  }
  return files_->append(pieces, bytes);
}

std::unique_ptr<QueuedConsumer::Worker> FileWriter::make_worker(unsigned) { return std::make_unique<WritingWorker>(*this); }

FragmentConsumer::Status FileWriter::status() const {
  Status out = QueuedConsumer::status();
  storage::EventFileSequence::Status files = files_->status();
  const auto unwritten = [this](Unwritten why) {
    return unwritten_[static_cast<std::size_t>(why)].load(std::memory_order_relaxed);
  };
  out.counters.insert(out.counters.end(), {{"events_written", files.events - files.events_lost},
                                           {"bytes_written", files.bytes_written},
                                           {"disk_waits", files.waits},
                                           {"past_page_cache", files.direct ? 1U : 0U},
                                           {"unwritten_beyond_fraction", unwritten(Unwritten::fraction)},
                                           {"unwritten_beyond_rate", unwritten(Unwritten::rate)},
                                           {"unwritten_beyond_bytes", unwritten(Unwritten::bytes)},
                                           {"unwritten_queue_full", unwritten(Unwritten::queue_full)}});
  const auto reason = std::ranges::find_if(kFailures.begin(), kFailures.end() - 1,
                                           [&](std::string_view name) { return files.code.ends_with(name); });
  for (auto name = kFailures.begin(); name != kFailures.end(); ++name)
    out.counters.push_back(
        {fmt::format("unwritten_{}", *name), name == reason ? unwritten(Unwritten::failed) + files.events_lost : 0});
  out.files = std::move(files.files);
  out.cpu_seconds += files.cpu_seconds;
  if (out.failure.empty()) out.failure = std::move(files.failure);
  return out;
}

namespace {

/// The values of the configuration, with a readout's defaults.
struct FileWriterKeys : FileWriterSettings {
  FileWriterKeys() {
    queue.name = "file_writer";
    queue.capacity = 4096;
    files.directory = ".";
    files.files.max_bytes = std::uint64_t{2} << 30;
    files.disk.min_free_bytes = 64 << 20;
  }
};

const Settings<FileWriterKeys>& file_writer_settings() {
  using W = FileWriterSettings;
  using Share = EventShare::Settings;
  using Files = storage::EventFileSequence::Settings;
  using File = storage::EventFileSettings;
  using Disk = storage::DirectFile::Settings;
  using Frame = formats::EventFrameSettings;
  using formats::ChecksumType;
  using formats::StatusPosition;
  constexpr SettingRules kBytes{.unit = Unit::bytes};
  static const Settings<FileWriterKeys> settings{
      setting(&W::queue, queue_settings()),
      setting(&W::files,
              {setting(&Files::directory, "directory", "Directory of the files; it is made if it does not exist.")}),
      setting(&W::wait_when_full, "full_queue", {{"wait", true}, {"skip", false}},
              "If the disk cannot keep up: wait (delays the run) or skip (fragments go on unwritten, and are counted)."),
      setting(&W::share, share_settings()),
      setting(&W::share, {setting(&Share::max_bytes, "max_bytes", "Most bytes written in a run. 0: no limit.", kBytes)}),
      setting(&W::files,
              {
                  setting(&Files::files,
                          {
                              setting(&File::max_bytes, "max_file_size",
                                      "A file is closed, and the next one begun, before it becomes larger than this; only a "
                                      "file with a single event may be larger. 0: no limit.",
                                      {.maximum = 1e15, .unit = Unit::bytes}),
                              setting(&File::max_blocks, "max_file_events",
                                      "A file is closed after this number of events. 0: no limit."),
                          }),
                  setting(&Files::disk,
                          {setting(&Disk::min_free_bytes, "min_free",
                                   "Space that stays free on the file system: the run stops cleanly before it is used.",
                                   kBytes)}),
              }),
      setting(&W::frame,
              {
                  setting(&Frame::event_checksum, "event_checksum",
                          {{"none", ChecksumType::none}, {"adler32", ChecksumType::adler32}},
                          "Checksum of each event's payload."),
                  setting(&Frame::rob_checksum, "rob_checksum",
                          {{"none", ChecksumType::none}, {"adler32", ChecksumType::adler32}}, "Checksum of each ROB."),
              }),
      setting(&W::compression_level, "compression",
              "zlib level of the payload, 1 (fast) to 9. 0: not compressed. More threads compress more.",
              {.minimum = 0, .maximum = 9}),
      setting(&W::frame, {setting(&Frame::status_position, "status_position",
                                  {{"before_data", StatusPosition::before_data}, {"after_data", StatusPosition::after_data}},
                                  "Place of the ROD's status words.")}),
      setting(
          &W::files,
          {
              setting(&Files::disk,
                      {setting(&Disk::direct, "direct_io", "Write past the page cache where the file system can.")}),
              setting(&Files::buffer_bytes, "buffer", "Size of a write.",
                      {.minimum = 65536, .maximum = 1 << 30, .unit = Unit::bytes}),
              setting(&Files::buffers, "buffers", "Buffers that may wait for the disk.", {.minimum = 2, .maximum = 1024}),
          }),
  };
  return settings;
}

}  // namespace

std::vector<Key> FileWriter::keys() { return file_writer_settings().keys(); }

std::unique_ptr<FragmentConsumer> FileWriter::create(const Parameters& parameters, const RunInfo& run) {
  FileWriterKeys settings;
  settings.frame = event_frame_settings(run);
  file_writer_settings().fill(settings, parameters);
  if (parameters.has("name")) settings.queue.name = parameters.text("name");
  settings.files.thread_name = settings.queue.name.substr(0, 12) + "-io";
  storage::EventFileSettings& file = settings.files.files;
  file.project = run.project;
  file.stream_type = run.stream_type;
  file.stream_name = run.stream_name;
  file.application = run.readout_name;
  file.lumi_block = run.lumi_block;
  file.run.run_number = run.run_number;
  file.free_strings = run.free_strings;
  file.provable = run.provable;
  return std::make_unique<FileWriter>(std::move(settings));
}

}  // namespace rodeo::readout
