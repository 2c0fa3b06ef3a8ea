// Requests of the service `fragments` and their answers: any bytes are refused or read, and the content is the same after
// writing and reading again.
#include <cstring>
#include <vector>

#include "formats/fragment_request.h"
#include "fuzz/check.h"

namespace {

using namespace rodeo::formats;

template <typename T>
void check_same(std::span<const std::byte> raw, const T& message, void (*append)(std::vector<std::byte>&, const T&)) {
  std::vector<std::byte> again;
  append(again, message);
  FUZZ_CHECK(again.size() == raw.size());
  FUZZ_CHECK(std::memcmp(again.data(), raw.data(), raw.size()) == 0);
}

// A reply of the older version is written in the current one: its content stays, not its bytes.
void check_describe_reply(std::span<const std::byte> raw, const DescribeReply& reply) {
  if (raw[0] == std::byte{kFragmentRequestVersion}) return check_same(raw, reply, append_describe_reply);
  std::vector<std::byte> again;
  append_describe_reply(again, reply);
  const auto read = read_describe_reply(again);
  FUZZ_CHECK(read && *read == reply);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::vector<std::byte> copy(size - 1);  // a copy, so that reads beyond the end are detected
  if (size > 1) std::memcpy(copy.data(), data + 1, size - 1);
  const std::span<const std::byte> raw(copy);
  switch (data[0] % 5) {
    case 0:
      if (const auto read = read_describe_reply(raw)) check_describe_reply(raw, *read);
      break;
    case 1: {
      FetchRequest request;
      if (read_fetch_request(raw, request)) check_same(raw, request, append_fetch_request);
      break;
    }
    case 2: {
      ClearRequest request;
      if (!read_clear_request(raw, request)) break;
      check_same(raw, request, append_clear_request);
      std::uint64_t ids = 0;
      request.for_each_id([&](std::uint64_t) { ++ids; });
      FUZZ_CHECK(ids <= kMostClearIds + 64 * request.bitmaps.size());
      break;
    }
    case 3:
      if (const auto read = read_holdings_request(raw)) check_same(raw, *read, append_holdings_request);
      break;
    default:
      if (const auto read = read_holdings_reply(raw)) check_same(raw, *read, append_holdings_reply);
  }
  return 0;
}
