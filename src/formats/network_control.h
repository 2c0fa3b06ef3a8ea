// What subscribers and publishers, senders and front-ends' routers, requesters and repliers say to each other over TCP (docs/formats/network-control.md).
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
inline constexpr std::size_t kMostControlBytes = std::size_t{1} << 20;  ///< behind the header

// Bounds of what is in a message. Texts are printable ASCII.
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

/// Of both sides, first. Of another version nothing is read but the version.
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

/// Subscriber.
struct ControlSubscribe {
  std::uint64_t session = 0;
  std::uint64_t taken = 0;  ///< pages of the session that came before; the publisher goes on behind them
  bool monitor = false;
  bool unbuffered = false;
  bool trigger_list = false;
  std::string name = {};
  std::string provider = {};
  std::uint32_t page_bytes = 0;
  std::uint32_t pages = 0;
  std::vector<std::byte> address = {};
  std::vector<Fid> links = {};  ///< none twice
  bool operator==(const ControlSubscribe&) const = default;
};

/// Publisher.
struct ControlAccept {
  bool resumed = false;
  std::array<std::byte, 16> token{};
  std::vector<std::byte> address = {};
  std::uint32_t page_bytes = 0;
  std::uint32_t pages = 0;
  bool operator==(const ControlAccept&) const = default;
};

/// Either side; the connection ends with it.
struct ControlRefuse {
  std::string code = {};  ///< as `rodeo explain` knows it
  std::string what = {};
  bool operator==(const ControlRefuse&) const = default;
};

/// Subscriber.
struct ControlCredit {
  std::uint64_t pages = 0;  ///< that may have been sent in all on this connection
  std::uint64_t taken = 0;  ///< that have come in all in this session: the publisher need not keep them
  bool operator==(const ControlCredit&) const = default;
};

/// What the process of the publisher has lost so far, of any link, by the name of a counter: "felix_sequence_gaps".
struct ControlLoss {
  std::string name = {};
  std::uint64_t value = 0;
  bool operator==(const ControlLoss&) const = default;
};

/// Publisher: so many pages were sent in all on this connection, no more come.
struct ControlEnd {
  std::uint64_t pages = 0;
  std::vector<ControlLoss> losses = {};
  bool operator==(const ControlEnd&) const = default;
};

/// Subscriber: send what you have, then END.
struct ControlLeave {
  bool operator==(const ControlLeave&) const = default;
};

/// Sender: wants these links to front-ends for itself.
struct ControlClaim {
  std::string name = {};
  std::vector<Fid> links = {};  ///< none twice
  bool operator==(const ControlClaim&) const = default;
};

/// Answers it: the links are the sender's until the connection ends.
struct ControlClaimed {
  bool operator==(const ControlClaimed&) const = default;
};

/// Sender: a message to a front-end.
struct ControlSend {
  std::uint64_t number = 0;  ///< the sender's own, comes back in the answer
  std::uint16_t link = 0;    ///< position in the claim
  std::vector<std::byte> message = {};
  bool operator==(const ControlSend&) const = default;
};

/// Answers each, in their order.
struct ControlAnswer {
  std::uint64_t number = 0;
  std::string code = {};  ///< empty: the card has taken it; else why not, as `rodeo explain` knows it
  std::string what = {};
  std::vector<std::byte> answer = {};  ///< of links that answer at once
  bool operator==(const ControlAnswer&) const = default;
};

/// Requester: wants to ask a service; an ACCEPT or a REFUSE answers it.
struct ControlCall {
  std::uint32_t pages = 0;     ///< that it has for replies
  std::uint32_t requests = 0;  ///< that it may have under way
  std::string name = {};
  std::string provider = {};
  std::vector<std::byte> address = {};
  bool operator==(const ControlCall&) const = default;
};

/// In the order of their types, from 1.
using ControlMessage =
    std::variant<ControlHello, ControlProof, ControlSubscribe, ControlAccept, ControlRefuse, ControlCredit, ControlEnd,
                 ControlLeave, ControlClaim, ControlClaimed, ControlSend, ControlAnswer, ControlCall>;

/// Texts are cut to their bounds, and what is not printable in them becomes `?`. The rest is within its bounds.
void append_control(std::vector<std::byte>& to, const ControlMessage& message);

struct TakenControl {
  ControlMessage message;
  std::size_t bytes = 0;  ///< of the message, its header included
};

/// The first message of `bytes`. Nothing: it is not whole yet. Survives any bytes; what cannot become a message is refused as soon as its header is
/// there, so that nobody has to be given room for more than his message may have.
Decoded<std::optional<TakenControl>> take_control(std::span<const std::byte> bytes);

}  // namespace rodeo::formats
