#include "formats/network_control.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/sentence.h"

namespace rodeo::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::uint32_t kMarker = 0x4C544352;  // "RCTL"
constexpr std::uint16_t kSecretRequired = 1;
constexpr std::uint16_t kMonitor = 1;
constexpr std::uint16_t kUnbuffered = 2;
constexpr std::uint16_t kTriggerList = 4;
constexpr std::uint16_t kResumed = 1;

// The highest number of bytes behind the header, by type. A HELLO of another version may be longer.
constexpr std::array<std::size_t, std::variant_size_v<ControlMessage>> kMost{
    4096,
    32,
    8 + 8 + 2 + 4 + 4 + 2 + kMostControlName + 2 + kMostControlProvider + 2 + kMostControlAddress + 2 +
        8 * kMostControlLinks,
    2 + 16 + 4 + 4 + 2 + kMostControlAddress,
    2 + kMostControlCode + 2 + kMostControlWhat,
    8 + 8,
    8 + 2 + kMostControlLosses * (2 + kMostControlName + 8),
    0,
    2 + kMostControlName + 2 + 8 * kMostControlLinks,
    0,
    8 + 2 + 2 + kMostControlBytesToFrontEnd,
    8 + 2 + kMostControlCode + 2 + kMostControlWhat + 2 + kMostControlBytesToFrontEnd,
    4 + 4 + 2 + kMostControlName + 2 + kMostControlProvider + 2 + kMostControlAddress};
static_assert(*std::max_element(kMost.begin(), kMost.end()) <= kMostControlBytes);

// ---- writing

