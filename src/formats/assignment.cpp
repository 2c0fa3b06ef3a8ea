#include "formats/assignment.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/sentence.h"

namespace rodeo::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers and records are copied as they are");

constexpr std::uint16_t kBunchCrossings = 3564;

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  template <std::integral T>
  void number(const char*, T value) {
    add(&value, sizeof value);
  }
  void text(const char*, std::string_view text, std::size_t most) {
    text = text.substr(0, most);
    number("", static_cast<std::uint16_t>(text.size()));
    for (const char letter : text) out_.push_back(static_cast<std::byte>(base::printable(letter) ? letter : '?'));
  }
  void texts(const char* name, const std::vector<std::string>& texts) {
    assert(texts.size() <= kMostServices);
    number("", static_cast<std::uint32_t>(texts.size()));
    for (const std::string& one : texts) text(name, one, kMostNodeName);
  }
  template <typename T>
  void records(const char*, const std::vector<T>& records, std::size_t most) {
    assert(records.size() <= most);
    (void)most;
    number("", static_cast<std::uint32_t>(records.size()));
    add(records.data(), records.size() * sizeof(T));
  }
  void zero() { number("", std::uint16_t{0}); }
  void flags(const char*, std::uint32_t value, std::uint32_t) { number("", value); }

 private:
  void add(const void* from, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    out_.insert(out_.end(), begin, begin + bytes);
  }
  std::vector<std::byte>& out_;
};

