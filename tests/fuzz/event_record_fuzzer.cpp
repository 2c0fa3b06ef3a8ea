// Requests and answers of the service `events`: any bytes are refused or decoded; decoded ones encode to the same bytes.
#include <algorithm>
#include <vector>

#include "formats/event_record.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats;
  const std::vector<std::byte> exact(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  if (const auto taken = decode_record_head(exact)) {
    FUZZ_CHECK(taken->bytes % 4 == 0 && taken->bytes <= exact.size() && taken->bytes <= kMostRecordHeadBytes);
    std::vector<std::byte> written;
    append_record_head(written, taken->head);
    FUZZ_CHECK(written.size() == taken->bytes && std::equal(written.begin(), written.end(), exact.begin()));
    FUZZ_CHECK(!decode_record_head(std::span(exact).first(taken->bytes - 1)));
  }
  if (const auto ids = decode_have(exact)) {
    std::vector<std::byte> written;
    append_have(written, *ids);
    FUZZ_CHECK(written == exact);
  }
  for (const std::size_t ids : {std::size_t{0}, std::size_t{1}, size / 2, size > 4 ? size - 4 : 0}) {
    const auto have = decode_have_answer(exact, ids);
    if (!have) continue;
    std::vector<std::byte> written;
    append_have_answer(written, *have);
    FUZZ_CHECK(written == exact && have->of.size() == ids);
  }
  return 0;
}
