// Recordings of FELIX blocks and dumps of RDH pages as sequences of events: chunks with one L1 id, or heartbeat frames of one orbit.
#include <algorithm>
#include <array>
#include <bitset>
#include <map>

#include <fmt/format.h>

#include "data_file.h"
#include "formats/block_decoder.h"
#include "formats/rdh.h"
#include "formats/rdh_frame_decoder.h"
#include "formats/recording_info.h"
#include "formats/superpage_dump.h"
#include "input/recorded_ids.h"

namespace rodeo::python::data {
namespace {

using namespace formats;

/// A chunk in the table of a recording.
struct RecordedChunk {
  std::uint64_t event = 0;  ///< order of the events: L1 id, going on where its bits wrap; then its number
  std::uint64_t at = 0;     ///< in the file, or in the memory of joined chunks
  std::uint32_t size = 0;
  std::uint16_t link = 0;
  std::uint8_t status = 0;
  bool joined = false;
};

/// L1 ids of a link as numbers that go on where the bits wrap. Each is taken for the one that is nearest to the id before it.
class Unwrapped {
 public:
  explicit Unwrapped(std::uint32_t bits) : bits_(bits) {}
  std::int64_t operator()(std::uint32_t id, std::int64_t near) const {
    const std::int64_t period = std::int64_t{1} << bits_;
    std::int64_t step = (static_cast<std::int64_t>(id) - near) & (period - 1);
    if (step >= period / 2) step -= period;
    return near + step;
  }

 private:
  std::uint32_t bits_;
};

/// Takes chunks in the order of the file, and groups them in the end.
class RecordingTable {
 public:
  RecordingTable(std::span<const std::byte> file, std::uint32_t id_bits) : file_(file), unwrapped_(id_bits) {}

  void add(std::uint16_t link, std::uint8_t status, std::span<const std::byte> bytes, std::optional<std::uint32_t> id) {
    RecordedChunk chunk{.size = static_cast<std::uint32_t>(bytes.size()), .link = link, .status = status};
    const bool in_file = bytes.data() >= file_.data() && bytes.data() < file_.data() + file_.size();
    chunk.joined = !in_file && !bytes.empty();
    chunk.at = chunk.joined ? joined.size() : bytes.empty() ? 0 : static_cast<std::uint64_t>(bytes.data() - file_.data());
    if (chunk.joined) joined.insert(joined.end(), bytes.begin(), bytes.end());
    if (!id) {
      ++without_id;
      return;
    }
    const auto last = last_.find(link);
    const std::int64_t number = unwrapped_(*id, last == last_.end() ? newest_ : last->second);
    last_[link] = newest_ = number;
    chunk.event = static_cast<std::uint64_t>(number) + kZero;
    chunks.push_back(chunk);
  }

  /// Events in the order of their ids, the chunks of each in the order of links.
  void group() {
    std::ranges::stable_sort(chunks, {}, [](const RecordedChunk& chunk) { return std::pair(chunk.event, chunk.link); });
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (i == 0 || chunks[i].event != chunks[i - 1].event) begins.push_back(i);
    }
    begins.push_back(chunks.size());
    last_.clear();
  }

  std::vector<RecordedChunk> chunks;
  std::vector<std::size_t> begins;  ///< of each event, and the end of the last one
  std::vector<std::byte> joined;
  std::uint64_t without_id = 0;

 private:
  static constexpr std::uint64_t kZero = std::uint64_t{1} << 62;  // ids may wrap downwards at the begin
  std::span<const std::byte> file_;
  Unwrapped unwrapped_;
  std::map<std::uint16_t, std::int64_t> last_;
  std::int64_t newest_ = 0;
};

class RecordingDataFile final : public DataFile {
 public:
  RecordingDataFile(std::string path, std::shared_ptr<const base::MappedFile> mapped, const char* kind, RecordingTable table,
                    std::optional<Error> damage, std::uint32_t id_bits)
      : DataFile(std::move(path), std::move(mapped)),
        kind_(kind),
        table_(std::make_shared<const RecordingTable>(std::move(table))),
        damage_(std::move(damage)),
        id_mask_(id_bits >= 32 ? ~0U : (1U << id_bits) - 1) {
    check_pages();
  }

  const char* kind() const override { return kind_; }
  bool has(std::size_t i) override { return i + 1 < table_->begins.size(); }
  std::size_t count(bool /*random*/) override { return table_->begins.size() - 1; }

