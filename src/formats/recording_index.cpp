#include "formats/recording_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "formats/checksum.h"
#include "formats/words.h"

namespace rodeo::formats {

using enum DecodeFault;

namespace {

constexpr std::uint32_t kMarker = 0x1234eebb;
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kEndBytes = 64 * 1024;

// The head in the format of the file.
struct Head {
  std::uint32_t marker = kMarker;
  std::uint32_t version = kVersion;
  std::uint64_t file_bytes = 0;
  std::int64_t modified_ns = 0;
  std::uint32_t ends_crc = 0;
  std::uint32_t l1id_offset = 0;
  std::uint32_t l1id_bits = 0;
  std::uint32_t damage_bytes = 0;
  std::uint64_t events = 0;
  std::uint64_t pieces = 0;
};
static_assert(sizeof(Head) == 56 && std::endian::native == std::endian::little);

/// Copies rows that are the same in memory and in the file.
template <typename Row>
std::size_t put(std::byte* at, std::span<const Row> rows) {
  if (!rows.empty()) std::memcpy(at, rows.data(), rows.size_bytes());
  return rows.size_bytes();
}

template <typename Row>
std::vector<Row> read_rows(const std::byte* at, std::size_t count) {
  std::vector<Row> rows(count);
  if (count > 0) std::memcpy(rows.data(), at, count * sizeof(Row));
  return rows;
}

/// Checks that the index belongs to this file.
Decoded<void> check_owner(const Head& head, const IndexedRecording& file) {
  if (head.file_bytes != file.bytes)
    return decode_error(wrong_value, 8, "size of the recording", head.file_bytes, file.bytes);
  if (head.modified_ns != file.modified_ns) {
    return decode_error(wrong_value, 16, "time of the recording's last change", static_cast<std::uint64_t>(head.modified_ns),
                        static_cast<std::uint64_t>(file.modified_ns));
  }
  if (head.ends_crc != file.ends_crc) {
    return decode_error(wrong_value, 24, "CRC of the recording's ends", head.ends_crc, file.ends_crc);
  }
  if (head.l1id_offset != file.l1id_offset) {
    return decode_error(wrong_value, 28, "offset of the L1 id", head.l1id_offset, file.l1id_offset);
  }
  if (head.l1id_bits != file.l1id_bits)
    return decode_error(wrong_value, 32, "bits of the L1 id", head.l1id_bits, file.l1id_bits);
  return {};
}

/// Checks that the table points only into the file.
Decoded<void> check_table(const RecordingTable& table, std::uint64_t file_bytes) {
  const auto event_at = [](std::size_t i) { return sizeof(Head) + i * sizeof(RecordedEvent); };
  const auto piece_at = [&](std::size_t i) { return event_at(table.events.size()) + i * sizeof(RecordedPiece); };
  if (table.events.empty() && !table.pieces.empty()) {
    return decode_error(wrong_value, 40, "number of events in the index", 0, table.pieces.size());
  }
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < table.events.size(); ++i) {
    const std::uint64_t first = table.events[i].first_piece;
    if (first < least || (i == 0 && first != 0))
      return decode_error(too_small, event_at(i), "first piece of an event", first, least);
    if (first >= table.pieces.size()) {
      return decode_error(too_large, event_at(i), "first piece of an event", first, table.pieces.size());
    }
    if (i > 0 && table.pieces[first - 1].more != 0) {
      return decode_error(wrong_value, piece_at(first - 1) + 15, "mark of the last piece of an event", 1, 0);
    }
    least = first + 1;
  }
  std::uint64_t chunk_bytes = 0;
  for (std::size_t i = 0; i < table.pieces.size(); ++i) {
    const RecordedPiece& piece = table.pieces[i];
    const bool last = i + 1 == table.pieces.size();
    if (piece.more > (last ? 0 : 1)) return decode_error(wrong_value, piece_at(i) + 15, "mark of a piece", piece.more, 0);
    if (piece.place > file_bytes || piece.bytes > file_bytes - piece.place) {
      return decode_error(too_large, piece_at(i), "end of a piece", piece.place + piece.bytes, file_bytes);
    }
    chunk_bytes += piece.bytes;
    if (chunk_bytes > UINT32_MAX)
      return decode_error(too_large, piece_at(i) + 8, "size of a chunk", chunk_bytes, UINT32_MAX);
    if (piece.more == 0) chunk_bytes = 0;
  }
  return {};
}

}  // namespace

