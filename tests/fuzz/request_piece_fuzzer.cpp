// Pieces of requests and replies: any bytes are refused or decoded; a piece lies within page and message, and encodes to the
// same bytes.
#include <algorithm>
#include <vector>

#include "formats/request_piece.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  const std::vector<std::byte> page(reinterpret_cast<const std::byte*>(data),
                                    reinterpret_cast<const std::byte*>(data) + size);
  const auto piece = decode_piece(page);
  if (!piece) {
    FUZZ_CHECK(!piece.error().message().empty());
    return 0;
  }
  FUZZ_CHECK(piece->bytes.data() + piece->bytes.size() == page.data() + page.size());
  FUZZ_CHECK(piece->head.offset + piece->bytes.size() <= piece->head.message_bytes);
  const auto head = encode_piece_head(piece->head);
  FUZZ_CHECK(std::equal(head.begin(), head.end(), page.begin()));
  return 0;
}
