// The messages between a trigger authority and its followers in other processes: bytes both ways
// (docs/reference/protocols/trigger.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trigger/range.h"

namespace rodeo::trigger::protocol {

inline constexpr std::uint32_t kMagic = 0x54524452;  // "RDRT"
inline constexpr std::uint16_t kVersion = 3;
inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::size_t kMostBodyBytes = 64 << 10;
inline constexpr std::size_t kMostRanges = 2048;
inline constexpr std::size_t kMostMarks = 256;
inline constexpr std::size_t kMostText = 255;
inline constexpr unsigned kMostFunctions = 4096;

enum class Type : std::uint16_t { hello = 1, welcome, refused, state, triggers, greeting };
enum class Reason : std::uint16_t { version = 1, system, seed, name_taken, too_many, secret };

/// If the version differs, only `version` is valid.
struct Hello {
  std::uint16_t version = kVersion;
  std::uint16_t functions = 1;
  std::uint64_t seed = 0;
  std::string system = {};
  std::string name = {};
  bool operator==(const Hello&) const = default;
};

struct Welcome {
  std::uint16_t version = kVersion;
  std::uint32_t timeout_ms = 0;
  std::uint64_t sequence = 0;
  std::string name = {};
  std::vector<TriggerMark> marks = {};  ///< latest changes of luminosity block and scan step, oldest first
  bool operator==(const Welcome&) const = default;
};

struct Refused {
  std::uint16_t version = kVersion;
  Reason reason = Reason::version;
  std::string why = {};
  bool operator==(const Refused&) const = default;
};

struct State {
  std::uint16_t ready = 0;  ///< number of ready functions
  bool busy = false;
  std::uint32_t hold = 0;
  std::uint64_t granted = 0;
  bool operator==(const State&) const = default;
};

/// The data of a range's first trigger that do not depend on the follower.
struct FirstTrigger {
  std::uint16_t bcid = 0;
  std::uint16_t type = 0;
  bool operator==(const FirstTrigger&) const = default;
};

struct Triggers {
  std::uint64_t time_ns = 0;
  std::uint64_t sequence = 0;
  std::uint32_t ecrs = 0;
  std::uint32_t held = 0;
  bool begins = false;                    ///< the sequence may skip numbers after the last message
  std::vector<TriggerRange> ranges = {};  ///< consecutive ranges; the first begins at `sequence`
  std::vector<FirstTrigger> firsts = {};  ///< one for each range
  bool operator==(const Triggers&) const = default;
};

/// Messages of the transport's handshake (docs/reference/formats/network-control.md), one after the other.
struct Greeting {
  std::vector<std::byte> control = {};
  bool operator==(const Greeting&) const = default;
};

/// The text in a REFUSED to a peer that lacks the right secret.
inline constexpr std::string_view kOtherSecret = "both sides need the same secret, and their secrets differ";

using Message = std::variant<Hello, Welcome, Refused, State, Triggers, Greeting>;

struct Header {
  Type type = Type::hello;
  std::uint32_t body_bytes = 0;
};

/// A fault in received bytes, in a few words.
using Wrong = std::string_view;

std::expected<Header, Wrong> decode_header(std::span<const std::byte, kHeaderBytes> bytes);
/// Decodes a whole body. Checks every length and number in it.
std::expected<Message, Wrong> decode(Type type, std::span<const std::byte> body);
/// Appends header and body. Cuts texts to kMostText and replaces unprintable characters by `?`. The caller MUST NOT pass
/// more than kMostRanges ranges.
void encode(const Message& message, std::vector<std::byte>& out);

}  // namespace rodeo::trigger::protocol
