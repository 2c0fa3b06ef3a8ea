// `rodeo route send`: sends a message to a front-end, through the router that has its card.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/named_counters.h"
#include "cli/route.h"
#include "cli/verbs.h"
#include "formats/fid.h"
#include "formats/front_end_link.h"
#include "input/network_input.h"
#include "settings/fid_text.h"
#include "settings/text_file.h"
#include "transport/secret.h"
#include "transport/sender.h"

namespace rodeo::cli {
namespace {

using formats::FrontEndProtocol;
using Bytes = std::vector<std::byte>;

struct SendOptions {
  std::string fid;
  std::string bus;
  std::string secret_file;
  std::optional<std::string> hex;
  std::optional<std::string> text;
  std::optional<std::string> file;
  std::optional<std::string> sca;
  std::optional<std::string> swt;
  std::optional<std::string> ic;
  bool reset = false;
  std::uint64_t repeat = 1;
  std::optional<std::chrono::nanoseconds> answer;
  OutputFormat format = OutputFormat::table;
};

/// A message, its link, and the protocol that formats its answer.
struct Message {
  Fid link;
  Bytes bytes = {};
  FrontEndProtocol protocol = FrontEndProtocol::message;
};

template <typename... T>
void add(Bytes& to, T... numbers) {
  const auto one = [&](auto number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  };
  (one(numbers), ...);
}

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{}{:02x}", out.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  return out;
}

Result<Bytes> bytes_of_hex(std::string_view text) {
  const auto bad = [&] {
    return value_error(fmt::format("--hex: `{}` is not hexadecimal bytes", text), "two digits a byte: --hex \"01 ff a0\"");
  };
  std::string digits;
  for (const char c : text) {
    if (c != ' ' && c != ',' && c != ':') digits += c;
  }
  if (digits.starts_with("0x")) digits.erase(0, 2);
  if (digits.size() % 2 != 0) return bad();
  Bytes bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    unsigned value = 0;
    const char* const begin = digits.data() + at;
    if (std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) return bad();
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

/// Decimal, or hexadecimal with 0x.
Result<std::uint64_t> number_of(std::string_view option, std::string_view text, std::uint64_t most) {
  const bool hex = text.starts_with("0x");
  const std::string_view digits = hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (digits.empty() || status != std::errc{} || end != digits.data() + digits.size() || value > most)
    return value_error(fmt::format("{}: `{}` is not a number up to {:#x}", option, text, most),
                       "values are decimal, or hexadecimal with 0x");
  return value;
}

Result<Bytes> sca_frame(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos)
    return value_error(fmt::format("--sca: `{}` is not COMMAND,DATA", text), "for example --sca 0x14010dd1,0x1");
  Bytes bytes;
  add(bytes, static_cast<std::uint32_t>(RODEO_TRY(number_of("--sca", text.substr(0, comma), 0xffffffff))),
      static_cast<std::uint32_t>(RODEO_TRY(number_of("--sca", text.substr(comma + 1), 0xffffffff))));
  return bytes;
}

/// 76 bits in hexadecimal.
Result<Bytes> swt_word(std::string_view text) {
  std::string digits(text.starts_with("0x") ? text.substr(2) : text);
  constexpr std::size_t kDigits = 19;
  if (digits.empty() || digits.size() > kDigits ||
      !std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; }))
    return value_error(fmt::format("--swt: `{}` is not a word of 76 bits in hexadecimal", text),
                       "for example --swt 0x0000000000badc0ffee");
  digits.insert(0, kDigits - digits.size(), '0');
  const auto part = [&](std::size_t from, std::size_t count) {
    return static_cast<std::uint32_t>(std::stoul(digits.substr(from, count), nullptr, 16));
  };
  Bytes bytes;
  add(bytes, part(11, 8), part(3, 8), static_cast<std::uint16_t>(part(0, 3)));
  return bytes;
}

/// ADDRESS reads, ADDRESS=VALUE writes.
Result<Bytes> ic_access(std::string_view text) {
  const std::size_t equal = text.find('=');
  Bytes bytes;
  add(bytes, static_cast<std::uint16_t>(RODEO_TRY(number_of("--ic", text.substr(0, equal), 0xffff))));
  if (equal != std::string_view::npos)
    add(bytes, static_cast<std::uint8_t>(RODEO_TRY(number_of("--ic", text.substr(equal + 1), 0xff))));
  return bytes;
}

