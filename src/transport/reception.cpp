#include "transport/reception.h"

#include <utility>

#include "base/log.h"
#include "base/sentence.h"
#include "transport/random.h"

namespace rodeo::transport {
namespace {

constexpr std::size_t kMostGuests = 256;

}  // namespace

Refusals Refusals::of(std::string_view code) {
  return {.peers = 1,
          .version = code == "transport.version" ? 1U : 0U,
          .secret = code == "transport.secret" ? 1U : 0U,
          .unreadable = code == "transport.protocol" ? 1U : 0U};
}

Refusals& Refusals::operator+=(const Refusals& more) {
  peers += more.peers;
  version += more.version;
  secret += more.secret;
  unreadable += more.unreadable;
  return *this;
}

Reception::Reception(ControlListener listener, std::uint64_t instance, std::string secret, std::string publisher)
    : listener_(std::move(listener)), instance_(instance), secret_(std::move(secret)), publisher_(std::move(publisher)) {}

Refusals Reception::greet(std::uint64_t now_ns, const Admit& admit) {
  while (guests_.size() < kMostGuests) {
    auto socket = listener_.accept();
    if (!socket) break;
    Guest guest{
        std::move(*socket),
        Handshake(
            Handshake::Side::publisher,
            {.secret_required = !secret_.empty(), .nonce = random_bytes<32>(), .instance = instance_, .program = "rodeo"},
            secret_),
        now_ns};
    std::vector<std::byte> hello;
    guest.handshake.begin(hello);
    guest.socket.say(hello);
    guests_.push_back(std::move(guest));
  }
  Refusals refusals;
  std::erase_if(guests_, [&](Guest& guest) { return !listen_to(guest, now_ns, admit, refusals); });
  return refusals;
}

bool Reception::listen_to(Guest& guest, std::uint64_t now_ns, const Admit& admit, Refusals& refusals) {
  const auto refused = [&](const Error& why) {
    refuse(guest, why, refusals);
    return false;
  };
  guest.socket.flush();
  for (;;) {
    auto message = guest.socket.next();
    if (!message) return refused(message.error());
    if (!*message) break;
    if (guest.handshake.done()) {
      const auto admitted = admit(guest.socket, *std::move(*message));
      if (admitted) return false;
      guest.socket.say(formats::ControlRefuse{admitted.error().code, admitted.error().what});
      return refused(admitted.error());
    }
    std::vector<std::byte> reply;
    const auto taken = guest.handshake.take(**message, reply);
    guest.socket.say(reply);
    if (!taken) return refused(taken.error());
  }
  if (now_ns - guest.since_ns < kGreetingNs) return true;
  return refused({"transport.protocol", "it sent no request in time"});
}

void Reception::refuse(Guest& guest, const Error& why, Refusals& refusals) {
  if (why.code == "transport.closed") return;
  if (const auto turn = told_[why.code].turn())
    base::log_warning("{}: {} is turned away: {}{}", publisher_, guest.socket.peer(), base::in_a_line(why), turn.suffix());
  guest.socket.flush();
  refusals += Refusals::of(why.code);
}

}  // namespace rodeo::transport
