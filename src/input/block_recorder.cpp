#include "input/block_recorder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/thread.h"
#include "formats/block_encoder.h"
#include "formats/fid.h"

namespace rodeo::input {
namespace {

constexpr std::size_t kFileBuffer = 1U << 20;

// Writes blocks to FILE.part, which becomes FILE when all is written.
class RecordingFile {
 public:
  static Result<RecordingFile> create(const std::filesystem::path& path) {
    if (std::filesystem::exists(path)) {
      return std::unexpected(
          Error{"file.exists", "a file of this name already exists", path.string(), "move it away, or give another name"});
    }
    RecordingFile file;
    file.path_ = path;
    file.part_ = path.string() + ".part";
    file.file_.reset(std::fopen(file.part_.c_str(), "wb"));
    if (file.file_ == nullptr) {
      return std::unexpected(Error{"file.open", fmt::format("cannot make the recording: {}", std::strerror(errno)),
                                   file.part_.string(), "name an existing directory that you may write to"});
    }
    std::setvbuf(file.file_.get(), nullptr, _IOFBF, kFileBuffer);
    return file;
  }

  RecordingFile(RecordingFile&&) = default;
  RecordingFile& operator=(RecordingFile&&) = delete;
  ~RecordingFile() {
    if (file_ == nullptr) return;
    file_.reset();
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);
  }

  void write(std::span<const std::byte> block) {
    if (failed_ == 0 && std::fwrite(block.data(), 1, block.size(), file_.get()) != block.size()) failed_ = errno;
    ++blocks_;
  }

  /// The final path of the file.
  Result<std::filesystem::path> close(bool part) {
    if (failed_ == 0 && std::fflush(file_.get()) != 0) failed_ = errno;
    if (failed_ == 0 && ::fsync(::fileno(file_.get())) != 0) failed_ = errno;
    std::error_code renamed;
    if (failed_ == 0) {
      file_.reset();
      if (part) return part_;
      std::filesystem::rename(part_, path_, renamed);
      if (!renamed) return path_;
      failed_ = renamed.value();
    }
    return std::unexpected(
        Error{"file.write", fmt::format("cannot write the recording: {}", std::strerror(failed_)), path_.string()});
  }

  bool failed() const { return failed_ != 0; }
  std::uint64_t blocks() const { return blocks_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  RecordingFile() = default;

  std::filesystem::path path_;
  std::filesystem::path part_;
  std::unique_ptr<std::FILE, Close> file_;
  int failed_ = 0;
  std::uint64_t blocks_ = 0;
};

// Blocks of one E-link: filled one after the other, written when full.
class ElinkWriter {
 public:
  ElinkWriter(const formats::BlockFormat& format, std::uint16_t elink)
      : encoder_(format, elink), block_(std::make_unique<std::byte[]>(format.block_bytes)), bytes_(format.block_bytes) {}

  void add(std::span<const std::byte> chunk, std::uint8_t status, RecordingFile& file) {
    while (!encoder_.push(chunk, status)) {
      write(file);
      encoder_.begin({block_.get(), bytes_});
      begun_ = true;
    }
    if (encoder_.full()) write(file);
  }

  // A last block that is not full ends with a time-out trailer, as on a card.
  void finish(RecordingFile& file) {
    if (!encoder_.full()) encoder_.timeout();
    write(file);
  }

 private:
  void write(RecordingFile& file) {
    if (begun_) file.write({block_.get(), bytes_});
    begun_ = false;
  }