Result<Message> message_of(const SendOptions& options) {
  const int given = static_cast<int>(options.hex.has_value()) + static_cast<int>(options.text.has_value()) +
                    static_cast<int>(options.file.has_value()) + static_cast<int>(options.sca.has_value()) +
                    static_cast<int>(options.swt.has_value()) + static_cast<int>(options.ic.has_value()) +
                    static_cast<int>(options.reset);
  if (given != 1)
    return usage_error(given == 0 ? "there is no message to send" : "there is more than one message to send",
                       "give one of --hex, --text, --file, --sca, --swt, --ic and --reset");
  const Fid link = RODEO_TRY(settings::parse_fid(options.fid));
  const auto to = [&](Result<Bytes> bytes, FrontEndProtocol protocol) -> Result<Message> {
    Message message{.link = link, .protocol = protocol};
    message.bytes = RODEO_TRY(std::move(bytes));
    if (protocol != FrontEndProtocol::message) message.link = formats::to_front_end(link, protocol);
    return message;
  };
  if (options.sca) return to(sca_frame(*options.sca), FrontEndProtocol::sca);
  if (options.reset) return to(Bytes{}, FrontEndProtocol::sca);
  if (options.swt) return to(swt_word(*options.swt), FrontEndProtocol::swt);
  if (options.ic) return to(ic_access(*options.ic), FrontEndProtocol::ic);
  if (options.hex) return to(bytes_of_hex(*options.hex), FrontEndProtocol::message);
  const std::string text = options.text ? *options.text : RODEO_TRY(settings::read_text_file(*options.file));
  const auto bytes = std::as_bytes(std::span(text));
  return to(Bytes(bytes.begin(), bytes.end()), FrontEndProtocol::message);
}

std::string answer_text(FrontEndProtocol protocol, std::span<const std::byte> bytes) {
  std::string out;
  const auto separated = [&](std::string one) { out += (out.empty() ? "" : " ") + std::move(one); };
  if (protocol == FrontEndProtocol::sca) {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8))
      separated(fmt::format("{:#010x},{:#010x}", number_at<std::uint32_t>(bytes, 0), number_at<std::uint32_t>(bytes, 4)));
    return out;
  }
  if (protocol == FrontEndProtocol::swt) {
    for (; bytes.size() >= 10; bytes = bytes.subspan(10))
      separated(fmt::format("0x{:03x}{:08x}{:08x}", number_at<std::uint16_t>(bytes, 8), number_at<std::uint32_t>(bytes, 4),
                            number_at<std::uint32_t>(bytes, 0)));
    return out;
  }
  return hex_of(bytes);
}

/// Receives the data of the link to the host. It subscribes before the message is sent.
class Listener {
 public:
  Listener(const SendOptions& options, Fid link)
      : input_({.bus = options.bus,
                .name = "route-send",
                .links = {formats::to_host(link)},
                .secret_file = options.secret_file,
                .monitor = true,
                .unbuffered = true,
                .wait = patience(options)}),
        options_(options),
        stream_(input_.open(input_.links())) {
    input_.start();
  }

  /// False: no router published the link within two seconds, or within the time for an answer if that is longer.
  bool connect() {
    return until(patience(options_), [&] {
      (void)poll();
      return base::counter_value(input_.counters(), "network_connections") > 0;
    });
  }

  /// Discards data from before the message: they are not its answer.
  void forget() {
    (void)poll();
    came_.clear();
  }

  std::optional<Bytes> next(std::chrono::nanoseconds patience) {
    if (!until(patience, [&] { return poll(); })) return std::nullopt;
    Bytes first = std::move(came_.front());
    came_.pop_front();
    return first;
  }

 private:
  static std::chrono::nanoseconds patience(const SendOptions& options) {
    return std::max<std::chrono::nanoseconds>(std::chrono::seconds{2}, options.answer.value_or(std::chrono::nanoseconds{0}));
  }
  template <typename Condition>
  static bool until(std::chrono::nanoseconds patience, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
    return true;
  }

  bool poll() {
    Page* page = nullptr;
    while (stream_->poll(page) == PollStatus::page) {
      for (const ChunkRun& run : page->runs) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          const auto chunk = run.chunk(i);
          part_.insert(part_.end(), chunk.begin(), chunk.end());
          if (!run.more_follows || i + 1 < run.count) came_.push_back(std::exchange(part_, {}));
        }
      }
      page->drop();
    }
    return !came_.empty();
  }

  input::NetworkInput input_;
  const SendOptions& options_;
  std::unique_ptr<DataStream> stream_;
  Bytes part_;
  std::deque<Bytes> came_;
};

