#include "transport/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/need.h"
#include "base/sentence.h"
#include "transport/provider_choice.h"
#include "transport/secret.h"

namespace rodeo::transport {
namespace {

constexpr std::size_t kMostNewPeers = 256;

ControlListener listen_at(const ListenerSettings& settings) {
  if (auto refused = refuse_open_address(settings.address, settings.secret); !refused) throw SetupError(refused.error());
  return need(ControlListener::open(settings.address));
}

}  // namespace

Refusals Refusals::from_code(std::string_view code) {
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

Listener::Listener(ListenerSettings settings)
    : settings_(std::move(settings)), listener_(listen_at(settings_)), ports_(settings_.address, settings_.ports) {}

void Listener::advertise(const std::filesystem::path& bus, BusEntry entry) {
  const Here here = Here::detect();
  entry.name = settings_.name;
  entry.instance = settings_.instance;
  entry.host = here.host;
  entry.pid = here.pid;
  entry.address = settings_.address;
  entry.port = port();
  entry.program = "rodeo";
  entry.unix_time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  providers_ = entry.providers;
  advertisement_ = need(Advertisement::put(bus, std::move(entry)));
}

Result<FabricPort*> Listener::port_of(const std::string& provider) {
  if (std::ranges::find(providers_, provider) == providers_.end())
    return std::unexpected(
        Error{"transport.provider", fmt::format("{} does not offer the provider `{}`", settings_.name, provider)});
  return ports_.port(provider);
}

Refusals Listener::poll(std::uint64_t now_ns, const OnPeer& on_peer) {
  while (new_peers_.size() < kMostNewPeers) {
    auto socket = listener_.accept();
    if (!socket) break;
    NewPeer peer{
        std::move(*socket),
        Handshake(Handshake::Side::publisher,
                  {.nonce = random_bytes<32>(), .instance = settings_.instance, .program = "rodeo"}, settings_.secret),
        now_ns};
    std::vector<std::byte> hello;
    peer.handshake.begin(hello);
    peer.socket.say(hello);
    new_peers_.push_back(std::move(peer));
  }
  Refusals refusals;
  std::erase_if(new_peers_, [&](NewPeer& peer) { return !read(peer, now_ns, on_peer, refusals); });
  return refusals;
}

bool Listener::read(NewPeer& peer, std::uint64_t now_ns, const OnPeer& on_peer, Refusals& refusals) {
  const auto refused = [&](const Error& why) {
    refuse(peer, why, refusals);
    return false;
  };
  peer.socket.flush();
  for (;;) {
    auto message = peer.socket.next();
    if (!message) return refused(message.error());
    if (!*message) break;
    if (peer.handshake.done()) {
      const auto admitted = on_peer(peer.socket, *std::move(*message));
      if (admitted) return false;
      peer.socket.say(formats::ControlRefuse{admitted.error().code, admitted.error().what});
      return refused(admitted.error());
    }
    std::vector<std::byte> reply;
    const auto taken = peer.handshake.on_message(**message, reply);
    peer.socket.say(reply);
    if (!taken) return refused(taken.error());
  }
  if (now_ns - peer.since_ns < kGreetingNs) return true;
  return refused({"transport.protocol", "it sent no request in time"});
}

void Listener::refuse(NewPeer& peer, const Error& why, Refusals& refusals) {
  if (why.code == "transport.closed") return;
  if (const auto turn = throttles_[why.code].turn())
    base::log_warning("{}: {} is turned away: {}{}", settings_.name, peer.socket.peer(), base::in_a_line(why),
                      turn.suffix());
  peer.socket.flush();
  refusals += Refusals::from_code(why.code);
}

}  // namespace rodeo::transport