void add(std::vector<std::byte>& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

template <typename T>
  requires std::is_integral_v<T>
void add(std::vector<std::byte>& to, T number) {
  add(to, std::as_bytes(std::span(&number, 1)));
}

void add_text(std::vector<std::byte>& to, std::string_view text, std::size_t most) {
  text = text.substr(0, most);
  add(to, static_cast<std::uint16_t>(text.size()));
  for (const char letter : text) to.push_back(static_cast<std::byte>(base::printable(letter) ? letter : '?'));
}

void add_address(std::vector<std::byte>& to, std::span<const std::byte> address) {
  assert(address.size() <= kMostControlAddress);
  add(to, static_cast<std::uint16_t>(address.size()));
  add(to, address);
}

void add_message(std::vector<std::byte>& to, std::span<const std::byte> message) {
  assert(message.size() <= kMostControlBytesToFrontEnd);
  add(to, static_cast<std::uint16_t>(message.size()));
  add(to, message);
}

void add_links(std::vector<std::byte>& to, std::span<const Fid> links) {
  assert(links.size() <= kMostControlLinks);
  add(to, static_cast<std::uint16_t>(links.size()));
  for (const Fid fid : links) add(to, fid.value);
}

constexpr std::uint16_t flag(bool set, std::uint16_t bit) { return set ? bit : std::uint16_t{0}; }

void add_fields(std::vector<std::byte>& to, const ControlHello& hello) {
  add(to, kMarker);
  add(to, hello.version);
  add(to, hello.page_version);
  add(to, flag(hello.secret_required, kSecretRequired));
  add(to, hello.instance);
  add(to, std::span(hello.nonce));
  add_text(to, hello.program, kMostControlProgram);
}

void add_fields(std::vector<std::byte>& to, const ControlProof& proof) { add(to, std::span(proof.mac)); }

void add_fields(std::vector<std::byte>& to, const ControlSubscribe& subscribe) {
  add(to, subscribe.session);
  add(to, subscribe.taken);
  add(to, static_cast<std::uint16_t>(flag(subscribe.monitor, kMonitor) | flag(subscribe.unbuffered, kUnbuffered) |
                                     flag(subscribe.trigger_list, kTriggerList)));
  add(to, subscribe.page_bytes);
  add(to, subscribe.pages);
  add_text(to, subscribe.name, kMostControlName);
  add_text(to, subscribe.provider, kMostControlProvider);
  add_address(to, subscribe.address);
  add_links(to, subscribe.links);
}

void add_fields(std::vector<std::byte>& to, const ControlAccept& accept) {
  add(to, flag(accept.resumed, kResumed));
  add(to, std::span(accept.token));
  add(to, accept.page_bytes);
  add(to, accept.pages);
  add_address(to, accept.address);
}

void add_fields(std::vector<std::byte>& to, const ControlRefuse& refuse) {
  add_text(to, refuse.code, kMostControlCode);
  add_text(to, refuse.what, kMostControlWhat);
}

void add_fields(std::vector<std::byte>& to, const ControlCredit& credit) {
  add(to, credit.pages);
  add(to, credit.taken);
}

void add_fields(std::vector<std::byte>& to, const ControlEnd& end) {
  assert(end.losses.size() <= kMostControlLosses);
  add(to, end.pages);
  add(to, static_cast<std::uint16_t>(end.losses.size()));
  for (const ControlLoss& loss : end.losses) {
    add_text(to, loss.name, kMostControlName);
    add(to, loss.value);
  }
}

void add_fields(std::vector<std::byte>&, const ControlLeave&) {}

void add_fields(std::vector<std::byte>& to, const ControlClaim& claim) {
  add_text(to, claim.name, kMostControlName);
  add_links(to, claim.links);
}

void add_fields(std::vector<std::byte>&, const ControlClaimed&) {}

void add_fields(std::vector<std::byte>& to, const ControlSend& send) {
  add(to, send.number);
  add(to, send.link);
  add_message(to, send.message);
}

void add_fields(std::vector<std::byte>& to, const ControlAnswer& answer) {
  add(to, answer.number);
  add_text(to, answer.code, kMostControlCode);
  add_text(to, answer.what, kMostControlWhat);
  add_message(to, answer.answer);
}

void add_fields(std::vector<std::byte>& to, const ControlCall& call) {
  add(to, call.pages);
  add(to, call.requests);
  add_text(to, call.name, kMostControlName);
  add_text(to, call.provider, kMostControlProvider);
  add_address(to, call.address);
}

// ---- reading

// Reads the fields of one message in order. After the first error all values are zero or empty; end() returns that error.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> body) : body_(body) {}

  template <typename T>
  T number(const char* field) {
    T value{};
    copy(std::as_writable_bytes(std::span(&value, 1)), field);
    return value;
  }

  template <typename T>
  T number(const char* field, T most) {
    const std::size_t at = at_;
    const T value = number<T>(field);
    if (value > most) fail(DecodeFault::too_large, at, field, value, most);
    return value;
  }

  std::uint16_t flags(std::uint16_t known) {
    const std::size_t at = at_;
    const auto value = number<std::uint16_t>("flags");
    if ((value & ~known) != 0) fail(DecodeFault::unknown, at, "flags", value, known);
    return value;
  }

  template <std::size_t N>
  std::array<std::byte, N> array(const char* field) {
    std::array<std::byte, N> bytes{};
    copy(bytes, field);
    return bytes;
  }

  std::vector<std::byte> bytes(const char* field, std::size_t most) {
    const auto found = counted(field, most);
    return {found.begin(), found.end()};
  }

  std::string text(const char* field, std::size_t most) {
    const auto bytes = counted(field, most);
    std::string text;
    for (const std::byte byte : bytes) text.push_back(static_cast<char>(byte));
    const auto bad = std::find_if_not(text.begin(), text.end(), base::printable);
    if (bad == text.end()) return text;
    const auto left = static_cast<std::size_t>(text.end() - bad);
    fail(DecodeFault::unknown, at_ - left, field, static_cast<unsigned char>(*bad), '?');
    return {};
  }

  std::vector<Fid> links() {
    const std::size_t begin = at_;
    const std::span<const std::byte> bytes = read_bytes(8 * std::size_t{number<std::uint16_t>("number of links")}, "links");
    std::vector<Fid> links(bytes.size() / 8);
    if (!links.empty()) std::memcpy(links.data(), bytes.data(), bytes.size());
    std::vector<Fid> sorted = links;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) fail(DecodeFault::wrong_value, begin, "link that occurs twice", twice->value, 0);
    return links;
  }

  void fail(DecodeFault fault, std::size_t at, const char* field, std::uint64_t found, std::uint64_t expected) {
    if (!error_) error_ = DecodeError{fault, kControlHeaderBytes + at, field, found, expected};
  }

  template <typename T>
  Decoded<ControlMessage> end(T message) {
    if (at_ != body_.size()) fail(DecodeFault::wrong_value, at_, "end of the message", body_.size(), at_);
    if (error_) return std::unexpected(*error_);
    return ControlMessage(std::move(message));
  }

  bool failed() const { return error_.has_value(); }

 private:
  std::span<const std::byte> read_bytes(std::size_t bytes, const char* field) {
    if (bytes > body_.size() - at_) fail(DecodeFault::truncated, at_, field, body_.size() - at_, bytes);
    if (error_) return {};
    at_ += bytes;
    return body_.subspan(at_ - bytes, bytes);
  }

  void copy(std::span<std::byte> to, const char* field) {
    const auto from = read_bytes(to.size(), field);
    std::copy(from.begin(), from.end(), to.begin());
  }

  std::span<const std::byte> counted(const char* field, std::size_t most) {
    return read_bytes(number<std::uint16_t>(field, static_cast<std::uint16_t>(most)), field);
  }

  std::span<const std::byte> body_;
  std::size_t at_ = 0;
  std::optional<DecodeError> error_;
};

