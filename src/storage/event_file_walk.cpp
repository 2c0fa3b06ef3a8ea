#include "storage/event_file_walk.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "formats/checksum.h"
#include "formats/file_marks.h"
#include "formats/zlib_stream.h"

namespace rodeo::storage {

using namespace formats;

namespace {

constexpr std::uint64_t kReleaseBytes = 8 << 20;

}  // namespace

std::span<const std::byte> WalkedEvent::bytes(std::vector<std::byte>& buffer) const {
  if (!compressed_block) return stored;
  buffer = zlib_decompress_all(stored, kLargestEventBytes);
  return buffer;
}

EventFileWalk::EventFileWalk(std::string path, std::shared_ptr<const base::MappedFile> mapped, EventFileReader reader,
                             bool check)
    : path_(std::move(path)),
      mapped_(std::move(mapped)),
      reader_(std::move(reader)),
      header_(reader_.header()),
      check_(check) {}

Result<EventFileWalk> EventFileWalk::open(const std::string& path, bool check) {
  auto mapped = std::make_shared<base::MappedFile>(RODEO_TRY(base::MappedFile::open(path)));
  const std::span<const std::byte> file = mapped->bytes();
  if (const FileKind kind = file_kind(file); kind != FileKind::event_file)
    return std::unexpected(no_event_file(kind, file, path));
  const Decoded<EventFileReader> reader = EventFileReader::open(file);
  if (!reader) {
    return std::unexpected(
        Error{"data.header", reader.error().message(), path, "`rodeo data recover` saves the events that are whole"});
  }
  EventFileWalk walk(path, std::move(mapped), *reader, check);
  // A file that is still open, or was cut, is refused before its events are used.
  const auto end = file.size() < kFileEndBytes ? Decoded<FileEnd>(decode_error(DecodeFault::truncated, 0, "", 0))
                                               : decode_file_end(file.last(kFileEndBytes));
  const std::string_view digits = walk.header_.free_string(kCrcKey);
  walk.stored_crc_ = read_crc_digits(digits);
  if (!end || walk.stored_crc_ == std::optional(0U)) {
    return std::unexpected(Error{"data.not_closed", "the file was not closed, or was cut: it has no end record", path,
                                 "let its writer end, or save the whole events first: rodeo data recover " + path});
  }
  if (!walk.stored_crc_ && !walk.header_.free_string(kFormatKey).empty())
    return walk.damaged("the CRC-32 over the whole file is missing in a file that Rodeo wrote");
  return walk;
}

std::unexpected<Error> EventFileWalk::damaged(std::string what) const {
  return std::unexpected(
      Error{"data.damaged", std::move(what), path_, "save the whole events first: rodeo data recover " + path_});
}

// The digest has zeros in place of the CRC digits, which are in the header.
void EventFileWalk::digest_up_to(std::uint64_t position) {
  if (!stored_crc_) return;
  std::span<const std::byte> bytes = mapped_->bytes().subspan(digested_, position - digested_);
  if (digested_ == 0) {
    std::vector<std::byte> head(bytes.begin(), bytes.end());
    const std::size_t at = crc_digits_offset(bytes, header_);
    std::fill_n(head.begin() + static_cast<std::ptrdiff_t>(at), kCrcDigits, std::byte{'0'});
    crc_ = crc32(head);
  } else {
    crc_ = crc32(bytes, crc_);
  }
  digested_ = position;
}

// Keeps memory small during a walk through a large file.
void EventFileWalk::release_up_to(std::uint64_t position) {
  if (position < released_ + kReleaseBytes) return;
  mapped_->release_up_to(position);
  released_ = position;
}

Result<std::optional<WalkedEvent>> EventFileWalk::next() {
  if (ended_) return std::nullopt;
  if (digested_ == 0) digest_up_to(header_.size_bytes);
  const Decoded<std::optional<EventBlock>> next = reader_.next();
  RODEO_TRY(mapped_->check());
  if (!next) {
    ended_ = true;
    return damaged(next.error().message());
  }
  digest_up_to(reader_.position());
  release_up_to(reader_.position());
  if (!*next) {
    ended_ = true;
    if (reader_.position() != mapped_->bytes().size()) return damaged("bytes follow the end record");
    if (stored_crc_ && crc_ != *stored_crc_)
      return damaged("the CRC-32 over the whole file is wrong: some byte differs from what was written");
    return std::nullopt;
  }
  const EventBlock& block = **next;
  WalkedEvent event{.file = mapped_,
                    .number = block.number,
                    .offset = block.offset + kSeparatorBytes,
                    .stored = block.stored,
                    .compressed_block = header_.compressed_blocks()};
  const std::span<const std::byte> bytes = event.bytes(buffer_);
  const Decoded<FullEventView> view = decode_full_event(bytes);
  if (view) event.fields = *view;
  Findings findings;
  event.whole = view.has_value();
  if (!view) {
    event.damage = view.error().message();
  } else if (check_ && !checker_.check(bytes, event.offset, fmt::format("event {}", event.number), findings)) {
    event.whole = false;
    event.damage = findings.listed().front().what;
  }
  return event;
}

}  // namespace rodeo::storage
