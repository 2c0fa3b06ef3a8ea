// One end of a connection for requests and replies (docs/formats/request-reply.md): messages go out in pieces, from where they lie, and pieces that come
// become messages again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "formats/request_piece.h"
#include "transport/control_socket.h"
#include "transport/fabric.h"
#include "transport/received_message.h"

namespace rodeo::transport {

class ReplyOwner;

/// On its way out, or waiting for it.
struct OutgoingMessage {
  formats::PieceHead head = {};  ///< `offset`: so many bytes are the network's, or were
  std::vector<std::span<const std::byte>> parts = {};
  std::vector<std::byte> own = {};  ///< what of the parts was copied
  ReplyOwner* owner = nullptr;      ///< whose the parts are; the user's, as is:
  std::uint64_t tag = 0;

  // The connection's.
  std::size_t part = 0;            // that the next piece begins in
  std::size_t part_offset = 0;     // and where
  std::uint32_t under_way = 0;     // pieces that are the network's
  bool begun = false;              // a piece of it has been the network's
  bool given = false;              // all of it has
  std::uint32_t copied_bytes = 0;  // of what has been sent
};

/// Memory, pages and credit of both directions. One thread. The port must live longer.
class MessageConnection {
 public:
  struct Settings {
    std::uint32_t page_bytes = 0;
    std::uint32_t pages = 0;          ///< to receive into; to send from there are as many, but at most 16
    std::size_t most_bytes = 0;       ///< of a message that comes
    std::function<void()> wake = {};  ///< called when pages are given back, until close(): replenish() is to be called
  };
  /// Errors transport.memory, transport.endpoint.
  static Result<std::unique_ptr<MessageConnection>> open(FabricPort& port, const Settings& settings);
  ~MessageConnection();
  MessageConnection(const MessageConnection&) = delete;
  MessageConnection& operator=(const MessageConnection&) = delete;

  FabricPort& port() const { return port_; }
  FabricPort::Connection number() const { return connection_; }

  /// An empty message to fill and to queue().
  OutgoingMessage& make();
  /// It goes after those queued before, as soon as there is credit.
  void queue(OutgoingMessage& message) { queue_.push_back(&message); }
  /// Takes it out of the queue; what of it has gone has gone. It is in done() once the network has nothing of it.
  void give_up(OutgoingMessage& message);
  /// Sends what can be sent.
  void send();
  /// Calls visit(message) for each whose memory is not needed any more, and keeps it for make().
  template <typename Visit>
  void take_done(Visit&& visit) {
    for (std::size_t i = 0; i < done_.size(); ++i) {  // visit may add
      visit(*done_[i]);
      recycle(*done_[i]);
    }
    done_.clear();
  }

  struct Incoming {
    formats::PieceHead head;
    ReceivedMessage message;
  };
  /// A message that is whole with this event, if one is. Error transport.protocol: what came makes no sense; the connection must end.
  Result<std::optional<Incoming>> take(const FabricPort::Event& event);

  /// `pages` of a CREDIT.
  void credit(std::uint64_t pages) { credit_ = std::max(credit_, pages); }
  /// Fewer pages may be sent than there are to send from.
  bool short_of_credit() const { return !queue_.empty() && sent_ == credit_; }
  /// Pages that have been given back may be used again, and the other side is told of them by `socket`, unless a page that goes tells it.
  void replenish(ControlSocket& socket);

  /// replenish() or send() have something to do, or will have it without an event of the port that says so.
  bool has_work() const;

  bool connected() const { return connected_; }
  /// Nothing goes any more: all messages are in done().
  void close();

  std::uint64_t sent_bytes() const { return sent_bytes_; }      ///< of messages
  std::uint64_t copied_bytes() const { return copied_bytes_; }  ///< of these

 private:
  class Pages;
  struct Filled {
    std::size_t bytes = 0;   // of the message
    std::size_t copied = 0;  // of these
    std::size_t part = 0;
    std::size_t part_offset = 0;
  };

  MessageConnection(FabricPort& port, const Settings& settings) : port_(port), settings_(settings) {}

  Filled fill(const OutgoingMessage& message, std::byte* slot, std::vector<std::span<const std::byte>>& parts) const;
  Result<std::optional<Incoming>> take_page(std::uint32_t slot, std::size_t bytes);
  void recycle(OutgoingMessage& message);
  std::byte* slot(std::uint32_t number) const;

  FabricPort& port_;
  const Settings settings_;
  std::shared_ptr<Pages> pages_;
  FabricPort::Connection connection_ = 0;
  bool connected_ = false;
  bool closed_ = false;

  std::deque<OutgoingMessage*> queue_;
  std::vector<OutgoingMessage*> of_slot_;  // each slot to send from, from number `pages` on
  std::vector<std::uint32_t> free_to_send_;
  std::vector<OutgoingMessage*> done_;
  std::vector<std::unique_ptr<OutgoingMessage>> all_;
  std::vector<OutgoingMessage*> unused_;
  std::vector<std::span<const std::byte>> parts_;
  std::uint64_t credit_ = 0;
  std::uint64_t sent_ = 0;  // pages
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t copied_bytes_ = 0;

  std::optional<Incoming> coming_;  // not whole yet
  std::size_t has_ = 0;             // bytes of it
  bool copies_ = false;             // it
  std::uint64_t posted_ = 0;
  std::uint64_t told_ = 0;  // of these
  std::uint64_t came_ = 0;
};

}  // namespace rodeo::transport
