#include "trigger/protocol.h"

#include <algorithm>
#include <type_traits>

namespace rodeo::trigger::protocol {
namespace {

constexpr std::size_t kRangeBytes = 16;
constexpr std::uint16_t kBegins = 1;  // flag of TRIGGERS
constexpr std::uint16_t kBunchCrossings = 3564;

bool printable(char c) { return c >= ' ' && c <= '~'; }

/// Reads what is there; what is not there is 0, and `good()` is false from then on.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T number() {
    if (bytes_.size() < sizeof(T)) {
      good_ = false;
      bytes_ = {};
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<std::uint64_t>(bytes_[i]) << (8 * i);
    bytes_ = bytes_.subspan(sizeof(T));
    return static_cast<T>(value);
  }

  std::string text() {
    const std::size_t size = number<std::uint8_t>();
    if (bytes_.size() < size) {
      good_ = false;
      return {};
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    good_ = good_ && std::ranges::all_of(text, printable);
    return text;
  }

  std::size_t left() const { return bytes_.size(); }
  /// Everything was there, and nothing else is.
  bool whole() const { return good_ && bytes_.empty(); }
  bool good() const { return good_; }

 private:
  std::span<const std::byte> bytes_;
  bool good_ = true;
};

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}
  template <typename T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void text(const std::string& text) {
    const std::size_t size = std::min(text.size(), kMostText);
    number(static_cast<std::uint8_t>(size));
    for (std::size_t i = 0; i < size; ++i) out_.push_back(static_cast<std::byte>(printable(text[i]) ? text[i] : '?'));
  }

 private:
  std::vector<std::byte>& out_;
};

std::expected<Message, Wrong> decode_hello(Reader in) {
  Hello hello;
  hello.version = in.number<std::uint16_t>();
  if (in.good() && hello.version != kVersion) return Hello{.version = hello.version};
  hello.functions = in.number<std::uint16_t>();
  hello.seed = in.number<std::uint64_t>();
  hello.system = in.text();
  hello.name = in.text();
  if (!in.whole()) return std::unexpected("a HELLO of wrong length or text");
  if (hello.functions == 0 || hello.functions > kMostFunctions)
    return std::unexpected("a HELLO with no or too many functions");
  if (hello.name.empty()) return std::unexpected("a HELLO without name");
  return hello;
}

std::expected<Message, Wrong> decode_welcome(Reader in) {
  Welcome welcome;
  welcome.version = in.number<std::uint16_t>();
  if (in.good() && welcome.version != kVersion) return Welcome{.version = welcome.version};
  const auto zero = in.number<std::uint16_t>();
  welcome.timeout_ms = in.number<std::uint32_t>();
  welcome.sequence = in.number<std::uint64_t>();
  welcome.name = in.text();
  if (!in.whole() || zero != 0) return std::unexpected("a WELCOME of wrong length or text");
  return welcome;
}

std::expected<Message, Wrong> decode_refused(Reader in) {
  Refused refused;
  refused.version = in.number<std::uint16_t>();
  const auto reason = in.number<std::uint16_t>();
  if (in.good() && refused.version != kVersion) return Refused{.version = refused.version};
  refused.why = in.text();
  if (!in.whole()) return std::unexpected("a REFUSED of wrong length or text");
  if (reason < 1 || reason > static_cast<std::uint16_t>(Reason::too_many))
    return std::unexpected("a REFUSED for no known reason");
  refused.reason = static_cast<Reason>(reason);
  return refused;
}

std::expected<Message, Wrong> decode_state(Reader in) {
  State state;
  state.ready = in.number<std::uint16_t>();
  const auto busy = in.number<std::uint8_t>();
  const auto zero = in.number<std::uint8_t>();
  state.hold = in.number<std::uint32_t>();
  state.granted = in.number<std::uint64_t>();
  if (!in.whole()) return std::unexpected("a STATE of wrong length");
  if (busy > 1 || zero != 0 || state.ready > kMostFunctions) return std::unexpected("a STATE that cannot be");
  state.busy = busy != 0;
  return state;
}

