#include "formats/event_index.h"

#include <bit>
#include <cstring>

#include "formats/checksum.h"
#include "formats/event_file_records.h"
#include "formats/words.h"

namespace rodeo::formats {

using enum DecodeFault;

namespace {

constexpr std::uint32_t kMarker = 0x1234eeaa;
constexpr std::uint32_t kVersion = 1;

// The head in the format of the file.
struct Head {
  std::uint32_t marker = kMarker;
  std::uint32_t version = kVersion;
  std::uint64_t file_bytes = 0;
  std::int64_t modified_ns = 0;
  std::uint64_t records_bytes = 0;
  std::uint32_t records_crc = 0;
  std::uint32_t zero = 0;
  std::uint64_t count = 0;
};
static_assert(sizeof(Head) == 48 && std::endian::native == std::endian::little);

}  // namespace

std::vector<std::byte> encode_event_index(const IndexedFile& file, std::span<const EventPlace> places) {
  const Head head{.file_bytes = file.bytes,
                  .modified_ns = file.modified_ns,
                  .records_bytes = file.records_bytes,
                  .records_crc = file.records_crc,
                  .count = places.size()};
  const std::size_t body = sizeof head + places.size_bytes();
  std::vector<std::byte> out(body + kWordBytes);
  std::memcpy(out.data(), &head, sizeof head);
  if (!places.empty()) std::memcpy(out.data() + sizeof head, places.data(), places.size_bytes());
  store_word(out.data() + body, crc32(std::span(out).first(body)));
  return out;
}

Decoded<std::vector<EventPlace>> decode_event_index(std::span<const std::byte> index, const IndexedFile& file) {
  Head head;
  if (index.size() < sizeof head + kWordBytes) {
    return decode_error(truncated, 0, "event index", index.size(), sizeof head + kWordBytes);
  }
  std::memcpy(&head, index.data(), sizeof head);
  if (head.marker != kMarker) return decode_error(wrong_value, 0, "marker of the index", head.marker, kMarker);
  if (head.version != kVersion) return decode_error(wrong_value, 4, "version of the index", head.version, kVersion);
  const std::uint64_t fits = (index.size() - sizeof head - kWordBytes) / sizeof(EventPlace);
  if (head.count != fits || index.size() != sizeof head + fits * sizeof(EventPlace) + kWordBytes) {
    return decode_error(wrong_value, 40, "number of events in the index", head.count, fits);
  }
  const auto body = index.first(index.size() - kWordBytes);
  const std::uint32_t stored = load_word(index.data() + body.size());
  if (const std::uint32_t crc = crc32(body); crc != stored) {
    return decode_error(checksum, body.size(), "CRC of the index", crc, stored);
  }
  if (head.file_bytes != file.bytes) return decode_error(wrong_value, 8, "size of the file", head.file_bytes, file.bytes);
  if (head.modified_ns != file.modified_ns) {
    return decode_error(wrong_value, 16, "time of the file's last change", static_cast<std::uint64_t>(head.modified_ns),
                        static_cast<std::uint64_t>(file.modified_ns));
  }
  if (head.records_bytes != file.records_bytes) {
    return decode_error(wrong_value, 24, "size of the file's first records", head.records_bytes, file.records_bytes);
  }
  if (head.records_crc != file.records_crc) {
    return decode_error(wrong_value, 32, "CRC of the file's first records", head.records_crc, file.records_crc);
  }
  std::vector<EventPlace> places(fits);
  if (fits > 0) std::memcpy(places.data(), index.data() + sizeof head, fits * sizeof(EventPlace));
  std::uint64_t next = file.records_bytes;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint64_t at = sizeof head + i * sizeof(EventPlace);
    if (places[i].offset() != next) return decode_error(wrong_value, at, "offset of an event", places[i].offset(), next);
    next += kSeparatorBytes + places[i].bytes;
    if (next > file.bytes) return decode_error(too_large, at + 8, "end of an event", next, file.bytes);
  }
  return places;
}

}  // namespace rodeo::formats
