// The index of a recording: any bytes are refused or refer only to places in the recording, and an accepted index encodes to
// the same bytes. Input: size, time, CRC of the ends, offset and bits of the L1 id of its recording (8 + 8 + 4 + 4 + 4
// bytes), then the index. The fuzzer corrects its CRC, because otherwise it would never reach the checks after it.
#include <cstring>
#include <vector>

#include "formats/checksum.h"
#include "formats/recording_index.h"
#include "formats/words.h"
#include "fuzz/check.h"

using namespace rodeo::formats;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kFileBytes = 28;
  if (size < kFileBytes) return 0;
  IndexedRecording file;
  std::memcpy(&file.bytes, data, 8);
  std::memcpy(&file.modified_ns, data + 8, 8);
  std::memcpy(&file.ends_crc, data + 16, 4);
  std::memcpy(&file.l1id_offset, data + 20, 4);
  std::memcpy(&file.l1id_bits, data + 24, 4);
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> index(begin + kFileBytes, begin + size);
  if (index.size() >= kWordBytes) {
    const std::size_t body = index.size() - kWordBytes;
    store_word(index.data() + body, crc32(std::span(index).first(body)));
  }
  const auto table = decode_recording_index(index, file);
  if (!table) {
    FUZZ_CHECK(!table.error().message().empty());
    return 0;
  }
  std::size_t seen = 0;
  for (std::size_t i = 0; i < table->events.size(); ++i) {
    const auto pieces = table->pieces_of(i);
    FUZZ_CHECK(!pieces.empty() && pieces.back().more == 0);
    for (const RecordedPiece& piece : pieces)
      FUZZ_CHECK(piece.place <= file.bytes && piece.bytes <= file.bytes - piece.place);
    seen += pieces.size();
  }
  FUZZ_CHECK(seen == table->pieces.size());
  FUZZ_CHECK(encode_recording_index(file, *table) == index);
  return 0;
}