Decoded<ControlMessage> read_hello(std::span<const std::byte> body) {
  Fields fields(body);
  if (const auto marker = fields.number<std::uint32_t>("marker"); marker != kMarker)
    fields.fail(DecodeFault::wrong_value, 0, "marker", marker, kMarker);
  ControlHello hello;
  hello.version = fields.number<std::uint16_t>("version");
  if (!fields.failed() && hello.version != kControlVersion) return ControlMessage(hello);
  hello.page_version = fields.number<std::uint16_t>("version of pages");
  hello.secret_required = fields.flags(kSecretRequired) != 0;
  hello.instance = fields.number<std::uint64_t>("instance");
  hello.nonce = fields.array<32>("nonce");
  hello.program = fields.text("program", kMostControlProgram);
  return fields.end(std::move(hello));
}

Decoded<ControlMessage> read_proof(std::span<const std::byte> body) {
  Fields fields(body);
  return fields.end(ControlProof{fields.array<32>("proof")});
}

Decoded<ControlMessage> read_subscribe(std::span<const std::byte> body) {
  Fields fields(body);
  ControlSubscribe subscribe;
  subscribe.session = fields.number<std::uint64_t>("session");
  subscribe.taken = fields.number<std::uint64_t>("pages taken");
  const std::uint16_t flags = fields.flags(kMonitor | kUnbuffered | kTriggerList);
  subscribe.monitor = (flags & kMonitor) != 0;
  subscribe.unbuffered = (flags & kUnbuffered) != 0;
  subscribe.trigger_list = (flags & kTriggerList) != 0;
  subscribe.page_bytes = fields.number("size of a page", kMostControlPageBytes);
  subscribe.pages = fields.number("number of pages", kMostControlPages);
  subscribe.name = fields.text("name", kMostControlName);
  subscribe.provider = fields.text("provider", kMostControlProvider);
  subscribe.address = fields.bytes("address", kMostControlAddress);
  subscribe.links = fields.links();
  return fields.end(std::move(subscribe));
}

Decoded<ControlMessage> read_accept(std::span<const std::byte> body) {
  Fields fields(body);
  ControlAccept accept;
  accept.resumed = fields.flags(kResumed) != 0;
  accept.token = fields.array<16>("token");
  accept.page_bytes = fields.number("size of a page", kMostControlPageBytes);
  accept.pages = fields.number("number of pages", kMostControlPages);
  accept.address = fields.bytes("address", kMostControlAddress);
  return fields.end(std::move(accept));
}

Decoded<ControlMessage> read_refuse(std::span<const std::byte> body) {
  Fields fields(body);
  ControlRefuse refuse;
  refuse.code = fields.text("code", kMostControlCode);
  refuse.what = fields.text("what", kMostControlWhat);
  return fields.end(std::move(refuse));
}

Decoded<ControlMessage> read_credit(std::span<const std::byte> body) {
  Fields fields(body);
  ControlCredit credit;
  credit.pages = fields.number<std::uint64_t>("pages");
  credit.taken = fields.number<std::uint64_t>("pages taken");
  return fields.end(credit);
}