  std::shared_ptr<EventParts> event(std::size_t i) override {
    const auto chunks = chunks_of(i);
    auto parts = std::make_shared<EventParts>();
    parts->index = i;
    parts->path = path_;
    parts->memory = mapped_;
    parts->fields.l1id = l1id(i);
    parts->scattered = true;
    FragmentParts fragment{.l1id = l1id(i).value, .payload = mapped_->bytes(), .rows = chunks.size()};
    const bool in_place = std::ranges::none_of(chunks, &RecordedChunk::joined);
    if (!in_place) {
      for (const RecordedChunk& chunk : chunks) {
        const auto bytes = bytes_of(chunk);
        parts->plain.insert(parts->plain.end(), bytes.begin(), bytes.end());
      }
      fragment.payload = parts->plain;
    }
    std::uint64_t at = 0;
    for (const RecordedChunk& chunk : chunks) {
      parts->rows.push_back({static_cast<std::int64_t>(in_place ? chunk.at : at), chunk.size, chunk.link, chunk.status});
      at += chunk.size;
    }
    parts->offset = chunks.front().joined ? 0 : chunks.front().at;
    parts->fragments.push_back(std::move(fragment));
    check_pages();
    return parts;
  }

  void append(std::size_t i, std::uint64_t index, std::uint32_t file, Columns& columns) override {
    columns.begin(index, file);
    const auto chunks = chunks_of(i);
    std::size_t bytes = 0;
    for (const RecordedChunk& chunk : chunks) bytes += chunk.size;
    EventFields fields;
    fields.l1id = l1id(i);
    columns.event(fields, 0, bytes);
    columns.fragment(0, l1id(i).value, bytes);
    for (const RecordedChunk& chunk : chunks) columns.chunk(chunk.link, chunk.status, bytes_of(chunk));
    columns.end();
  }

  std::vector<std::size_t> find(std::uint32_t wanted) override {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; has(i); ++i) {
      if (l1id(i).value == wanted) found.push_back(i);
    }
    return found;
  }

  std::optional<Fault> fault() const override {
    if (!damage_) return std::nullopt;
    return Fault{.error = *damage_, .path = path_};
  }

 private:
  std::span<const RecordedChunk> chunks_of(std::size_t i) const {
    return std::span(table_->chunks).subspan(table_->begins[i], table_->begins[i + 1] - table_->begins[i]);
  }
  L1Id l1id(std::size_t i) const { return {static_cast<std::uint32_t>(table_->chunks[table_->begins[i]].event) & id_mask_}; }
  std::span<const std::byte> bytes_of(const RecordedChunk& chunk) const {
    return (chunk.joined ? std::span<const std::byte>(table_->joined) : mapped_->bytes()).subspan(chunk.at, chunk.size);
  }

  const char* kind_;
  std::shared_ptr<const RecordingTable> table_;
  std::optional<Error> damage_;
  std::uint32_t id_mask_;
};

std::optional<Error> damage_of(std::string list, const std::string& path) {
  if (list.empty()) return std::nullopt;
  return Error{"data.damaged", "the recording is damaged: " + list, path,
               "`rodeo data verify` says where; read with damaged=\"skip\" for what is whole"};
}

void name(std::string& list, std::uint64_t count, std::string_view what) {
  if (count > 0) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, what);
}

}  // namespace

