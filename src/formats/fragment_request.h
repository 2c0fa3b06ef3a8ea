// Requests to a readout that keeps fragments, and its answers (docs/reference/formats/fragment-requests.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/decode_error.h"
#include "formats/numbering.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

/// Kinds of requests of the service `fragments`. 2 to 4 belonged to version 1, which named events by L1 ids; these repeat.
enum class FragmentRequest : std::uint16_t { describe = 1, fetch = 5, clear = 6, holdings = 7 };
constexpr bool is_of_version_1(std::uint16_t kind) { return kind >= 2 && kind <= 4; }

/// Status of a refused request.
enum class FragmentRefusal : std::uint16_t {
  unreadable = 1,  ///< the request does not follow the format
  unknown_kind = 2,
  unknown_rob = 3,  ///< the readout has no such ROB
  busy = 4,         ///< too many requests wait
  old_version = 5,  ///< the request belongs to version 1
};

/// Bits in the status of an answered FETCH.
namespace fetch_status {
inline constexpr std::uint16_t kPending = 1;  ///< a fragment of some ROB has not arrived yet
inline constexpr std::uint16_t kLost = 2;     ///< a fragment of some ROB is not here and never will be
}  // namespace fetch_status

/// First status word of a ROB that stands for an absent one: dummy fragment, and the reason in the detector's half.
inline constexpr std::uint32_t kRobPending = 0x40000020;
inline constexpr std::uint32_t kRobLost = 0x20000020;

inline constexpr std::uint16_t kFragmentRequestVersion = 3;
inline constexpr std::uint16_t kFragmentRequestWithoutNumbering = 2;  ///< DESCRIBE replies of this version are accepted, too
inline constexpr std::size_t kMostFetchRobs = 1024;
inline constexpr std::uint32_t kMostFetchWaitUs = 60'000'000;
inline constexpr std::size_t kMostClearEntries = 1U << 16;  ///< ranges in one CLEAR; also bitmaps in one CLEAR
inline constexpr std::uint64_t kMostClearIds = 1U << 20;    ///< ids in all ranges and bitmaps of one CLEAR
inline constexpr std::size_t kMostDescribedRobs = 4096;
inline constexpr std::size_t kMostHoldingsRanges = 2048;     ///< ranges in one answer
inline constexpr std::uint64_t kMostHoldingsIds = 1U << 20;  ///< ids in all ranges of one answer

struct DescribeReply {
  std::uint32_t run_number = 0;
  bool ended = false;  ///< no more fragments come
  std::vector<SourceId> robs = {};
  Numbering numbering = {};
  std::optional<std::uint64_t> first = {};  ///< the readout brings no lower global id; nothing: not known yet
  bool operator==(const DescribeReply&) const = default;
};

struct FetchRequest {
  std::uint64_t id = 0;             ///< global
  std::uint32_t wait_us = 0;        ///< the time to wait for fragments that have not arrived
  std::vector<SourceId> robs = {};  ///< empty: all ROBs of the readout
  bool operator==(const FetchRequest&) const = default;
};

/// `count` global ids from `first` on.
struct GlobalIdRange {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const GlobalIdRange&) const = default;
};

/// Bit i: the id `first` + i.
struct GlobalIdBitmap {
  std::uint64_t first = 0;
  std::uint64_t bits = 0;
  bool operator==(const GlobalIdBitmap&) const = default;
};

struct ClearRequest {
  std::uint64_t sequence = 0;  ///< number of this CLEAR: the client counts, and the readout counts gaps
  std::vector<GlobalIdRange> ranges = {};
  std::vector<GlobalIdBitmap> bitmaps = {};
  bool operator==(const ClearRequest&) const = default;

  std::optional<std::uint64_t> first_id() const {
    if (!ranges.empty()) return ranges.front().first;
    return bitmaps.empty() ? std::nullopt : std::optional(bitmaps.front().first);
  }

  /// Calls visit(global id) for each id.
  template <typename Visit>
  void for_each_id(Visit&& visit) const {
    for (const GlobalIdRange& range : ranges) {
      for (std::uint32_t i = 0; i < range.count; ++i) visit(range.first + i);
    }
    for (const GlobalIdBitmap& bitmap : bitmaps) {
      for (std::uint64_t bits = bitmap.bits; bits != 0; bits &= bits - 1)
        visit(bitmap.first + static_cast<std::uint64_t>(__builtin_ctzll(bits)));
    }
  }
};

struct HoldingsRequest {
  std::uint64_t from = 0;                    ///< lower global ids are left out
  std::optional<std::uint64_t> run_at = {};  ///< the position of the run, if the supervisor knows it
  std::uint32_t most_ranges = kMostHoldingsRanges;
  bool operator==(const HoldingsRequest&) const = default;
};

struct HoldingsReply {
  bool more = false;                         ///< there are ids after the last range: ask again from there
  std::optional<std::uint64_t> newest = {};  ///< global id of the newest event that arrived, kept or not
  std::vector<GlobalIdRange> ranges =
      {};  ///< events kept for at least one ROB; ordered, with gaps between them, none after `newest`
  bool operator==(const HoldingsReply&) const = default;
};

// Writing appends; the values must be within their limits. Reading accepts any bytes. An object that is reused allocates
// only for a message larger than all before.

void append_describe_reply(std::vector<std::byte>& to, const DescribeReply& reply);
Decoded<DescribeReply> read_describe_reply(std::span<const std::byte> bytes);

void append_fetch_request(std::vector<std::byte>& to, const FetchRequest& request);
Decoded<void> read_fetch_request(std::span<const std::byte> bytes, FetchRequest& request);

void append_clear_request(std::vector<std::byte>& to, const ClearRequest& request);
Decoded<void> read_clear_request(std::span<const std::byte> bytes, ClearRequest& request);

void append_holdings_request(std::vector<std::byte>& to, const HoldingsRequest& request);
Decoded<HoldingsRequest> read_holdings_request(std::span<const std::byte> bytes);

void append_holdings_reply(std::vector<std::byte>& to, const HoldingsReply& reply);
Decoded<HoldingsReply> read_holdings_reply(std::span<const std::byte> bytes);

}  // namespace rodeo::formats
