// The index of an event file: any bytes are refused or refer only to places in the file, and an accepted index encodes to
// the same bytes. Input: size, time, CRC and size of the records of its file (8 + 8 + 4 + 8 bytes), then the index.
#include <cstring>

#include "formats/event_file_records.h"
#include "formats/event_index.h"
#include "fuzz/check.h"

using namespace rodeo::formats;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kFileBytes = 28;
  if (size < kFileBytes) return 0;
  IndexedFile file;
  std::memcpy(&file.bytes, data, 8);
  std::memcpy(&file.modified_ns, data + 8, 8);
  std::memcpy(&file.records_crc, data + 16, 4);
  std::memcpy(&file.records_bytes, data + 20, 8);
  const std::span<const std::byte> index(reinterpret_cast<const std::byte*>(data) + kFileBytes, size - kFileBytes);
  const auto places = decode_event_index(index, file);
  if (!places) {
    FUZZ_CHECK(!places.error().message().empty());
    return 0;
  }
  for (const EventPlace& place : *places) {
    FUZZ_CHECK(place.offset() >= file.records_bytes && place.offset() + kSeparatorBytes + place.bytes <= file.bytes);
  }
  const auto again = encode_event_index(file, *places);
  FUZZ_CHECK(again.size() == index.size());
  for (std::size_t i = 0; i < again.size(); ++i)
    FUZZ_CHECK(again[i] == index[i] || (i >= 36 && i < 40) || i + 4 >= again.size());
  return 0;
}