std::expected<Message, Wrong> decode_triggers(Reader in) {
  Triggers triggers;
  triggers.time_ns = in.number<std::uint64_t>();
  triggers.sequence = in.number<std::uint64_t>();
  triggers.ecrs = in.number<std::uint32_t>();
  triggers.held = in.number<std::uint32_t>();
  const auto flags = in.number<std::uint16_t>();
  const std::size_t count = in.number<std::uint16_t>();
  const auto zero = in.number<std::uint32_t>();
  if (!in.good() || in.left() != count * kRangeBytes) return std::unexpected("TRIGGERS of wrong length");
  if (flags > kBegins || zero != 0 || count > kMostRanges) return std::unexpected("TRIGGERS that cannot be");
  triggers.begins = flags == kBegins;
  triggers.ranges.reserve(count);
  triggers.firsts.reserve(count);
  std::uint64_t sequence = triggers.sequence;
  for (std::size_t i = 0; i < count; ++i) {
    TriggerRange range{.sequence = sequence};
    range.l1id = in.number<std::uint32_t>();
    range.count = in.number<std::uint32_t>();
    range.orbit = in.number<std::uint32_t>();
    const auto bcid = in.number<std::uint16_t>();
    const auto type = in.number<std::uint16_t>();
    if (range.count == 0 || range.count > 0x1000000U - (range.l1id & 0xffffffU) ||
        sequence > ~std::uint64_t{0} - range.count)
      return std::unexpected("a range of triggers that goes round, or has none");
    if (bcid >= kBunchCrossings) return std::unexpected("a BCID above 3563");
    sequence += range.count;
    triggers.ranges.push_back(range);
    triggers.firsts.push_back({bcid, type});
  }
  return triggers;
}

}  // namespace

std::expected<Header, Wrong> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  Reader in(bytes);
  if (in.number<std::uint32_t>() != kMagic) return std::unexpected("a wrong magic number");
  const auto type = in.number<std::uint16_t>();
  const auto zero = in.number<std::uint16_t>();
  const auto body_bytes = in.number<std::uint32_t>();
  if (type < 1 || type > static_cast<std::uint16_t>(Type::triggers) || zero != 0)
    return std::unexpected("an unknown type of message");
  if (body_bytes > kMostBodyBytes) return std::unexpected("a message of more than 64 KiB");
  return Header{static_cast<Type>(type), body_bytes};
}

std::expected<Message, Wrong> decode(Type type, std::span<const std::byte> body) {
  const Reader in(body);
  switch (type) {
    case Type::hello: return decode_hello(in);
    case Type::welcome: return decode_welcome(in);
    case Type::refused: return decode_refused(in);
    case Type::state: return decode_state(in);
    case Type::triggers: return decode_triggers(in);
  }
  return std::unexpected("an unknown type of message");
}

void encode(const Message& message, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  Writer to(out);
  to.number(kMagic);
  to.number(static_cast<std::uint16_t>(message.index() + 1));
  to.number(std::uint16_t{0});
  to.number(std::uint32_t{0});
  if (const auto* hello = std::get_if<Hello>(&message)) {
    to.number(hello->version);
    to.number(hello->functions);
    to.number(hello->seed);
    to.text(hello->system);
    to.text(hello->name);
  } else if (const auto* welcome = std::get_if<Welcome>(&message)) {
    to.number(welcome->version);
    to.number(std::uint16_t{0});
    to.number(welcome->timeout_ms);
    to.number(welcome->sequence);
    to.text(welcome->name);
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    to.number(refused->version);
    to.number(static_cast<std::uint16_t>(refused->reason));
    to.text(refused->why);
  } else if (const auto* state = std::get_if<State>(&message)) {
    to.number(state->ready);
    to.number(static_cast<std::uint8_t>(state->busy ? 1 : 0));
    to.number(std::uint8_t{0});
    to.number(state->hold);
    to.number(state->granted);
  } else if (const auto* triggers = std::get_if<Triggers>(&message)) {
    to.number(triggers->time_ns);
    to.number(triggers->sequence);
    to.number(triggers->ecrs);
    to.number(triggers->held);
    to.number(triggers->begins ? kBegins : std::uint16_t{0});
    to.number(static_cast<std::uint16_t>(triggers->ranges.size()));
    to.number(std::uint32_t{0});
    for (std::size_t i = 0; i < triggers->ranges.size(); ++i) {
      to.number(triggers->ranges[i].l1id);
      to.number(triggers->ranges[i].count);
      to.number(triggers->ranges[i].orbit);
      to.number(triggers->firsts[i].bcid);
      to.number(triggers->firsts[i].type);
    }
  }
  const auto body = static_cast<std::uint32_t>(out.size() - begin - kHeaderBytes);
  for (std::size_t i = 0; i < 4; ++i) out[begin + 8 + i] = static_cast<std::byte>(body >> (8 * i));
}

}  // namespace rodeo::trigger::protocol
