#include "transport/caller.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "transport/random.h"

namespace rodeo::transport {

Result<void> Caller::choose_provider(const std::string& wanted, const BusEntry& entry, const Here& here) {
  const std::vector<std::string> choice = provider_choice(wanted, entry, here);
  if (choice.empty())
    return std::unexpected(
        Error{"transport.provider", fmt::format("{} offers no network that this machine has", entry.name)});
  choices_ = choice.size();
  provider_ = choice[failures_ % choices_];
  return {};
}

Result<void> Caller::call(const BusEntry& entry, const std::string& secret, std::uint64_t instance,
                          ControlSocket::Peer peer) {
  socket = RODEO_TRY(ControlSocket::call(entry.address, entry.port, peer));
  entry_ = entry;
  handshake_.emplace(Handshake::Side::subscriber,
                     formats::ControlHello{.nonce = random_bytes<32>(), .instance = instance, .program = "rodeo"}, secret);
  std::vector<std::byte> hello;
  handshake_->begin(hello);
  socket.say(hello);
  return {};
}

Result<bool> Caller::on_greeting(const formats::ControlMessage& message) {
  std::vector<std::byte> reply;
  const auto taken = handshake_->on_message(message, reply);
  socket.say(reply);
  RODEO_TRY(taken);
  return handshake_->done();
}

}  // namespace rodeo::transport
