// Recordings of FELIX blocks and dumps of RDH pages as sequences of events: chunks with one L1 id, or heartbeat frames of
// one orbit.
#include <algorithm>

#include <fmt/format.h>

#include "data_file.h"
#include "storage/recorded_events.h"

namespace rodeo::python::data {
namespace {

using namespace formats;

class RecordingDataFile final : public DataFile {
 public:
  /// `before`: the state of the file before its table was made; nullopt: the table is from the index, or no index is kept.
  RecordingDataFile(std::string path, std::shared_ptr<const base::MappedFile> mapped, const char* kind, RecordingTable table,
                    const L1IdField& field, std::optional<storage::FileState> before)
      : DataFile(std::move(path), std::move(mapped)), kind_(kind), table_(std::move(table)), field_(field), before_(before) {
    number_events();
    check_pages();
  }

  const char* kind() const override { return kind_; }
  bool has(std::size_t i) override { return i < table_.events.size(); }
  std::size_t count(bool random) override {
    if (random && before_) {
      storage::keep_recording_index(path_, mapped_->bytes(), field_, *before_, table_);
      before_.reset();  // this is tried only once
    }
    return table_.events.size();
  }

  std::shared_ptr<EventParts> event(std::size_t i) override {
    const auto pieces = table_.pieces_of(i);
    auto parts = std::make_shared<EventParts>();
    parts->index = i;
    parts->path = path_;
    parts->memory = mapped_;
    parts->fields.l1id = l1id(i);
    parts->fields.global_id = global_ids_[i];
    parts->scattered = true;
    const bool in_place = std::ranges::none_of(pieces, [](const RecordedPiece& piece) { return piece.more != 0; });
    std::size_t begin = 0;  // begin of the chunk, if chunks are copied
    for (const RecordedPiece& piece : pieces) {
      if (in_place) {
        touch(piece);
      } else {
        append_to(parts->plain, piece);
      }
      if (piece.more != 0) continue;
      const std::size_t size = in_place ? piece.bytes : parts->plain.size() - begin;
      parts->rows.push_back({static_cast<std::int64_t>(in_place ? piece.place : begin), static_cast<std::uint32_t>(size),
                             piece.link, piece.status});
      begin = parts->plain.size();
    }
    parts->offset = pieces.front().place;
    parts->fragments.push_back({.l1id = l1id(i).value,
                                .payload = in_place ? mapped_->bytes() : std::span<const std::byte>(parts->plain),
                                .rows = parts->rows.size()});
    check_pages();
    return parts;
  }

  void append(std::size_t i, std::uint64_t index, std::uint32_t file, Columns& columns) override {
    columns.begin(index, file);
    const auto pieces = table_.pieces_of(i);
    std::size_t bytes = 0;
    for (const RecordedPiece& piece : pieces) bytes += piece.bytes;
    EventFields fields;
    fields.l1id = l1id(i);
    fields.global_id = global_ids_[i];
    columns.event(fields, 0, bytes);
    columns.fragment(0, l1id(i).value, bytes);
    joined_.clear();
    for (const RecordedPiece& piece : pieces) {
      if (piece.more != 0 || !joined_.empty()) append_to(joined_, piece);
      if (piece.more != 0) continue;
      columns.chunk(piece.link, piece.status, joined_.empty() ? bytes_of(piece) : joined_);
      joined_.clear();
    }
    if (!mapped_->check()) columns.undo();
    check_pages();
    columns.end();
  }

  std::vector<std::size_t> find(std::uint32_t wanted) override {
    std::vector<std::size_t> found;
    const std::size_t events = count(true);
    for (std::size_t i = 0; i < events; ++i) {
      if (table_.events[i].l1id == wanted) found.push_back(i);
    }
    return found;
  }

  std::optional<Fault> fault() const override {
    if (table_.damage.empty()) return std::nullopt;
    return Fault{.error = {"data.damaged", "the recording is damaged: " + table_.damage, path_,
                           "`rodeo data verify` shows where; read with damaged=\"skip\" to get whole events"},
                 .path = path_};
  }

 private:
  // Events are in order: when the bits of the L1 id wrap, the global ids continue.
  void number_events() {
    global_ids_.reserve(table_.events.size());
    for (std::size_t i = 0; i < table_.events.size(); ++i) {
      const std::uint32_t step = i == 0 ? l1id(0).value : (l1id(i).value - l1id(i - 1).value) & field_.mask();
      global_ids_.push_back(i == 0 ? step : global_ids_.back() + step);
    }
  }
  L1Id l1id(std::size_t i) const { return {table_.events[i].l1id}; }
  std::span<const std::byte> bytes_of(const RecordedPiece& piece) const {
    return mapped_->bytes().subspan(piece.place, piece.bytes);
  }
  /// Reads the last byte, so that check_pages() notices if the file no longer has it.
  void touch(const RecordedPiece& piece) const {
    if (piece.bytes > 0) (void)*static_cast<const volatile std::byte*>(&bytes_of(piece).back());
  }
  void append_to(std::vector<std::byte>& memory, const RecordedPiece& piece) const {
    const auto bytes = bytes_of(piece);
    memory.insert(memory.end(), bytes.begin(), bytes.end());
  }

  const char* kind_;
  RecordingTable table_;
  std::vector<std::uint64_t> global_ids_;
  L1IdField field_;
  std::optional<storage::FileState> before_;
  std::vector<std::byte> joined_;
};

/// Takes the table from the index, or reads the whole file.
template <typename Read>
std::unique_ptr<DataFile> open_recording(const std::string& path, std::shared_ptr<const base::MappedFile> mapped,
                                         const char* kind, const L1IdField& field, bool keep_index, Read&& read) {
  if (keep_index) {
    if (auto table = storage::load_recording_index(path, mapped->bytes(), field)) {
      return std::make_unique<RecordingDataFile>(path, std::move(mapped), kind, *std::move(table), field, std::nullopt);
    }
  }
  const auto before = keep_index ? storage::state_of(path) : std::nullopt;
  Result<RecordingTable> table = read();
  if (!table) {
    Error error = table.error();
    error.where = path;
    throw FaultError({.error = std::move(error), .path = path});
  }
  return std::make_unique<RecordingDataFile>(path, std::move(mapped), kind, *std::move(table), field, before);
}

}  // namespace

std::unique_ptr<DataFile> open_block_recording(const std::string& path, std::shared_ptr<const base::MappedFile> mapped,
                                               const FileOptions& options) {
  const L1IdField field{.offset = options.l1id_offset, .bits = options.l1id_bits};
  const auto file = mapped->bytes();
  return open_recording(path, std::move(mapped), "felix blocks", field, options.keep_index,
                        [&] { return storage::read_block_recording(file, field, options.between); });
}

std::unique_ptr<DataFile> open_page_dump(const std::string& path, std::shared_ptr<const base::MappedFile> mapped,
                                         const FileOptions& options) {
  const auto file = mapped->bytes();
  return open_recording(path, std::move(mapped), "rdh pages", {}, options.keep_index,
                        [&] { return storage::read_page_dump(file, options.between); });
}

}  // namespace rodeo::python::data
