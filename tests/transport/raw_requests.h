// Both ends of requests and replies, built from parts, for behaviour that a Requester and a Replier never show.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/request_piece.h"
#include "transport/bus.h"
#include "transport/control_socket.h"
#include "transport/fabric.h"
#include "transport/handshake.h"
#include "transport/listener.h"
#include "transport/message_connection.h"
#include "transport/random.h"

namespace rodeo::test {

/// Sends any request, and gives no credit for answers.
class CreditlessRequester {
 public:
  CreditlessRequester(const std::filesystem::path& bus, const std::string& service) {
    const auto entry = transport::find_entry(bus, service).value().value();
    port_ = transport::open_fabric("tcp", "").value();
    connection_ = transport::MessageConnection::open(
                      *port_, {.page_bytes = entry.page_bytes, .pages = 8, .most_bytes = std::size_t{1} << 20})
                      .value();
    socket_ = transport::ControlSocket::call(entry.address, entry.port).value();
    std::vector<std::byte> hello;
    handshake_.begin(hello);
    socket_.say(hello);
  }

  void poll() {
    if (gone) return;
    socket_.flush();
    listen();
    transport::FabricPort::Event events[8];
    const std::size_t count = port_->poll(events);
    for (std::size_t i = 0; i < count && !gone; ++i) gone = !connection_->on_event(events[i]);
    connection_->send();
    connection_->visit_done([](transport::OutgoingMessage&) {});
  }
  bool connected() const { return connection_->connected(); }
  void ask(std::uint64_t number) {
    transport::OutgoingMessage& out = connection_->make();
    out.head = {.number = number, .type = formats::MessageType::request, .code = 1};
    connection_->queue(out);
  }

  bool gone = false;

 private:
  void listen() {
    for (;;) {
      const auto message = socket_.next();
      if (!message) gone = true;
      if (!message || !*message) return;
      if (!handshake_.done()) {
        std::vector<std::byte> reply;
        ASSERT_TRUE(handshake_.on_message(**message, reply));
        socket_.say(reply);
        if (!handshake_.done()) continue;
        socket_.say(formats::ControlCall{.pages = 8,
                                         .requests = 4,
                                         .name = "creditless",
                                         .provider = "tcp",
                                         .address = port_->address(connection_->number())});
      } else if (const auto* accept = std::get_if<formats::ControlAccept>(&**message)) {
        ASSERT_TRUE(port_->connect(connection_->number(), accept->address, accept->token));
      } else if (const auto* credit = std::get_if<formats::ControlCredit>(&**message)) {
        connection_->credit(credit->pages);
      }
    }
  }

  std::unique_ptr<transport::FabricPort> port_;  // must outlive the connection
  std::unique_ptr<transport::MessageConnection> connection_;
  transport::ControlSocket socket_;
  transport::Handshake handshake_{transport::Handshake::Side::subscriber,
                                  {.nonce = transport::random_bytes<32>(), .instance = 1, .program = "test"},
                                  ""};
};

/// Accepts one piece of a request, and the others only on command.
class HastyReplier {
 public:
  static constexpr std::uint32_t kPages = 16;  ///< number of pages for which the other side has credit

  HastyReplier(const std::filesystem::path& bus, std::uint32_t page_bytes)
      : page_bytes_(page_bytes),
        memory_(std::size_t{3} * page_bytes),
        port_(transport::open_fabric("tcp", "127.0.0.1").value()),
        listener_({.name = "hasty"}) {
    listener_.advertise(bus, {.providers = {"tcp"}, .page_bytes = page_bytes, .service = "test"});
  }

  void poll(std::uint64_t now_ns) {
    using What = transport::FabricPort::Event::What;
    (void)listener_.poll(now_ns, [&](transport::ControlSocket& socket, formats::ControlMessage said) {
      return admit(socket, std::get<formats::ControlCall>(said));
    });
    socket_.flush();
    transport::FabricPort::Event events[8];
    const std::size_t count = port_->poll(events);
    for (const auto& event : std::span(events).first(count)) {
      if (event.what == What::connected) {
        ASSERT_TRUE(port_->receive(connection_, 0));
        socket_.say(formats::ControlCredit{.pages = kPages});
      } else if (event.what == What::received) {
        const auto piece = formats::decode_piece(std::span(memory_).subspan(event.slot * page_bytes_, event.bytes));
        ASSERT_TRUE(piece);
        number_ = piece->head.number;
        ++pieces;
        waits_ = true;
      }
    }
    if (!drains || !std::exchange(waits_, false)) return;
    ASSERT_TRUE(port_->receive(connection_, 0));
  }
  void reply() {
    const auto head = formats::encode_piece_head({.number = number_, .type = formats::MessageType::reply, .credit = kPages});
    std::memcpy(memory_.data() + 2 * page_bytes_, head.data(), head.size());
    ASSERT_TRUE(port_->send(connection_, 2, head.size()));
  }

  unsigned pieces = 0;
  bool drains = false;

 private:
  Result<void> admit(transport::ControlSocket& socket, const formats::ControlCall& call) {
    connection_ = port_->open(memory_, page_bytes_).value();
    const auto listens = port_->listens_at();
    const formats::ControlAccept accept{.token = transport::random_bytes<16>(),
                                        .address = listens.empty() ? port_->address(connection_) : listens,
                                        .page_bytes = page_bytes_,
                                        .pages = 4};
    RODEO_TRY(port_->accept(connection_, accept.token, call.address));
    socket_ = std::move(socket);
    socket_.say(accept);
    return {};
  }

  const std::uint32_t page_bytes_;
  std::vector<std::byte> memory_;
  std::unique_ptr<transport::FabricPort> port_;
  transport::Listener listener_;
  transport::ControlSocket socket_;
  transport::FabricPort::Connection connection_ = 0;
  std::uint64_t number_ = 0;
  bool waits_ = false;
};

}  // namespace rodeo::test
