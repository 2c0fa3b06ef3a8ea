// Messages of filter nodes and supervisor: any bytes are refused or decoded; decoded messages encode to the same bytes.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "formats/assignment.h"
#include "fuzz/check.h"

namespace {

using namespace rodeo::formats;

template <typename M>
void check(const std::vector<std::byte>& bytes) {
  M message;
  const auto read = decode(bytes, message);
  if (!read) {
    FUZZ_CHECK(read.error().offset <= bytes.size());
    return;
  }
  std::vector<std::byte> written;
  encode(message, written);
  bool other_version = false;
  if constexpr (requires { message.version; }) other_version = message.version != kAssignmentsVersion;
  FUZZ_CHECK(other_version || written == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(begin + 1, begin + size);
  switch (data[0] % 4) {
    case 0: check<NodeHello>(bytes); break;
    case 1: check<NodeWelcome>(bytes); break;
    case 2: check<NodeWork>(bytes); break;
    default: check<NodeOrders>(bytes); break;
  }
  return 0;
}
