// Messages of the service `assignments`, between filter nodes and their supervisor (docs/reference/formats/assignments.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/decode_error.h"

namespace rodeo::formats {

inline constexpr std::uint16_t kAssignmentsVersion = 2;

/// Kinds of requests.
enum class AssignmentKind : std::uint16_t { hello = 1, work = 2 };

/// The reason why a supervisor refuses a request: the status of its answer.
enum class AssignmentRefusal : std::uint16_t {
  bad_message = 1,  ///< the message cannot be decoded
  version = 2,      ///< the node speaks another version
  name_taken = 3,   ///< a node of this name is connected
  not_yet = 4,      ///< the supervisor does not know its run yet: try again
  say_hello = 5,    ///< no session, or numbers out of order: begin with HELLO
  too_many = 6,     ///< too many nodes
};

// Limits of the contents of a message. Texts are printable ASCII.
inline constexpr std::size_t kMostNodeName = 64;
inline constexpr std::size_t kMostServices = 4096;  ///< services of each kind, in a welcome
/// Events in one answer to WORK, and decisions in one WORK: below 32 KiB.
inline constexpr std::size_t kMostEventsAtOnce = 1024;
inline constexpr std::size_t kMostEventsHeld = 1 << 20;  ///< events and decisions, in one HELLO
inline constexpr std::uint16_t kNoBcid = 0xffff;

/// An event for a node. 16 bytes, in wire format.
struct AssignedEvent {
  static constexpr std::uint8_t kBuildOnly = 1;
  static constexpr std::uint8_t kLast = 2;  ///< fragments that no readout has brought by the end of its time are lost

  std::uint64_t id = 0;  ///< global: the extended L1 id, continued where its ECR counter wraps
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint16_t bcid = kNoBcid;
  std::uint8_t trigger_type = 0;
  std::uint8_t flags = 0;

  bool build_only() const { return (flags & kBuildOnly) != 0; }
  bool last() const { return (flags & kLast) != 0; }
  bool operator==(const AssignedEvent&) const = default;
};
static_assert(sizeof(AssignedEvent) == 16);

enum class Verdict : std::uint8_t {
  accepted,  ///< recorded
  rejected,
  debug,       ///< recorded without a decision: its selection failed, or the event was only built
  lost,        ///< no readout has a fragment of it
  given_back,  ///< the node makes room for an older event: assign this event again
};
inline constexpr std::uint8_t kVerdicts = 5;

/// The result of an event. 16 bytes, in wire format.
struct EventDecision {
  static constexpr std::uint8_t kPartial = 1;    ///< fragments were missing when it was built
  static constexpr std::uint8_t kBuildOnly = 2;  ///< the event was assigned with "build only"

  std::uint64_t id = 0;
  std::uint32_t bytes = 0;  ///< recorded bytes
  Verdict verdict = Verdict::accepted;
  std::uint8_t flags = 0;
  std::uint16_t reserved = 0;

  bool partial() const { return (flags & kPartial) != 0; }
  bool build_only() const { return (flags & kBuildOnly) != 0; }
  bool operator==(const EventDecision&) const = default;
};
static_assert(sizeof(EventDecision) == 16);

/// HELLO: the first request on each connection, and again when the supervisor asks for it. Begins a session.
struct NodeHello {
  std::uint16_t version = kAssignmentsVersion;
  std::uint64_t instance = 0;  ///< random number of the process: a restarted node has another one and holds nothing
  std::uint32_t slots = 0;     ///< events that it can take now, in addition to those it holds
  std::uint64_t session = 0;   ///< the node's previous session; 0: none
  std::uint64_t first = 0;     ///< number of the first decision here, in that session
  std::string name = {};
  /// Decisions that are not safe yet, in order: numbers 1, 2, ... of this session.
  std::vector<EventDecision> decisions = {};
  std::vector<AssignedEvent> events = {};  ///< events that are assigned to the node and not decided
  bool operator==(const NodeHello&) const = default;
};

/// The answer to HELLO.
struct NodeWelcome {
  std::uint16_t version = kAssignmentsVersion;
  std::uint32_t run_number = 0;
  std::uint32_t run_type = 0;
  std::uint64_t session = 0;
  std::uint64_t event_timeout_ns = 0;  ///< after this time an event goes to another node
  std::uint64_t patience_ns = 0;       ///< an idle WORK is answered after this time
  std::string system = {};
  std::vector<std::string> readouts = {};   ///< names of their services on the bus
  std::vector<std::string> recorders = {};  ///< names of the recorders' services on the bus
  std::vector<std::uint64_t> let_go = {};   ///< events of the HELLO that are no longer the node's: it drops them
  bool operator==(const NodeWelcome&) const = default;
};

/// The request WORK: reports decisions and asks for events.
struct NodeWork {
  std::uint64_t session = 0;
  std::uint64_t granted = 0;                  ///< sum of events accepted since HELLO: assigned + free slots. Never decreases
  std::uint64_t first = 0;                    ///< number of the first decision here
  std::vector<EventDecision> decisions = {};  ///< decisions, each reported once, in order
  bool operator==(const NodeWork&) const = default;
};

/// The answer to WORK: sent when there are events, or decisions have become safe, or another WORK has come, or after the
/// patience.
struct NodeOrders {
  static constexpr std::uint32_t kOver = 1;

  std::uint64_t safe = 0;   ///< decisions up to this number are safe: no process asks for them again
  std::uint64_t first = 0;  ///< number of the first event here, from 1 in each session
  std::uint32_t flags = 0;
  /// Number of older events that wait for room in the node: it gives back as many events that are newer than `newer_than`
  /// and wait for fragments.
  std::uint32_t give_back = 0;
  std::uint64_t newer_than = 0;
  std::vector<AssignedEvent> events = {};

  bool over() const { return (flags & kOver) != 0; }  ///< true: the run has no more events, and all decisions are safe
  bool operator==(const NodeOrders&) const = default;
};

// Appends a message. Texts are cut to their limits, and unprintable characters become `?`; other values must be within their
// limits.
void encode(const NodeHello& hello, std::vector<std::byte>& out);
void encode(const NodeWelcome& welcome, std::vector<std::byte>& out);
void encode(const NodeWork& work, std::vector<std::byte>& out);
void encode(const NodeOrders& orders, std::vector<std::byte>& out);

// Decodes whole messages and checks every number. The vectors of `out` keep their memory. If the version differs, only the
// version is read.
Decoded<void> decode(std::span<const std::byte> bytes, NodeHello& out);
Decoded<void> decode(std::span<const std::byte> bytes, NodeWelcome& out);
Decoded<void> decode(std::span<const std::byte> bytes, NodeWork& out);
Decoded<void> decode(std::span<const std::byte> bytes, NodeOrders& out);

}  // namespace rodeo::formats
