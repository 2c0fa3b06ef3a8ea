#include "transport/handshake.h"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

#include "base/sha256.h"

namespace rodeo::transport {

using namespace formats;

namespace {

std::string_view name_of(Handshake::Side side) { return side == Handshake::Side::subscriber ? "subscriber" : "publisher"; }

Handshake::Side other(Handshake::Side side) {
  return side == Handshake::Side::subscriber ? Handshake::Side::publisher : Handshake::Side::subscriber;
}

ControlHello with_secret(ControlHello hello, bool required) {
  hello.secret_required = required;
  return hello;
}

// Takes constant time: it does not depend on the place where the proofs differ.
bool same(const ControlProof& a, const ControlProof& b) {
  std::byte different{0};
  for (std::size_t i = 0; i < a.mac.size(); ++i) different |= a.mac[i] ^ b.mac[i];
  return different == std::byte{0};
}

}  // namespace

Handshake::Handshake(Side side, ControlHello own, std::string secret)
    : side_(side), own_(with_secret(std::move(own), !secret.empty())), secret_(std::move(secret)) {}

void Handshake::begin(std::vector<std::byte>& out) { append_control(out, own_); }

Result<void> Handshake::on_message(const ControlMessage& message, std::vector<std::byte>& out) {
  if (const auto* refusal = std::get_if<ControlRefuse>(&message)) return on_refusal(*refusal);
  const auto* hello = std::get_if<ControlHello>(&message);
  if (hello != nullptr && state_ == State::hello) return on_hello(*hello, out);
  const auto* proof = std::get_if<ControlProof>(&message);
  if (proof != nullptr && state_ == State::proof) return on_proof(*proof, out);
  return refuse({"transport.protocol",
                 fmt::format("the first message of the {} is not a handshake", name_of(other(side_))),
                 {},
                 "check that the address is a publisher's and that both programs are Rodeo's"},
                out);
}

Result<void> Handshake::on_hello(const ControlHello& hello, std::vector<std::byte>& out) {
  peer_ = hello;
  const std::string_view us = name_of(side_);
  const std::string_view them = name_of(other(side_));
  const auto differ = [&](std::string_view what, unsigned ours, unsigned theirs) {
    return refuse({"transport.version", fmt::format("the {} speaks version {} of the {}, the {} version {}: update the {}",
                                                    them, theirs, what, us, ours, theirs < ours ? them : us)},
                  out);
  };
  if (hello.version != own_.version) return differ("control protocol", own_.version, hello.version);
  if (hello.page_version != own_.page_version) return differ("network pages", own_.page_version, hello.page_version);
  if (hello.secret_required != own_.secret_required) {
    const bool ours = own_.secret_required;
    return refuse({"transport.secret",
                   fmt::format("the {} requires a secret, and the {} has none", ours ? us : them, ours ? them : us),
                   {},
                   "give both sides the same secret"},
                  out);
  }
  state_ = own_.secret_required ? State::proof : State::done;
  if (own_.secret_required && side_ == Side::subscriber) append_control(out, proof_of(side_));
  return {};
}

Result<void> Handshake::on_proof(const ControlProof& proof, std::vector<std::byte>& out) {
  if (!same(proof, proof_of(other(side_)))) {
    return refuse({"transport.secret",
                   fmt::format("the secrets of the {} and the {} differ", name_of(other(side_)), name_of(side_)),
                   {},
                   "give both sides the same secret"},
                  out);
  }
  state_ = State::done;
  if (side_ == Side::publisher) append_control(out, proof_of(side_));
  return {};
}

// The code comes from the peer: only our own codes are passed on.
Result<void> Handshake::on_refusal(const ControlRefuse& refusal) {
  state_ = State::refused;
  Error error{"transport.protocol",
              fmt::format("the {} refuses the {}: {}", name_of(other(side_)), name_of(side_), refusal.what)};
  for (const char* code : {"transport.version", "transport.secret"}) {
    if (refusal.code == code) error.code = code;
  }
  return std::unexpected(std::move(error));
}

std::unexpected<Error> Handshake::refuse(Error error, std::vector<std::byte>& out) {
  if (state_ != State::refused) append_control(out, ControlRefuse{error.code, error.what});
  state_ = State::refused;
  return std::unexpected(std::move(error));
}

// The label names the side, so a peer cannot send our own proof back to us.
ControlProof Handshake::proof_of(Side side) const {
  const std::string label = fmt::format("rodeo {}", name_of(side));
  const auto text = std::as_bytes(std::span(label));
  const ControlHello& prover = side == side_ ? own_ : peer_;
  const ControlHello& verifier = side == side_ ? peer_ : own_;
  std::vector<std::byte> message(text.begin(), text.end());
  message.insert(message.end(), prover.nonce.begin(), prover.nonce.end());
  message.insert(message.end(), verifier.nonce.begin(), verifier.nonce.end());
  return {base::hmac_sha256(std::as_bytes(std::span(secret_)), message)};
}

}  // namespace rodeo::transport