Decoded<ControlMessage> read_end(std::span<const std::byte> body) {
  Fields fields(body);
  ControlEnd end{.pages = fields.number<std::uint64_t>("pages")};
  end.losses.resize(fields.number("number of losses", static_cast<std::uint16_t>(kMostControlLosses)));
  for (ControlLoss& loss : end.losses) {
    loss.name = fields.text("name of a loss", kMostControlName);
    loss.value = fields.number<std::uint64_t>("loss");
  }
  return fields.end(std::move(end));
}

Decoded<ControlMessage> read_leave(std::span<const std::byte> body) { return Fields(body).end(ControlLeave{}); }

Decoded<ControlMessage> read_claim(std::span<const std::byte> body) {
  Fields fields(body);
  ControlClaim claim;
  claim.name = fields.text("name", kMostControlName);
  claim.links = fields.links();
  return fields.end(std::move(claim));
}

Decoded<ControlMessage> read_claimed(std::span<const std::byte> body) { return Fields(body).end(ControlClaimed{}); }

Decoded<ControlMessage> read_send(std::span<const std::byte> body) {
  Fields fields(body);
  ControlSend send;
  send.number = fields.number<std::uint64_t>("number");
  send.link = fields.number<std::uint16_t>("link");
  send.message = fields.bytes("message", kMostControlBytesToFrontEnd);
  return fields.end(std::move(send));
}

Decoded<ControlMessage> read_answer(std::span<const std::byte> body) {
  Fields fields(body);
  ControlAnswer answer;
  answer.number = fields.number<std::uint64_t>("number");
  answer.code = fields.text("code", kMostControlCode);
  answer.what = fields.text("what", kMostControlWhat);
  answer.answer = fields.bytes("answer", kMostControlBytesToFrontEnd);
  return fields.end(std::move(answer));
}

Decoded<ControlMessage> read_call(std::span<const std::byte> body) {
  Fields fields(body);
  ControlCall call;
  call.pages = fields.number("number of pages", kMostControlPages);
  call.requests = fields.number("number of requests", kMostControlRequests);
  call.name = fields.text("name", kMostControlName);
  call.provider = fields.text("provider", kMostControlProvider);
  call.address = fields.bytes("address", kMostControlAddress);
  return fields.end(std::move(call));
}

// The readers, in the order of the variant.
constexpr std::array<Decoded<ControlMessage> (*)(std::span<const std::byte>), std::variant_size_v<ControlMessage>> kRead{
    read_hello, read_proof, read_subscribe, read_accept, read_refuse, read_credit, read_end,
    read_leave, read_claim, read_claimed,   read_send,   read_answer, read_call};

}  // namespace

void append_control(std::vector<std::byte>& to, const ControlMessage& message) {
  const std::size_t begin = to.size();
  add(to, std::uint32_t{0});
  add(to, static_cast<std::uint16_t>(message.index() + 1));
  add(to, std::uint16_t{0});
  std::visit([&](const auto& fields) { add_fields(to, fields); }, message);
  const auto bytes = static_cast<std::uint32_t>(to.size() - begin - kControlHeaderBytes);
  std::memcpy(to.data() + begin, &bytes, sizeof bytes);
}

Decoded<std::optional<ParsedControl>> parse_control(std::span<const std::byte> bytes) {
  if (bytes.size() < kControlHeaderBytes) return std::nullopt;
  std::uint32_t size = 0;
  std::uint16_t type = 0;
  std::uint16_t reserved = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  std::memcpy(&type, bytes.data() + 4, sizeof type);
  std::memcpy(&reserved, bytes.data() + 6, sizeof reserved);
  if (size > kMostControlBytes) return decode_error(DecodeFault::too_large, 0, "size of a message", size, kMostControlBytes);
  if (type == 0 || type > kRead.size()) return decode_error(DecodeFault::unknown, 4, "type of a message", type);
  if (reserved != 0) return decode_error(DecodeFault::wrong_value, 6, "reserved bytes", reserved, 0);
  if (size > kMost[type - 1U]) return decode_error(DecodeFault::too_large, 0, "size of a message", size, kMost[type - 1U]);
  if (size > bytes.size() - kControlHeaderBytes) return std::nullopt;
  auto message = RODEO_TRY(kRead[type - 1U](bytes.subspan(kControlHeaderBytes, size)));
  return ParsedControl{std::move(message), kControlHeaderBytes + size};
}

}  // namespace rodeo::formats
