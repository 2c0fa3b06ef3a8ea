// Control messages over TCP: subscribers and publishers, senders and routers, requesters and repliers
// (docs/reference/formats/network-control.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "formats/decode_error.h"
#include "rodeo/ids.h"

namespace rodeo::formats {

inline constexpr std::uint16_t kControlVersion = 3;
inline constexpr std::uint16_t kNetworkPageVersion = 1;
inline constexpr std::size_t kControlHeaderBytes = 8;
inline constexpr std::size_t kMostControlBytes = std::size_t{1} << 20;  ///< bytes behind the header

// Limits of the contents of a message. Texts are printable ASCII.
inline constexpr std::size_t kMostControlName = 64;
inline constexpr std::size_t kMostControlProgram = 64;
inline constexpr std::size_t kMostControlProvider = 16;
inline constexpr std::size_t kMostControlCode = 64;
inline constexpr std::size_t kMostControlWhat = 512;
inline constexpr std::size_t kMostControlAddress = 256;
inline constexpr std::size_t kMostControlLosses = 64;
inline constexpr std::size_t kMostControlLinks = 65'535;
inline constexpr std::uint32_t kMostControlPageBytes = 1U << 20;
inline constexpr std::uint32_t kMostControlPages = 65'535;
inline constexpr std::uint32_t kMostControlRequests = 65'536;
inline constexpr std::size_t kMostControlBytesToFrontEnd = 65'535;

/// The first message of both sides. If the version differs, only the version is read.
struct ControlHello {
  std::uint16_t version = kControlVersion;
  std::uint16_t page_version = kNetworkPageVersion;
  bool secret_required = false;
  std::array<std::byte, 32> nonce{};
  std::uint64_t instance = 0;
  std::string program = {};
  bool operator==(const ControlHello&) const = default;
};

struct ControlProof {
  std::array<std::byte, 32> mac{};
  bool operator==(const ControlProof&) const = default;
};

/// The subscriber asks for the chunks of links.
struct ControlSubscribe {
  std::uint64_t session = 0;
  std::uint64_t taken = 0;  ///< number of pages received in the session; the publisher continues after them
  bool monitor = false;
  bool unbuffered = false;
  bool trigger_list = false;
  std::string name = {};
  std::string provider = {};
  std::uint32_t page_bytes = 0;
  std::uint32_t pages = 0;
  std::vector<std::byte> address = {};
  std::vector<Fid> links = {};  ///< the wanted links; no link occurs twice
  bool operator==(const ControlSubscribe&) const = default;
};

/// The publisher accepts the request of the other side.
struct ControlAccept {
  bool resumed = false;
  std::array<std::byte, 16> token{};
  std::vector<std::byte> address = {};
  std::uint32_t page_bytes = 0;
  std::uint32_t pages = 0;
  bool operator==(const ControlAccept&) const = default;
};

/// Either side refuses; the connection then ends.
struct ControlRefuse {
  std::string code = {};  ///< an error code of `rodeo explain`
  std::string what = {};
  bool operator==(const ControlRefuse&) const = default;
};

/// The subscriber allows more pages.
struct ControlCredit {
  std::uint64_t pages = 0;  ///< total number of pages that may be sent on this connection
  std::uint64_t taken = 0;  ///< total number of pages that arrived in this session: the publisher need not keep them
  bool operator==(const ControlCredit&) const = default;
};

/// One kind of loss in the publisher's process up to now, on any link, by the name of its counter: "felix_sequence_gaps".
struct ControlLoss {
  std::string name = {};
  std::uint64_t value = 0;
  bool operator==(const ControlLoss&) const = default;
};

/// The publisher's last message: the number of pages sent on this connection.
struct ControlEnd {
  std::uint64_t pages = 0;
  std::vector<ControlLoss> losses = {};
  bool operator==(const ControlEnd&) const = default;
};

/// The subscriber asks for the rest, then END.
struct ControlLeave {
  bool operator==(const ControlLeave&) const = default;
};

/// The sender claims these links to front-ends for itself.
struct ControlClaim {
  std::string name = {};
  std::vector<Fid> links = {};  ///< the claimed links; no link occurs twice
  bool operator==(const ControlClaim&) const = default;
};

/// The answer to a claim: the sender owns the links until the connection ends.
struct ControlClaimed {
  bool operator==(const ControlClaimed&) const = default;
};

/// The sender has a message for a front-end.
struct ControlSend {
  std::uint64_t number = 0;  ///< the sender's number; the answer repeats it
  std::uint16_t link = 0;    ///< position in the claim
  std::vector<std::byte> message = {};
  bool operator==(const ControlSend&) const = default;
};

/// The answer to each message, in order.
struct ControlAnswer {
  std::uint64_t number = 0;
  std::string code = {};  ///< empty: the card has the message; else the reason, an error code of `rodeo explain`
  std::string what = {};
  std::vector<std::byte> answer = {};  ///< answer of a link that answers at once
  bool operator==(const ControlAnswer&) const = default;
};

/// The requester asks for access to a service; the answer is ACCEPT or REFUSE.
struct ControlCall {
  std::uint32_t pages = 0;     ///< pages of the requester for replies
  std::uint32_t requests = 0;  ///< limit of its open requests
  std::string name = {};
  std::string provider = {};
  std::vector<std::byte> address = {};
  bool operator==(const ControlCall&) const = default;
};

/// All messages, in the order of their types, which begin with 1.
using ControlMessage =
    std::variant<ControlHello, ControlProof, ControlSubscribe, ControlAccept, ControlRefuse, ControlCredit, ControlEnd,
                 ControlLeave, ControlClaim, ControlClaimed, ControlSend, ControlAnswer, ControlCall>;

/// Cuts texts to their limits and replaces unprintable characters by `?`. Other values must be within their limits.
void append_control(std::vector<std::byte>& to, const ControlMessage& message);

struct ParsedControl {
  ControlMessage message;
  std::size_t bytes = 0;  ///< size of the message, its header included
};

/// The first message of `bytes`; nothing if it is incomplete. Accepts any bytes. An impossible message is refused as soon as
/// its header is complete, so a peer never needs more memory than its message may have.
Decoded<std::optional<ParsedControl>> parse_control(std::span<const std::byte> bytes);

}  // namespace rodeo::formats
