// Event files as sequences of events.
#include <sys/stat.h>

#include <fmt/format.h>

#include "data_file.h"
#include "formats/file_marks.h"
#include "storage/event_places.h"

namespace rodeo::python::data {
namespace {

using namespace formats;

constexpr std::string_view kWriting = ".writing";

/// Identifies a file, even after it is renamed.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

std::optional<FileId> id_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

class EventDataFile final : public DataFile {
 public:
  EventDataFile(std::string path, std::shared_ptr<const base::MappedFile> mapped, const FileOptions& options,
                storage::EventPlaces places)
      : DataFile(std::move(path), std::move(mapped)),
        places_(std::move(places)),
        keep_index_(options.keep_index),
        between_(options.between) {
    checks_.checksums = options.checksums;
    // The content of the ROD data is known only for Rodeo's own events.
    checks_.chunk_records = !header()->free_string(kFormatKey).empty() && header()->free_string(kFormatKey) != "0";
    id_ = id_of(path_);
    if (keep_index_) indexed_ = places_.load(path_);
  }

  const char* kind() const override { return "events"; }
  bool has(std::size_t i) override { return places_.has(i); }

  std::size_t count(bool random) override {
    constexpr std::size_t kStep = 1 << 15;
    while (places_.has(places_.found().size() + kStep)) between_();
    const std::size_t count = places_.count();
    check_pages();
    if (random && keep_index_ && !indexed_ && closed()) {
      indexed_ = true;  // this is tried only once
      places_.keep(path_);
    }
    return count;
  }

  std::shared_ptr<EventParts> event(std::size_t i) override {
    auto parts = std::make_shared<EventParts>();
    parts->index = i;
    parts->offset = places_[i].offset();
    parts->path = path_;
    parts->memory = mapped_;
    parts->raw = block(i, parts->block);
    const Decoded<void> whole = parts->take_apart(checks_);
    check_pages();
    if (!whole) throw damaged(i, whole.error());
    return parts;
  }

  void append(std::size_t i, std::uint64_t index, std::uint32_t file, Columns& columns) override {
    const std::span<const std::byte> bytes = block(i, block_);
    columns.begin(index, file);
    const Decoded<void> whole = walk_event(bytes, checks_, plain_, columns);
    if (!whole) {
      columns.undo();
      check_pages();
      throw damaged(i, whole.error());
    }
    columns.end();
  }

  std::vector<std::size_t> find(std::uint32_t l1id) override {
    std::vector<std::size_t> found;
    const std::size_t events = count(true);
    for (std::size_t i = 0; i < events; ++i) {
      if (places_[i].l1id == l1id && !places_[i].damaged()) found.push_back(i);
    }
    return found;
  }

  std::optional<Fault> fault() const override {
    if (!places_.damage() || path_.ends_with(kWriting)) return std::nullopt;
    const DecodeError& error = *places_.damage();
    return Fault{.error = {"data.damaged",
                           fmt::format("byte {}: the file ends early or is damaged here: {}", error.offset, error.what()),
                           path_, "events before it are whole; save what follows, if there is any: rodeo data recover FILE"},
                 .path = path_,
                 .offset = error.offset};
  }

  void grow() override {
    if (closed()) return;
    // The writer renames the file at the end.
    std::string now = path_;
    if (id_of(now) != id_ && now.ends_with(kWriting)) {
      now.resize(now.size() - kWriting.size());
      if (id_of(now) != id_) now += ".data";
      if (id_of(now) != id_) return;
    } else if (id_of(now) != id_) {
      return;
    }
    auto opened = base::MappedFile::open(now, base::MappedFile::Access::random);
    if (!opened) throw FaultError({.error = opened.error(), .path = now});
    mapped_ = std::make_shared<const base::MappedFile>(*std::move(opened));
    path_ = now;
    places_.go_on(mapped_->bytes());
  }
  bool closed() const override { return places_.end().has_value(); }
  bool last_of_sequence() const override { return closed() && places_.end()->last_file == 1; }

  const DecodedFileHeader* header() const override { return &places_.header(); }
  const FileEnd* end() const override { return closed() ? &*places_.end() : nullptr; }

 private:
  std::span<const std::byte> block(std::size_t i, std::vector<std::byte>& buffer) const { return places_.event(i, buffer); }

  FaultError damaged(std::size_t i, const DecodeError& error) const {
    const storage::EventPlaces& places = places_;
    std::optional<std::uint32_t> l1id;
    if (!places[i].damaged()) l1id = places[i].l1id;
    const std::string name = l1id ? fmt::format("event {} (L1 id {:#010x})", i, *l1id) : fmt::format("event {}", i);
    return FaultError({.error = {"data.damaged", fmt::format("{}, byte {}: {}", name, error.offset, error.what()), path_,
                                 "read with damaged=\"skip\" to leave out such events; they are then listed in .errors"},
                       .path = path_,
                       .event = i,
                       .offset = places[i].offset(),
                       .l1id = l1id});
  }

  storage::EventPlaces places_;
  EventChecks checks_;
  bool keep_index_;
  std::function<void()> between_;
  bool indexed_ = false;
  std::optional<FileId> id_;
  std::vector<std::byte> block_;
  std::vector<std::byte> plain_;
};

}  // namespace

std::unique_ptr<DataFile> open_event_file(std::string path, std::shared_ptr<const base::MappedFile> mapped,
                                          const FileOptions& options) {
  auto places = storage::EventPlaces::open(mapped->bytes());
  if (!places) {
    const DecodeError& error = places.error();
    throw FaultError({.error = {"data.header", "the records at the start of the file are damaged: " + error.message(), path,
                                "save its events: rodeo data recover FILE"},
                      .path = path,
                      .offset = error.offset});
  }
  return std::make_unique<EventDataFile>(std::move(path), std::move(mapped), options, *std::move(places));
}

}  // namespace rodeo::python::data
