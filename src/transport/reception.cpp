#include "transport/reception.h"

#include <utility>

#include "base/log.h"
#include "base/sentence.h"
#include "transport/random.h"

namespace rodeo::transport {
namespace {

constexpr std::size_t kMostGuests = 256;

}  // namespace

Reception::Reception(ControlListener listener, std::uint64_t instance, std::string secret, std::string publisher)
    : listener_(std::move(listener)), instance_(instance), secret_(std::move(secret)), publisher_(std::move(publisher)) {}

std::uint64_t Reception::greet(std::uint64_t now_ns, const Admit& admit) {
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
  std::uint64_t turned_away = 0;
  std::erase_if(guests_, [&](Guest& guest) {
    const Outcome outcome = listen_to(guest, now_ns, admit);
    turned_away += outcome == Outcome::turned_away ? 1 : 0;
    return outcome != Outcome::stays;
  });
  return turned_away;
}

Reception::Outcome Reception::listen_to(Guest& guest, std::uint64_t now_ns, const Admit& admit) {
  guest.socket.flush();
  for (;;) {
    auto message = guest.socket.next();
    if (!message) return refused(guest, message.error());
    if (!*message) break;
    if (guest.handshake.done()) {
      const auto admitted = admit(guest.socket, *std::move(*message));
      if (admitted) return Outcome::leaves;
      guest.socket.say(formats::ControlRefuse{admitted.error().code, admitted.error().what});
      return refused(guest, admitted.error());
    }
    std::vector<std::byte> reply;
    const auto taken = guest.handshake.take(**message, reply);
    guest.socket.say(reply);
    if (!taken) return refused(guest, taken.error());
  }
  if (now_ns - guest.since_ns < kGreetingNs) return Outcome::stays;
  return refused(guest, {"transport.protocol", "it did not say what it wants in time"});
}

Reception::Outcome Reception::refused(Guest& guest, const Error& why) const {
  if (why.code == "transport.closed") return Outcome::leaves;
  base::log_warning("{}: {} is turned away: {}", publisher_, guest.socket.peer(), base::in_a_line(why));
  guest.socket.flush();
  return Outcome::turned_away;
}

}  // namespace rodeo::transport