  formats::BlockEncoder encoder_;
  std::unique_ptr<std::byte[]> block_;
  std::size_t bytes_;
  bool begun_ = false;
};

Result<std::vector<ElinkWriter>> writers_for(std::span<const Fid> links, const formats::BlockFormat& format) {
  std::vector<ElinkWriter> writers;
  std::vector<bool> taken(formats::kCardElinks);
  for (const Fid fid : links) {
    const auto elink = formats::card_elink_of(fid);
    const bool same_card = fid.detector() == links.front().detector() && fid.connector() == links.front().connector();
    if (!elink || !same_card || taken[*elink]) {
      return std::unexpected(
          Error{"readout.recording_links",
                fmt::format("link {} cannot be in one recording with the others: a block names its link by the number "
                            "on one card, below {}",
                            formats::to_text(fid), formats::kCardElinks),
                {},
                "record the links of one card (one detector and connector id), 192 in GBT mode"});
    }
    taken[*elink] = true;
    writers.emplace_back(format, *elink);
  }
  return writers;
}

std::uint64_t add_page(const Page& page, std::span<ElinkWriter> writers, RecordingFile& file) {
  std::uint64_t chunks = 0;
  for (const ChunkRun& run : page.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) writers[run.link].add(run.chunk(i), run.chunk_status(i), file);
    chunks += run.count;
  }
  return chunks;
}

}  // namespace

Result<RecordingSummary> record_blocks(DataInput& input, const std::filesystem::path& path,
                                       const RecordingSettings& settings, const std::function<bool()>& stop) {
  const std::span<const Fid> links = input.links();
  auto writers = RODEO_TRY(writers_for(links, settings.format));
  auto file = RODEO_TRY(RecordingFile::create(path));

  const std::unique_ptr<DataStream> data = input.open(links);
  std::unique_ptr<DataStream> list;
  std::vector<ElinkWriter> list_writer;
  if (settings.trigger_elink) {
    list = input.open_trigger_list();
    if (list == nullptr)
      return std::unexpected(Error{"readout.recording_links", "this input has no trigger list to record", {}, {}});
    for (const Fid fid : links) {
      if (formats::card_elink_of(fid) != settings.trigger_elink) continue;
      return std::unexpected(Error{
          "readout.recording_links",
          fmt::format("E-link {} of the trigger list belongs to link {}", *settings.trigger_elink, formats::to_text(fid)),
          {},
          {}});
    }
    list_writer.emplace_back(settings.format, *settings.trigger_elink);
  }
  input.start();

  RecordingSummary summary{.links = links.size()};
  base::Backoff backoff;
  bool stopped = false;
  bool list_ended = list == nullptr;
  bool data_ended = false;
  const auto take = [&](DataStream& stream, std::span<ElinkWriter> to, bool& ended, std::uint64_t& chunks) {
    Page* page = nullptr;
    const PollStatus status = ended ? PollStatus::end : stream.poll(page);
    ended = status == PollStatus::end;
    if (status != PollStatus::page) return false;
    chunks += add_page(*page, to, file);
    page->drop();
    return true;
  };
  std::uint64_t packets = 0;
  const auto take_list = [&] { return list != nullptr && take(*list, list_writer, list_ended, packets); };
  const auto take_data = [&] { return take(*data, writers, data_ended, summary.chunks); };
  while (!data_ended || !list_ended) {
    // Record in the order of time, as a card sends data: first the stream that is behind; the other one if the first has no
    // data.
    const bool list_first = list != nullptr && list->clock_ns() <= data->clock_ns();
    const bool any = list_first ? take_list() || take_data() : take_data() || take_list();
    const bool enough = settings.chunks != 0 && summary.chunks >= settings.chunks;
    if (!stopped && (file.failed() || enough || (stop && stop()))) {
      input.stop();
      stopped = true;
      summary.part = settings.ends && !enough && !(data_ended && list_ended);
    }
    any ? backoff.reset() : backoff.idle();
  }
  for (ElinkWriter& writer : list_writer) writer.finish(file);
  for (ElinkWriter& writer : writers) writer.finish(file);
  if (file.blocks() == 0) {
    return std::unexpected(Error{"readout.no_chunks", "the input has delivered no chunk, so nothing is recorded",
                                 path.string(), "check what the input delivers: rate, events, occupancy, links"});
  }
  summary.file = RODEO_TRY(file.close(summary.part));
  summary.blocks = file.blocks();
  summary.bytes = summary.blocks * settings.format.block_bytes;
  return summary;
}

}  // namespace rodeo::input
