#include "formats/fragment_request.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"

namespace rodeo::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

using enum DecodeFault;

constexpr std::uint32_t kEnded = 1;
constexpr std::uint32_t kPhaseKnown = 2;  // flag of a DESCRIBE reply, like the next one
constexpr std::uint32_t kFirstKnown = 4;
constexpr std::uint32_t kMore = 1;
constexpr std::uint32_t kHasNewest = 2;
constexpr std::uint32_t kRunKnown = 1;  // flag of a HOLDINGS request

template <typename T>
void add(std::vector<std::byte>& to, T number) {
  static_assert(std::is_integral_v<T>);
  const auto bytes = std::as_bytes(std::span(&number, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Reads consecutive fields of a message whose size has been checked.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T read() {
    T number;
    std::memcpy(&number, bytes_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  std::size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

Decoded<void> has_bytes(std::span<const std::byte> bytes, std::size_t expected, const char* field) {
  if (bytes.size() < expected) return decode_error(truncated, bytes.size(), field, bytes.size(), expected);
  if (bytes.size() > expected) return decode_error(too_large, expected, field, bytes.size(), expected);
  return {};
}

}  // namespace

// DESCRIBE: u16 version, u16 flags, u32 run number, u32 n, u32 orbits, u32 phase, u64 first, n times u32 source id. Version
// 2 lacks orbits, phase and first.
void append_describe_reply(std::vector<std::byte>& to, const DescribeReply& reply) {
  assert(reply.robs.size() <= kMostDescribedRobs);
  add(to, kFragmentRequestVersion);
  const Numbering& numbering = reply.numbering;
  add(to, static_cast<std::uint16_t>((reply.ended ? kEnded : 0U) | (numbering.phase ? kPhaseKnown : 0U) |
                                     (reply.first ? kFirstKnown : 0U)));
  add(to, reply.run_number);
  add(to, static_cast<std::uint32_t>(reply.robs.size()));
  add(to, numbering.orbits);
  add(to, numbering.phase.value_or(0));
  add(to, reply.first.value_or(0));
  for (const SourceId rob : reply.robs) add(to, rob.value);
}

Decoded<DescribeReply> read_describe_reply(std::span<const std::byte> bytes) {
  constexpr std::size_t kFixed = 12;
  constexpr std::size_t kOfNumbering = 16;
  if (bytes.size() < kFixed) return decode_error(truncated, bytes.size(), "DESCRIBE reply", bytes.size(), kFixed);
  Fields fields(bytes);
  const auto version = fields.read<std::uint16_t>();
  if (version != kFragmentRequestVersion && version != kFragmentRequestWithoutNumbering)
    return decode_error(unknown, 0, "version of fragment requests", version, kFragmentRequestVersion);
  const bool has_numbering = version == kFragmentRequestVersion;
  const auto flags = fields.read<std::uint16_t>();
  if ((flags & ~(has_numbering ? kEnded | kPhaseKnown | kFirstKnown : kEnded)) != 0)
    return decode_error(unknown, 2, "flags of a DESCRIBE reply", flags);
  DescribeReply reply{.run_number = fields.read<std::uint32_t>(), .ended = (flags & kEnded) != 0};
  const auto robs = fields.read<std::uint32_t>();
  if (robs > kMostDescribedRobs) return decode_error(too_large, 8, "number of ROBs", robs, kMostDescribedRobs);
  RODEO_TRY(has_bytes(bytes, kFixed + (has_numbering ? kOfNumbering : 0) + 4 * std::size_t{robs}, "DESCRIBE reply"));
  if (has_numbering) {
    reply.numbering.orbits = fields.read<std::uint32_t>();
    const auto phase = fields.read<std::uint32_t>();
    const auto first = fields.read<std::uint64_t>();
    if ((flags & kPhaseKnown) != 0) reply.numbering.phase = phase;
    if (phase != 0 && (!reply.numbering.phase || phase >= reply.numbering.orbits))
      return decode_error(wrong_value, 16, "phase of time frames", phase, 0);
    if ((flags & kFirstKnown) != 0) reply.first = first;
    if (!reply.first && first != 0) return decode_error(wrong_value, 20, "first id that is not known", first, 0);
  } else {
    reply.first = 0;  // a readout of version 2 does not say it
  }
  for (std::uint32_t i = 0; i < robs; ++i) reply.robs.push_back({fields.read<std::uint32_t>()});
  return reply;
}

// FETCH: u64 global id, u32 wait [us], u32 n, n times u32 source id
void append_fetch_request(std::vector<std::byte>& to, const FetchRequest& request) {
  assert(request.robs.size() <= kMostFetchRobs && request.wait_us <= kMostFetchWaitUs);
  add(to, request.id);
  add(to, request.wait_us);
  add(to, static_cast<std::uint32_t>(request.robs.size()));
  for (const SourceId rob : request.robs) add(to, rob.value);
}

Decoded<void> read_fetch_request(std::span<const std::byte> bytes, FetchRequest& request) {
  constexpr std::size_t kFixed = 16;
  if (bytes.size() < kFixed) return decode_error(truncated, bytes.size(), "FETCH", bytes.size(), kFixed);
  Fields fields(bytes);
  request.id = fields.read<std::uint64_t>();
  request.wait_us = fields.read<std::uint32_t>();
  if (request.wait_us > kMostFetchWaitUs)
    return decode_error(too_large, 8, "wait of a FETCH [us]", request.wait_us, kMostFetchWaitUs);
  const auto robs = fields.read<std::uint32_t>();
  if (robs > kMostFetchRobs) return decode_error(too_large, 12, "number of ROBs", robs, kMostFetchRobs);
  if (const auto whole = has_bytes(bytes, kFixed + 4 * std::size_t{robs}, "FETCH"); !whole) return whole;
  request.robs.clear();
  for (std::uint32_t i = 0; i < robs; ++i) request.robs.push_back({fields.read<std::uint32_t>()});
  return {};
}

// CLEAR: u64 sequence, u32 r, u32 b, r times (u64 first, u32 count), b times (u64 first, u64 bits)
void append_clear_request(std::vector<std::byte>& to, const ClearRequest& request) {
  assert(request.ranges.size() <= kMostClearEntries && request.bitmaps.size() <= kMostClearEntries);
  add(to, request.sequence);
  add(to, static_cast<std::uint32_t>(request.ranges.size()));
  add(to, static_cast<std::uint32_t>(request.bitmaps.size()));
  for (const GlobalIdRange& range : request.ranges) {
    add(to, range.first);
    add(to, range.count);
  }
  for (const GlobalIdBitmap& bitmap : request.bitmaps) {
    add(to, bitmap.first);
    add(to, bitmap.bits);
  }
}

Decoded<void> read_clear_request(std::span<const std::byte> bytes, ClearRequest& request) {
  constexpr std::size_t kFixed = 16;
  if (bytes.size() < kFixed) return decode_error(truncated, bytes.size(), "CLEAR", bytes.size(), kFixed);
  Fields fields(bytes);
  request.sequence = fields.read<std::uint64_t>();
  const auto ranges = fields.read<std::uint32_t>();
  const auto bitmaps = fields.read<std::uint32_t>();
  if (ranges > kMostClearEntries) return decode_error(too_large, 8, "number of ranges", ranges, kMostClearEntries);
  if (bitmaps > kMostClearEntries) return decode_error(too_large, 12, "number of bitmaps", bitmaps, kMostClearEntries);
  if (const auto whole = has_bytes(bytes, kFixed + 12 * std::size_t{ranges} + 16 * std::size_t{bitmaps}, "CLEAR"); !whole)
    return whole;
  request.ranges.clear();
  request.bitmaps.clear();
  std::uint64_t ids = 0;
  for (std::uint32_t i = 0; i < ranges; ++i) {
    const std::size_t at = fields.at();
    const auto first = fields.read<std::uint64_t>();
    const auto count = fields.read<std::uint32_t>();
    if (count > std::numeric_limits<std::uint64_t>::max() - first)
      return decode_error(too_large, at + 8, "ids of a range", count, std::numeric_limits<std::uint64_t>::max() - first);
    ids += count;
    if (ids > kMostClearIds) return decode_error(too_large, at + 8, "ids in a CLEAR", ids, kMostClearIds);
    request.ranges.push_back({first, count});
  }
  for (std::uint32_t i = 0; i < bitmaps; ++i) {
    const std::size_t at = fields.at();
    const auto first = fields.read<std::uint64_t>();
    const auto bits = fields.read<std::uint64_t>();
    ids += static_cast<std::uint64_t>(std::popcount(bits));
    if (ids > kMostClearIds) return decode_error(too_large, at + 8, "ids in a CLEAR", ids, kMostClearIds);
    request.bitmaps.push_back({first, bits});
  }
  return {};
}

// HOLDINGS: u64 from, u64 position of the run, u32 flags, u32 most ranges
void append_holdings_request(std::vector<std::byte>& to, const HoldingsRequest& request) {
  add(to, request.from);
  add(to, request.run_at.value_or(0));
  add(to, request.run_at ? kRunKnown : 0U);
  add(to, request.most_ranges);
}

Decoded<HoldingsRequest> read_holdings_request(std::span<const std::byte> bytes) {
  RODEO_TRY(has_bytes(bytes, 24, "HOLDINGS"));
  Fields fields(bytes);
  HoldingsRequest request{.from = fields.read<std::uint64_t>()};
  const auto run_at = fields.read<std::uint64_t>();
  const auto flags = fields.read<std::uint32_t>();
  if ((flags & ~kRunKnown) != 0) return decode_error(unknown, 16, "flags of HOLDINGS", flags);
  if (flags != 0) request.run_at = run_at;
  if (flags == 0 && run_at != 0) return decode_error(wrong_value, 8, "position of an unknown run", run_at, 0);
  request.most_ranges = fields.read<std::uint32_t>();
  if (request.most_ranges == 0) return decode_error(too_small, 20, "ranges of HOLDINGS", 0, 1);
  return request;
}

// Its reply: u32 flags, u32 n, u64 newest, n times (u64 first, u32 count)
void append_holdings_reply(std::vector<std::byte>& to, const HoldingsReply& reply) {
  assert(reply.ranges.size() <= kMostHoldingsRanges);
  add(to, (reply.more ? kMore : 0U) | (reply.newest ? kHasNewest : 0U));
  add(to, static_cast<std::uint32_t>(reply.ranges.size()));
  add(to, reply.newest.value_or(0));
  for (const GlobalIdRange& range : reply.ranges) {
    add(to, range.first);
    add(to, range.count);
  }
}

Decoded<HoldingsReply> read_holdings_reply(std::span<const std::byte> bytes) {
  constexpr std::size_t kFixed = 16;
  if (bytes.size() < kFixed) return decode_error(truncated, bytes.size(), "HOLDINGS reply", bytes.size(), kFixed);
  Fields fields(bytes);
  const auto flags = fields.read<std::uint32_t>();
  if ((flags & ~(kMore | kHasNewest)) != 0) return decode_error(unknown, 0, "flags of a HOLDINGS reply", flags);
  const auto ranges = fields.read<std::uint32_t>();
  if (ranges > kMostHoldingsRanges) return decode_error(too_large, 4, "number of ranges", ranges, kMostHoldingsRanges);
  HoldingsReply reply{.more = (flags & kMore) != 0};
  const auto newest = fields.read<std::uint64_t>();
  if ((flags & kHasNewest) != 0) reply.newest = newest;
  if (!reply.newest && newest != 0) return decode_error(wrong_value, 8, "newest without events", newest, 0);
  RODEO_TRY(has_bytes(bytes, kFixed + 12 * std::size_t{ranges}, "HOLDINGS reply"));
  std::uint64_t end = 0;
  std::uint64_t ids = 0;
  for (std::uint32_t i = 0; i < ranges; ++i) {
    const std::size_t at = fields.at();
    const GlobalIdRange range{fields.read<std::uint64_t>(), fields.read<std::uint32_t>()};
    if (i != 0 && range.first <= end) return decode_error(too_small, at, "first id of a range", range.first, end + 1);
    if (range.count == 0) return decode_error(too_small, at + 8, "ids of a range", 0, 1);
    if (range.count > std::numeric_limits<std::uint64_t>::max() - range.first)
      return decode_error(too_large, at + 8, "ids of a range", range.count,
                          std::numeric_limits<std::uint64_t>::max() - range.first);
    ids += range.count;
    if (ids > kMostHoldingsIds)
      return decode_error(too_large, at + 8, "ids in the ranges of a HOLDINGS reply", ids, kMostHoldingsIds);
    end = range.first + range.count;
    if (!reply.newest || end - 1 > newest)
      return decode_error(too_large, at, "last id of a range, behind the newest", end - 1, newest);
    reply.ranges.push_back(range);
  }
  return reply;
}

}  // namespace rodeo::formats
