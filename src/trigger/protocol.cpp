#include "trigger/protocol.h"

#include <algorithm>
#include <concepts>
#include <functional>
#include <type_traits>

#include "base/sentence.h"

namespace rodeo::trigger::protocol {
namespace {

constexpr std::size_t kRangeBytes = 24;
constexpr std::size_t kMarkBytes = 12;
constexpr std::uint16_t kBegins = 1;  // flag in TRIGGERS
constexpr std::uint16_t kBunchCrossings = 3564;

/// Stands for reserved bytes.
template <typename T>
struct Zero {};

/// Reads values in order. A missing value is 0; good() is false after a missing or impossible value.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (take(values), ...);
  }
  void expect(bool good) { good_ = good_ && good; }

  std::size_t left() const { return bytes_.size(); }
  /// True if all values were there and no bytes are left.
  bool whole() const { return good_ && bytes_.empty(); }
  bool good() const { return good_; }

 private:
  template <typename T>
  void take(T& value) {
    std::uint64_t number = 0;
    expect(bytes_.size() >= sizeof(T));
    if (!good_) bytes_ = {};
    for (std::size_t i = 0; good_ && i < sizeof(T); ++i) number |= std::to_integer<std::uint64_t>(bytes_[i]) << (8 * i);
    bytes_ = bytes_.subspan(std::min(sizeof(T), bytes_.size()));
    value = static_cast<T>(number);
  }
  template <typename T>
  void take(Zero<T>&) {
    T value = 0;
    take(value);
    expect(value == 0);
  }
  void take(bool& value) {
    std::uint8_t number = 0;
    take(number);
    expect(number <= 1);
    value = number == 1;
  }
  void take(std::string& text) {
    std::uint8_t size = 0;
    take(size);
    expect(bytes_.size() >= size);
    if (!good_) return;
    text.assign(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    expect(std::ranges::all_of(text, base::printable));
  }
  /// Takes all bytes that are left.
  void take(std::vector<std::byte>& bytes) {
    bytes.assign(bytes_.begin(), bytes_.end());
    bytes_ = {};
  }

  std::span<const std::byte> bytes_;
  bool good_ = true;
};

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  template <typename... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }

 private:
  template <typename T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  template <typename T>
  void put(Zero<T>) {
    put(T{0});
  }
  void put(const std::vector<std::byte>& bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void put(const std::string& text) {
    const std::size_t size = std::min(text.size(), kMostText);
    put(static_cast<std::uint8_t>(size));
    for (std::size_t i = 0; i < size; ++i) out_.push_back(static_cast<std::byte>(base::printable(text[i]) ? text[i] : '?'));
  }

  std::vector<std::byte>& out_;
};

/// The fields of a message in order, for reading and writing.
template <typename M>
void fields(auto& io, M& m) {
  using T = std::remove_const_t<M>;
  Zero<std::uint8_t> zero;
  Zero<std::uint16_t> zero16;
  Zero<std::uint32_t> zero32;
  if constexpr (std::same_as<T, Hello>) io(m.version, m.functions, m.seed, m.system, m.name);
  if constexpr (std::same_as<T, Welcome>) {
    auto count = static_cast<std::uint16_t>(m.marks.size());
    io(m.version, zero16, m.timeout_ms, m.sequence, m.name, count);
    if constexpr (!std::is_const_v<M>) {
      io.expect(count <= kMostMarks && io.left() == count * kMarkBytes);
      if (!io.good()) return;
      m.marks.resize(count);
    }
    for (auto& mark : m.marks) io(mark.id, mark.lumi_block, mark.scan_step);
  }
  if constexpr (std::same_as<T, Refused>) io(m.version, m.reason, m.why);
  if constexpr (std::same_as<T, Greeting>) io(m.control);
  if constexpr (std::same_as<T, State>) io(m.ready, m.busy, zero, m.hold, m.granted);
  if constexpr (std::same_as<T, Triggers>) {
    std::uint16_t flags = m.begins ? kBegins : 0;
    auto count = static_cast<std::uint16_t>(m.ranges.size());
    io(m.time_ns, m.sequence, m.ecrs, m.held, flags, count, zero32);
    if constexpr (!std::is_const_v<M>) {
      io.expect(flags <= kBegins && count <= kMostRanges && io.left() == count * kRangeBytes);
      if (!io.good()) return;
      m.begins = flags == kBegins;
      m.ranges.resize(count);
      m.firsts.resize(count);
    }
    for (std::size_t i = 0; i < count; ++i)
      io(m.ranges[i].l1id, m.ranges[i].count, m.ranges[i].orbit, m.firsts[i].bcid, m.firsts[i].type, m.ranges[i].epoch,
         m.ranges[i].lumi_block, m.ranges[i].scan_step);
  }
}