std::unique_ptr<DataFile> open_block_recording(std::string path, std::shared_ptr<const base::MappedFile> mapped,
                                               const FileOptions& options) {
  const auto file = mapped->bytes();
  const auto format = detect_block_format(file);
  if (!format) {
    Error error = format.error();
    error.where = path;
    throw FaultError({.error = std::move(error), .path = path});
  }
  const auto blocks = file.first(file.size() / format->block_bytes * format->block_bytes);
  const auto elinks = elinks_of(blocks, *format);
  const input::L1IdField field{.offset = options.l1id_offset, .bits = options.l1id_bits};
  constexpr std::size_t kBlocksAtOnce = 16;
  // How long chunks are is not known before they are read: where one is too long for the memory, all is read again with more.
  constexpr std::uint32_t kMore = 16;
  for (std::uint64_t longest = 64 * 1024;; longest *= kMore) {
    const std::uint64_t most = std::min<std::uint64_t>({longest, file.size(), UINT32_MAX});
    BlockDecoder decoder({.format = *format, .max_chunk_bytes = static_cast<std::uint32_t>(most)}, elinks);
    DecodeBuffer buffer(decoder.capacity_for(kBlocksAtOnce) + decoder.capacity_for(0));
    RecordingTable table(blocks, options.l1id_bits);
    const auto take = [&] {
      for (const ChunkRun& run : buffer.runs()) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          const auto bytes = run.chunk(i);
          table.add(elinks[run.link], run.chunk_status(i), bytes,
                    field.in(bytes) ? std::optional(field.read(bytes)) : std::nullopt);
        }
      }
      buffer.clear();
    };
    std::size_t calls = 0;
    for (std::size_t at = 0; at < blocks.size();) {
      if (++calls % 1024 == 0) options.between();
      at += decoder.decode(blocks.subspan(at, std::min(kBlocksAtOnce * format->block_bytes, blocks.size() - at)), buffer);
      take();
    }
    decoder.finish(buffer);
    take();
    if (decoder.counters().read(BlockCounter::oversize) != 0 && most == longest) continue;
    table.group();
    std::string list;
    for (std::size_t i = 0; i < kBlockCounters; ++i) {
      const auto counter = static_cast<BlockCounter>(i);
      if (is_anomaly(counter) || counter == BlockCounter::unfinished)
        name(list, decoder.counters().read(counter), kBlockCounterInfo[i].help);
    }
    name(list, file.size() - blocks.size(), "bytes behind the last whole block");
    name(list, table.without_id, "chunks too short for an L1 id");
    return std::make_unique<RecordingDataFile>(path, std::move(mapped), "felix blocks", std::move(table),
                                               damage_of(std::move(list), path), options.l1id_bits);
  }
}

std::unique_ptr<DataFile> open_page_dump(std::string path, std::shared_ptr<const base::MappedFile> mapped) {
  const auto file = mapped->bytes();
  std::bitset<256> seen;
  for_each_page(file, [&](std::size_t at) {
    seen.set(Rdh::read(file.data() + at).link_id());
    return true;
  });
  std::vector<std::uint8_t> links;
  for (std::size_t link = 0; link < seen.size(); ++link) {
    if (seen.test(link)) links.push_back(static_cast<std::uint8_t>(link));
  }
  if (links.empty()) {
    throw FaultError({.error = {"data.no_page", "the dump has no page with a header: its bytes belong to no event", path,
                                "it is what a CRU's internal generator sends; `rodeo data verify` checks it"},
                      .path = path});
  }
  constexpr std::uint32_t kLongestFrame = 8 << 20;
  RdhFrameDecoder decoder({.max_chunk_bytes = kLongestFrame}, links);
  DecodeBuffer buffer(decoder.room() + decoder.finish_room());
  RecordingTable table(file, 32);
  const auto take = [&] {
    for (const ChunkRun& run : buffer.runs()) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto bytes = run.chunk(i);
        table.add(links[run.link], run.chunk_status(i), bytes,
                  bytes.size() >= kRdhBytes ? std::optional(Rdh::read(bytes.data()).orbit()) : std::nullopt);
      }
    }
    buffer.clear();
  };
  // Pages of one link that follow each other are taken for a superpage.
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint8_t link = 0;
  std::uint64_t skipped = 0;
  const auto decode = [&] {
    const auto superpage = file.subspan(begin, end - begin);
    for (std::size_t from = 0; from < superpage.size();) {
      from += decoder.decode(link, superpage, from, buffer);
      take();
    }
  };
  for_each_page(file, [&](std::size_t at) {
    const Rdh page = Rdh::read(file.data() + at);
    if (at != end || page.link_id() != link || end == 0) {
      decode();
      skipped += at - end;
      begin = at;
      link = static_cast<std::uint8_t>(page.link_id());
    }
    end = std::min<std::size_t>(at + page.offset_next(), file.size());
    return true;
  });
  decode();
  skipped += file.size() - end;
  decoder.finish(buffer);
  take();
  table.group();
  std::string list;
  for (std::size_t i = 0; i < kRdhFrameCounters; ++i) {
    const auto counter = static_cast<RdhFrameCounter>(i);
    if (is_anomaly(counter) && counter != RdhFrameCounter::skipped_bytes)
      name(list, decoder.counters().read(counter), kRdhFrameCounterInfo[i].help);
  }
  name(list, skipped, "bytes that are in no page");
  return std::make_unique<RecordingDataFile>(path, std::move(mapped), "rdh pages", std::move(table),
                                             damage_of(std::move(list), path), 32);
}

}  // namespace rodeo::python::data
