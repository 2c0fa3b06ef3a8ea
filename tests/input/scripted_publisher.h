// A scripted publisher over a real provider: it sends pages in any order, invalid pages, or nothing.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "formats/network_page.h"
#include "transport/fabric.h"
#include "transport/listener.h"
#include "transport/random.h"

namespace rodeo::test {

/// Has one subscriber. One thread.
class ScriptedPublisher {
 public:
  static constexpr std::uint32_t kPageBytes = 4096;
  static constexpr std::uint32_t kPages = 16;

  ScriptedPublisher(const std::filesystem::path& bus, const std::string& name, std::vector<Fid> links,
                    bool trigger_list = false)
      : memory_(base::Arena::create(std::size_t{kPages} * kPageBytes).value()),
        port_(transport::open_fabric("tcp", "127.0.0.1").value()),
        listener_({.name = name}) {
    listener_.advertise(
        bus, {.providers = {"tcp"}, .page_bytes = kPageBytes, .trigger_list = trigger_list, .links = std::move(links)});
  }
  ~ScriptedPublisher() {
    if (connected_) port_->close(*connected_);
  }

  /// The subscriber is connected and has given credit.
  bool flowing() const { return flowing_ && credit_ > sent_; }
  /// The number of subscriptions so far.
  int subscriptions() const { return subscriptions_; }
  /// The number of pages of the session that the subscriber has acknowledged.
  std::uint64_t taken() const { return taken_; }

  void progress(std::uint64_t now_ns) {
    (void)listener_.poll(now_ns, [this](transport::ControlSocket& socket, formats::ControlMessage said) {
      return admit(socket, std::get<formats::ControlSubscribe>(said));
    });
    transport::FabricPort::Event events[8];
    const std::size_t count = port_->poll(events);
    for (std::size_t i = 0; i < count; ++i)
      flowing_ = flowing_ || events[i].what == transport::FabricPort::Event::What::connected;
    socket_.flush();
    while (socket_.is_open()) {
      const auto message = socket_.next();
      if (!message || !*message) break;
      if (const auto* credit = std::get_if<formats::ControlCredit>(&**message)) {
        credit_ = credit->pages;
        taken_ = credit->taken;
      }
    }
  }

  /// A page with one chunk of link 0, after `count` other chunks of it.
  void send_chunk(std::uint64_t number, std::uint32_t count, std::uint64_t clock_ns) {
    std::vector<std::byte> chunk(40, static_cast<std::byte>(count));
    formats::NetworkPageWriter writer(next_slot());
    formats::RunPlace from;
    const ChunkRun run{.data = chunk.data(), .size = 40, .stride = 40, .count = 1};
    ASSERT_TRUE(writer.append(0, count, run, from));
    send(writer.finish(number, clock_ns).size());
  }
  /// A page with the first part of a chunk of link 0, after `count` other chunks of it.
  void send_part(std::uint64_t number, std::uint32_t count) {
    std::vector<std::byte> part(40, static_cast<std::byte>(count));
    formats::NetworkPageWriter writer(next_slot());
    formats::RunPlace from;
    const ChunkRun run{.data = part.data(), .size = 40, .stride = 40, .count = 1, .more_follows = true};
    ASSERT_TRUE(writer.append(0, count, run, from));
    send(writer.finish(number, 0).size());
  }
  /// A page with the clock.
  void send_clock(std::uint64_t number, std::uint64_t clock_ns) {
    formats::NetworkPageWriter writer(next_slot());
    send(writer.finish(number, clock_ns).size());
  }
  void send_garbage() {
    std::ranges::fill(next_slot(), std::byte{0xa5});
    send(100);
  }
  void end() { end(sent_); }
  /// Reports the total number of sent pages.
  void end(std::uint64_t pages) { socket_.say(formats::ControlEnd{pages}); }

 private:
  Result<void> admit(transport::ControlSocket& socket, formats::ControlSubscribe& wish) {
    if (connected_) port_->close(*std::exchange(connected_, std::nullopt));
    const bool resumed = std::exchange(session_, wish.session) == wish.session;
    connected_ = port_->open({memory_.data(), memory_.size()}, kPageBytes).value();
    formats::ControlAccept accept{.resumed = resumed,
                                  .token = transport::random_bytes<16>(),
                                  .address = port_->listens_at(),
                                  .page_bytes = kPageBytes,
                                  .pages = kPages};
    EXPECT_TRUE(port_->accept(*connected_, accept.token, wish.address));
    socket_ = std::move(socket);
    socket_.say(accept);
    taken_ = wish.taken;
    ++subscriptions_;
    flowing_ = false;
    sent_ = credit_ = 0;
    return {};
  }
  std::span<std::byte> next_slot() {
    return std::span(memory_.data(), memory_.size()).subspan(sent_ % kPages * kPageBytes, kPageBytes);
  }
  void send(std::size_t bytes) {
    ASSERT_LT(sent_, kPages) << "each slot is used once";
    ASSERT_TRUE(flowing());
    ASSERT_TRUE(port_->send(*connected_, static_cast<std::uint32_t>(sent_), bytes));
    ++sent_;
  }

  base::Arena memory_;
  std::unique_ptr<transport::FabricPort> port_;
  transport::Listener listener_;
  transport::ControlSocket socket_;
  std::optional<transport::FabricPort::Connection> connected_;
  std::optional<std::uint64_t> session_;
  int subscriptions_ = 0;
  bool flowing_ = false;
  std::uint64_t credit_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace rodeo::test