Result<ExitCode> send(const SendOptions& options) {
  const Message message = RODEO_TRY(message_of(options));
  if (options.repeat < 1) return value_error("--repeat must be at least 1", "leave it out to send once");
  if (options.answer && message.protocol != FrontEndProtocol::message)
    return usage_error("--answer is for links of FELIX cards", "SCA, SWT and IC always answer");
  std::optional<Listener> listener;
  if (options.answer) {
    listener.emplace(options, message.link);
    if (!listener->connect())
      return std::unexpected(Error{"transport.closed", "the router does not publish the link to the host", "",
                                   "`rodeo route list` shows its links"});
  }
  const std::string secret = RODEO_TRY(transport::read_secret(options.secret_file));
  auto sender = RODEO_TRY(
      transport::Sender::claim({.name = "rodeo route send", .bus = options.bus, .secret = secret}, {&message.link, 1}));
  Table table({{"message", "message"}, {"link", "fid"}, {"bytes", "bytes"}, {"answer", "answer"}});
  const std::string fid = formats::to_text(formats::to_front_end(message.link));
  bool answered = true;
  for (std::uint64_t number = 1; number <= options.repeat; ++number) {
    if (listener) listener->forget();
    const Bytes at_once = RODEO_TRY(sender.send(message.link, message.bytes));
    std::optional<std::string> answer;
    if (listener) {
      if (const auto came = listener->next(*options.answer)) answer = hex_of(*came);
      answered = answered && answer;
    } else if (!at_once.empty()) {
      answer = answer_text(message.protocol, at_once);
    }
    table.add_row({number, fid, message.bytes.size(), answer ? Cell(*answer) : Cell(Json(), "-")});
  }
  table.print(options.format);
  if (!answered) say("no answer came on the link in time\n");
  return answered ? ExitCode::done : ExitCode::unreachable;
}

}  // namespace

void add_route_send(Command& route) {
  auto options = std::make_shared<SendOptions>();
  Command& verb = route.verb("send", "Sends a message to a front-end");
  verb.example("rodeo route send 0x10000000003f0000 --hex \"01 02 03\" --answer 1s",
               "to E-link 63 of link 0; shows the answer")
      .example("rodeo route send 0x1000000000000000 --sca 0x140100d1,0x1", "a frame to the SCA behind link 0 of a CRU")
      .example("rodeo route send 0x1000000000000000 --ic 0x54=0xff", "a register of its GBTx; --ic 0x54 reads it");
  verb.option("FID", options->fid, "The link; the direction bit is set automatically").required();
  verb.option("--hex", options->hex, "Bytes in hexadecimal").value_name("BYTES");
  verb.option("--text", options->text, "A text, without an end of line").value_name("TEXT");
  verb.option("--file", options->file, "The contents of a file, at most 65,535 bytes").value_name("FILE");
  verb.option("--sca", options->sca, "CRU: a frame to the slow control adapter").value_name("COMMAND,DATA");
  verb.option("--swt", options->swt, "CRU: a word of 76 bits; the waiting words are the answer").value_name("WORD");
  verb.option("--ic", options->ic, "CRU: a register of the GBTx").value_name("ADDRESS[=VALUE]");
  verb.flag("--reset", options->reset, "CRU: reset the cores of the link's slow control; discards the waiting words");
  verb.duration("--answer", options->answer, "FELIX: time to wait for an answer on the link to the host").value_name("TIME");
  verb.option("--repeat", options->repeat, "Number of times to send").value_name("N");
  verb.option("--bus", options->bus, "Directory of the bus (default: this user's on this host)").value_name("DIR");
  verb.option("--secret-file", options->secret_file, "File with the secret of the router").value_name("FILE");
  verb.output(options->format);
  verb.paragraph(
      "The router needs router.front_ends.enabled = true. A link has one owner at a time: while this command runs, no other "
      "client can send to it.");
  verb.paragraph("Exit status 4: no router has the link, or no answer came in time; 5: another client owns the link.");
  verb.run([options] { return send(*options); });
}

}  // namespace rodeo::cli