std::uint32_t ends_crc(std::span<const std::byte> file) {
  if (file.size() <= kEndBytes) return crc32(file);
  return crc32(file.last(kEndBytes), crc32(file.first(kEndBytes)));
}

std::vector<std::byte> encode_recording_index(const IndexedRecording& file, const RecordingTable& table) {
  const Head head{.file_bytes = file.bytes,
                  .modified_ns = file.modified_ns,
                  .ends_crc = file.ends_crc,
                  .l1id_offset = file.l1id_offset,
                  .l1id_bits = file.l1id_bits,
                  .damage_bytes = static_cast<std::uint32_t>(table.damage.size()),
                  .events = table.events.size(),
                  .pieces = table.pieces.size()};
  const std::span<const RecordedEvent> events(table.events);
  const std::span<const RecordedPiece> pieces(table.pieces);
  const std::size_t body = sizeof head + events.size_bytes() + pieces.size_bytes() + table.damage.size();
  std::vector<std::byte> out(body + kWordBytes);
  std::byte* at = out.data();
  std::memcpy(at, &head, sizeof head);
  at += sizeof head;
  at += put(at, events);
  at += put(at, pieces);
  put(at, std::span<const char>(table.damage));
  store_word(out.data() + body, crc32(std::span(out).first(body)));
  return out;
}

Decoded<RecordingTable> decode_recording_index(std::span<const std::byte> index, const IndexedRecording& file) {
  Head head;
  if (index.size() < sizeof head + kWordBytes) {
    return decode_error(truncated, 0, "recording index", index.size(), sizeof head + kWordBytes);
  }
  std::memcpy(&head, index.data(), sizeof head);
  if (head.marker != kMarker) return decode_error(wrong_value, 0, "marker of the index", head.marker, kMarker);
  if (head.version != kVersion) return decode_error(wrong_value, 4, "version of the index", head.version, kVersion);
  const std::uint64_t rows = index.size() - sizeof head - kWordBytes;
  const std::uint64_t fits = rows / sizeof(RecordedEvent);
  if (head.events > fits) return decode_error(too_large, 40, "number of events in the index", head.events, fits);
  if (head.pieces > fits - head.events) {
    return decode_error(too_large, 48, "number of pieces in the index", head.pieces, fits - head.events);
  }
  const std::uint64_t behind = rows - (head.events + head.pieces) * sizeof(RecordedEvent);
  if (head.damage_bytes != behind)
    return decode_error(wrong_value, 36, "size of the text in the index", head.damage_bytes, behind);
  const auto body = index.first(index.size() - kWordBytes);
  const std::uint32_t stored = load_word(index.data() + body.size());
  if (const std::uint32_t crc = crc32(body); crc != stored) {
    return decode_error(checksum, body.size(), "CRC of the index", crc, stored);
  }
  RODEO_TRY(check_owner(head, file));
  RecordingTable table;
  const std::byte* at = index.data() + sizeof head;
  table.events = read_rows<RecordedEvent>(at, head.events);
  at += head.events * sizeof(RecordedEvent);
  table.pieces = read_rows<RecordedPiece>(at, head.pieces);
  at += head.pieces * sizeof(RecordedPiece);
  table.damage.assign(reinterpret_cast<const char*>(at), head.damage_bytes);
  RODEO_TRY(check_table(table, file.bytes));
  return table;
}

}  // namespace rodeo::formats