/// After the first error, all values read are zero or empty; end() returns that error.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <std::integral T>
  void number(const char* field, T& value) {
    value = 0;
    copy(field, &value, sizeof value);
  }
  void text(const char* field, std::string& text, std::size_t most) {
    std::uint16_t size = 0;
    number(field, size);
    if (size > most) return fail(DecodeFault::too_large, at_ - 2, field, size, most);
    if (!room(field, size)) return;
    text.assign(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    const auto bad = std::ranges::find_if_not(text, base::printable);
    if (bad != text.end())
      fail(DecodeFault::unknown, at_ - static_cast<std::size_t>(text.end() - bad), field, static_cast<unsigned char>(*bad),
           '?');
  }
  void texts(const char* field, std::vector<std::string>& texts) {
    std::uint32_t count = 0;
    number(field, count);
    if (count > kMostServices) return fail(DecodeFault::too_large, at_ - 4, field, count, kMostServices);
    // Each text has at least two bytes: this limits the memory for a wrong count.
    if (!room(field, std::size_t{2} * count)) return;
    texts.resize(count);
    for (std::string& one : texts) text(field, one, kMostNodeName);
  }
  template <typename T>
  void records(const char* field, std::vector<T>& records, std::size_t most) {
    std::uint32_t count = 0;
    number(field, count);
    records.clear();
    if (count > most) return fail(DecodeFault::too_large, at_ - 4, field, count, most);
    if (!room(field, count * sizeof(T))) return;
    records.resize(count);
    const std::size_t begin = at_;
    if (count > 0) copy(field, records.data(), count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) check(records[i], begin + i * sizeof(T));
  }
  void zero() {
    std::uint16_t value = 0;
    number("reserved bytes", value);
    if (value != 0) fail(DecodeFault::wrong_value, at_ - 2, "reserved bytes", value, 0);
  }
  void flags(const char* field, std::uint32_t& value, std::uint32_t known) {
    number(field, value);
    if ((value & ~known) != 0) fail(DecodeFault::unknown, at_ - 4, field, value, known);
  }

  bool failed() const { return error_.has_value(); }
  Decoded<void> end() {
    if (at_ != bytes_.size()) fail(DecodeFault::wrong_value, at_, "end of the message", bytes_.size(), at_);
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  void check(std::uint64_t, std::size_t) {}
  void check(const AssignedEvent& event, std::size_t at) {
    constexpr std::uint8_t kKnown = AssignedEvent::kBuildOnly | AssignedEvent::kLast;
    if ((event.flags & ~kKnown) != 0) fail(DecodeFault::unknown, at + 15, "flags of an event", event.flags, kKnown);
    if (event.bcid >= kBunchCrossings && event.bcid != kNoBcid)
      fail(DecodeFault::too_large, at + 12, "BCID of an event", event.bcid, kBunchCrossings - 1);
  }
  void check(const EventDecision& decision, std::size_t at) {
    constexpr std::uint8_t kKnown = EventDecision::kPartial | EventDecision::kBuildOnly;
    if (static_cast<std::uint8_t>(decision.verdict) >= kVerdicts)
      fail(DecodeFault::unknown, at + 12, "verdict", static_cast<std::uint8_t>(decision.verdict), kVerdicts - 1);
    if ((decision.flags & ~kKnown) != 0) fail(DecodeFault::unknown, at + 13, "flags of a decision", decision.flags, kKnown);
    if (decision.reserved != 0) fail(DecodeFault::wrong_value, at + 14, "reserved bytes", decision.reserved, 0);
  }

  bool room(const char* field, std::size_t bytes) {
    if (bytes > bytes_.size() - at_) fail(DecodeFault::truncated, at_, field, bytes_.size() - at_, bytes);
    return !error_;
  }
  void copy(const char* field, void* to, std::size_t bytes) {
    if (!room(field, bytes)) return;
    std::memcpy(to, bytes_.data() + at_, bytes);
    at_ += bytes;
  }
  void fail(DecodeFault fault, std::size_t at, const char* field, std::uint64_t found, std::uint64_t expected) {
    if (!error_) error_ = DecodeError{fault, at, field, found, expected};
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::optional<DecodeError> error_;
};

/// The fields of a message in order, for reading and writing. `version` has the same place in every version.
template <typename M>
void fields(auto& io, M& m) {
  using T = std::remove_const_t<M>;
  if constexpr (std::same_as<T, NodeHello>) {
    io.zero();
    io.number("slots", m.slots);
    io.number("instance", m.instance);
    io.number("session", m.session);
    io.number("number of the first decision", m.first);
    io.text("name", m.name, kMostNodeName);
    io.records("decisions", m.decisions, kMostEventsHeld);
    io.records("events", m.events, kMostEventsHeld);
  } else if constexpr (std::same_as<T, NodeWelcome>) {
    io.zero();
    io.number("run number", m.run_number);
    io.number("run type", m.run_type);
    io.number("session", m.session);
    io.number("time-out of events", m.event_timeout_ns);
    io.number("patience", m.patience_ns);
    io.text("system", m.system, kMostNodeName);
    io.texts("readouts", m.readouts);
    io.texts("recorders", m.recorders);
    io.records("events to let go", m.let_go, kMostEventsHeld);
  } else if constexpr (std::same_as<T, NodeWork>) {
    io.number("session", m.session);
    io.number("granted", m.granted);
    io.number("number of the first decision", m.first);
    io.records("decisions", m.decisions, kMostEventsAtOnce);
  } else {
    static_assert(std::same_as<T, NodeOrders>);
    io.number("safe decisions", m.safe);
    io.number("number of the first event", m.first);
    io.flags("flags", m.flags, NodeOrders::kOver);
    io.number("events to give back", m.give_back);
    io.number("id that they are newer than", m.newer_than);
    io.records("events", m.events, kMostEventsAtOnce);
  }
}

template <typename M>
void write(const M& message, std::vector<std::byte>& out) {
  Writer to(out);
  if constexpr (requires { message.version; }) to.number("version", message.version);
  fields(to, message);
}

template <typename M>
Decoded<void> read(std::span<const std::byte> bytes, M& out) {
  Reader from(bytes);
  if constexpr (requires { out.version; }) {
    from.number("version", out.version);
    if (!from.failed() && out.version != kAssignmentsVersion) {
      out = M{.version = out.version};
      return {};
    }
  }
  fields(from, out);
  return from.end();
}

}  // namespace

void encode(const NodeHello& hello, std::vector<std::byte>& out) { write(hello, out); }
void encode(const NodeWelcome& welcome, std::vector<std::byte>& out) { write(welcome, out); }
void encode(const NodeWork& work, std::vector<std::byte>& out) { write(work, out); }
void encode(const NodeOrders& orders, std::vector<std::byte>& out) { write(orders, out); }

Decoded<void> decode(std::span<const std::byte> bytes, NodeHello& out) { return read(bytes, out); }
Decoded<void> decode(std::span<const std::byte> bytes, NodeWelcome& out) { return read(bytes, out); }
Decoded<void> decode(std::span<const std::byte> bytes, NodeWork& out) { return read(bytes, out); }
Decoded<void> decode(std::span<const std::byte> bytes, NodeOrders& out) { return read(bytes, out); }

}  // namespace rodeo::formats
