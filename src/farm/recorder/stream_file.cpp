#include "farm/recorder/stream_file.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace rodeo::farm {

std::uint32_t next_file_number(const std::filesystem::path& directory, const std::string& core_name) {
  const std::string prefix = core_name + "._";
  std::uint32_t last = 0;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with('.')) name.erase(0, 1);  // Hidden files have the ids of files that were moved away.
    if (!name.starts_with(prefix)) continue;
    std::uint32_t number = 0;
    const char* const digits = name.data() + prefix.size();
    if (std::from_chars(digits, name.data() + name.size(), number).ptr != digits) last = std::max(last, number);
  }
  return last + 1;
}

storage::EventFileSequence::Settings sequence_settings(const FileSettings& settings, const std::string& recorder,
                                                       std::uint32_t run_number, const formats::RecordStream& stream,
                                                       std::uint32_t lumi_block) {
  storage::EventFileSequence::Settings out;
  out.directory = settings.directory;
  out.files.project = settings.project;
  out.files.stream_type = stream.type;
  out.files.stream_name = stream.name;
  out.files.application = recorder;
  out.files.lumi_block = lumi_block;
  out.files.run.run_number = run_number;
  out.files.max_blocks = settings.max_file_events;
  out.files.max_bytes = settings.max_file_bytes;
  out.files.free_strings = {std::string(formats::kWholeEventsKey) + "=whole", formats::IdsMark{}.text()};
  out.files.provable = formats::ProvableMark::parse(settings.payload);
  out.disk.direct = settings.direct;
  // Many sequences are open at a time, so each reserves only the space that it can use.
  if (settings.max_file_bytes > 0) out.disk.reserve_step = std::min(out.disk.reserve_step, settings.max_file_bytes);
  out.disk.min_free_bytes = settings.min_free_bytes;
  out.buffer_bytes = settings.buffer_bytes;
  out.buffers = settings.buffers;
  out.thread_name = "record-io";
  out.when_full = "free space there, or give the recorder another `directory` or a smaller `min_free`";
  out.keep_only_safe = true;  // The node sends the rest to another recorder, or to this one again.
  out.first_file_number = next_file_number(settings.directory, storage::core_file_name(out.files));
  return out;
}

StreamFile::StreamFile(storage::EventFileSequence::Settings settings) : files_(std::move(settings)) { files_.start(); }

bool StreamFile::append(std::span<const std::span<const std::byte>> pieces, std::size_t bytes, Waiter waiter,
                        std::uint64_t now_ns) {
  if (files_.append(pieces, bytes) != storage::EventFileSequence::Outcome::taken) return false;
  waiting_.push_back(waiter);
  if (appended_ == flushed_) oldest_unflushed_ns_ = now_ns;
  ++appended_;
  unflushed_bytes_ += bytes;
  last_append_ns_ = now_ns;
  return true;
}

void StreamFile::flush_if_due(const FileSettings& settings, std::uint64_t now_ns) {
  if (appended_ == flushed_ || files_.safe_events() < flushed_) return;
  const bool waited = now_ns - oldest_unflushed_ns_ >= static_cast<std::uint64_t>(settings.sync_interval.count());
  const bool wanted = settings.sync == SyncPolicy::each || waited ||
                      (settings.sync == SyncPolicy::by_bytes && unflushed_bytes_ >= settings.sync_bytes);
  if (!wanted || !files_.flush()) return;
  flushed_ = appended_;
  unflushed_bytes_ = 0;
}

}  // namespace rodeo::farm