/// Checks the values of a complete message. Returns an empty text if they are possible.
Wrong wrong_in(const Hello& hello) {
  if (hello.functions == 0 || hello.functions > kMostFunctions) return "a HELLO with no or too many functions";
  return hello.name.empty() ? "a HELLO without name" : "";
}

Wrong wrong_in(const Welcome& welcome) {
  const auto down = std::ranges::adjacent_find(welcome.marks, std::greater_equal{}, &TriggerMark::id);
  return down == welcome.marks.end() ? "" : "marks that do not increase";
}

Wrong wrong_in(const Refused& refused) {
  return refused.reason < Reason::version || refused.reason > Reason::secret ? "a REFUSED with an unknown reason" : "";
}

Wrong wrong_in(const Greeting& greeting) { return greeting.control.empty() ? "an empty GREETING" : ""; }

Wrong wrong_in(const State& state) { return state.ready > kMostFunctions ? "a STATE of too many functions" : ""; }

/// Checks the ranges and numbers them.
Wrong wrong_in(Triggers& triggers) {
  std::uint64_t sequence = triggers.sequence;
  for (std::size_t i = 0; i < triggers.ranges.size(); ++i) {
    TriggerRange& range = triggers.ranges[i];
    range.sequence = sequence;
    if (range.count == 0 || range.count > 0x1000000U - (range.l1id & 0xffffffU) ||
        sequence > ~std::uint64_t{0} - range.count)
      return "a range of triggers that wraps or is empty";
    if (i > 0 && range.id_of(0) <= triggers.ranges[i - 1].id_of(triggers.ranges[i - 1].count - 1))
      return "ids that do not increase";
    if (triggers.firsts[i].bcid >= kBunchCrossings) return "a BCID above 3563";
    sequence += range.count;
  }
  return "";
}

template <typename T>
std::expected<Message, Wrong> decode_as(Reader in, Wrong not_whole) {
  T message;
  if constexpr (requires { message.version; }) {
    Reader ahead = in;
    ahead(message.version);
    if (ahead.good() && message.version != kVersion) return T{.version = message.version};
  }
  fields(in, message);
  if (!in.whole()) return std::unexpected(not_whole);
  if (const Wrong wrong = wrong_in(message); !wrong.empty()) return std::unexpected(wrong);
  return message;
}

}  // namespace

std::expected<Header, Wrong> decode_header(std::span<const std::byte, kHeaderBytes> bytes) {
  Reader in(bytes);
  std::uint32_t magic = 0;
  Header header;
  Zero<std::uint16_t> zero;
  in(magic, header.type, zero, header.body_bytes);
  if (magic != kMagic) return std::unexpected("a wrong magic number");
  if (!in.whole() || header.type < Type::hello || header.type > Type::greeting)
    return std::unexpected("an unknown type of message");
  if (header.body_bytes > kMostBodyBytes) return std::unexpected("a message of more than 64 KiB");
  return header;
}

std::expected<Message, Wrong> decode(Type type, std::span<const std::byte> body) {
  const Reader in(body);
  switch (type) {
    case Type::hello: return decode_as<Hello>(in, "a HELLO of wrong length or text");
    case Type::welcome: return decode_as<Welcome>(in, "a WELCOME of wrong length or text");
    case Type::refused: return decode_as<Refused>(in, "a REFUSED of wrong length or text");
    case Type::state: return decode_as<State>(in, "a STATE of wrong length or with impossible values");
    case Type::triggers: return decode_as<Triggers>(in, "TRIGGERS of wrong length or with impossible values");
    case Type::greeting: return decode_as<Greeting>(in, "");
  }
  return std::unexpected("an unknown type of message");
}

void encode(const Message& message, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  Writer to(out);
  to(kMagic, static_cast<std::uint16_t>(message.index() + 1), Zero<std::uint16_t>{}, std::uint32_t{0});
  std::visit([&](const auto& of) { fields(to, of); }, message);
  const auto body = static_cast<std::uint32_t>(out.size() - begin - kHeaderBytes);
  for (std::size_t i = 0; i < 4; ++i) out[begin + 8 + i] = static_cast<std::byte>(body >> (8 * i));
}

}  // namespace rodeo::trigger::protocol
