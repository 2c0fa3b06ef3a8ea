// Recordings of FELIX blocks: any file is refused or described, and the description adds up.
#include <vector>

#include "formats/recording_info.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  const std::vector<std::byte> file(reinterpret_cast<const std::byte*>(data),
                                    reinterpret_cast<const std::byte*>(data) + size);
  const auto info = inspect_recording(file);
  if (!info) {
    FUZZ_CHECK(!info.error().what.empty());
    return 0;
  }
  FUZZ_CHECK(info->format.valid());
  FUZZ_CHECK(info->blocks * info->format.block_bytes + info->rest_bytes == size);
  FUZZ_CHECK(info->counter(BlockCounter::unmapped_blocks) == 0);
  std::uint64_t blocks = info->counter(BlockCounter::bad_marker), chunks = 0, bytes = 0;
  for (const auto& elink : info->elinks) {
    blocks += elink.blocks;
    chunks += elink.chunks;
    bytes += elink.chunk_bytes;
    FUZZ_CHECK(elink.blocks > 0 && elink.smallest_chunk_bytes <= elink.largest_chunk_bytes &&
               elink.flagged_chunks <= elink.chunks);
  }
  FUZZ_CHECK(blocks == info->blocks);
  FUZZ_CHECK(chunks == info->counter(BlockCounter::chunks));
  FUZZ_CHECK(bytes == info->counter(BlockCounter::chunk_bytes));
  return 0;
}
