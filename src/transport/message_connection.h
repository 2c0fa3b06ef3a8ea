// One end of a connection for requests and replies (docs/reference/formats/request-reply.md). It sends messages in pieces,
// from the caller's memory, and joins received pieces to messages.
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

/// A message that is being sent or is queued.
struct OutgoingMessage {
  formats::PieceHead head = {};  ///< `offset`: number of bytes passed to the network so far
  std::vector<std::span<const std::byte>> parts = {};
  std::vector<std::byte> own = {};  ///< copies of small parts
  ReplyOwner* owner = nullptr;      ///< the owner of the parts, as the user of the connection sets it
  std::uint64_t tag = 0;

  // Private to the connection:
  std::size_t part = 0;            // part in which the next piece begins
  std::size_t part_offset = 0;     // offset of the next piece in that part
  std::uint32_t under_way = 0;     // pieces that the network owns
  bool begun = false;              // the network has a piece of the message
  bool given = false;              // the network has all pieces
  std::uint32_t copied_bytes = 0;  // bytes of the message that were copied
};

/// Memory, pages and credit of both directions. One thread. The port must outlive it.
class MessageConnection {
 public:
  struct Settings {
    std::uint32_t page_bytes = 0;
    std::uint32_t pages = 0;          ///< number of pages to receive into; at most 16 as many to send from
    std::size_t most_bytes = 0;       ///< limit for a received message
    std::function<void()> wake = {};  ///< called when pages come back, until close(); the owner then calls replenish()
  };
  /// Errors transport.memory, transport.endpoint.
  static Result<std::unique_ptr<MessageConnection>> open(FabricPort& port, const Settings& settings);
  ~MessageConnection();
  MessageConnection(const MessageConnection&) = delete;
  MessageConnection& operator=(const MessageConnection&) = delete;

  FabricPort& port() const { return port_; }
  FabricPort::Connection number() const { return connection_; }

  /// Makes a message of these parts for queue(). With `copy`, copies their bytes. Otherwise the memory must stay until
  /// visit_done() passes the message.
  OutgoingMessage& make(MessageParts parts = {}, bool copy = false);
  /// Queues it behind earlier messages; it is sent as soon as there is credit.
  void queue(OutgoingMessage& message) { queue_.push_back(&message); }
  /// Removes a message from the queue. Pieces already sent stay sent. When the network has released the memory, visit_done()
  /// passes the message.
  void give_up(OutgoingMessage& message);
  /// Sends as much as credit and slots allow.
  void send();
  /// Calls visit(message) for each message whose memory is not needed any more, and recycles it for make().
  template <typename Visit>
  void visit_done(Visit&& visit) {
    for (std::size_t i = 0; i < done_.size(); ++i) {  // visit may add some
      visit(*done_[i]);
      recycle(*done_[i]);
    }
    done_.clear();
  }

  struct Incoming {
    formats::PieceHead head;
    ReceivedMessage message;
  };
  /// Returns the message that this event completes, if any. Error transport.protocol: the bytes make no sense; the
  /// connection must end.
  Result<std::optional<Incoming>> on_event(const FabricPort::Event& event);

  /// Sets the credit to `pages` of a CREDIT message.
  void credit(std::uint64_t pages) { credit_ = std::max(credit_, pages); }
  /// Messages wait because the peer has given no credit for another page.
  bool short_of_credit() const { return !queue_.empty() && sent_ == credit_; }
  /// Posts the returned pages again. Sends CREDIT on `socket`, unless our next page carries the credit.
  void replenish(ControlSocket& socket);

  /// True if replenish() or send() have work now, or will have work without a further event of the port.
  bool has_work() const;

  bool connected() const { return connected_; }
  /// Stops all transfers and moves all messages to visit_done().
  void close();

  std::uint64_t sent_bytes() const { return sent_bytes_; }      ///< bytes of messages
  std::uint64_t copied_bytes() const { return copied_bytes_; }  ///< part of sent_bytes()

 private:
  class Pages;
  struct Filled {
    std::size_t bytes = 0;   // bytes of the message in this piece
    std::size_t copied = 0;  // part of `bytes`
    std::size_t part = 0;
    std::size_t part_offset = 0;
  };

  MessageConnection(FabricPort& port, const Settings& settings) : port_(port), settings_(settings) {}

  Filled fill(const OutgoingMessage& message, std::byte* slot, std::vector<std::span<const std::byte>>& parts) const;
  Result<std::optional<Incoming>> on_page(std::uint32_t slot, std::size_t bytes);
  void recycle(OutgoingMessage& message);
  std::byte* slot(std::uint32_t number) const;

  FabricPort& port_;
  const Settings settings_;
  std::shared_ptr<Pages> pages_;
  FabricPort::Connection connection_ = 0;
  bool connected_ = false;
  bool closed_ = false;

  std::deque<OutgoingMessage*> queue_;
  std::vector<OutgoingMessage*> of_slot_;  // message in each slot to send from; the first of these slots has number `pages`
  std::vector<std::uint32_t> free_to_send_;
  std::vector<OutgoingMessage*> done_;
  std::vector<std::unique_ptr<OutgoingMessage>> all_;
  std::vector<OutgoingMessage*> unused_;
  std::vector<std::span<const std::byte>> parts_;
  std::uint64_t credit_ = 0;
  std::uint64_t sent_ = 0;  // pages sent
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t copied_bytes_ = 0;

  std::optional<Incoming> coming_;  // the unfinished message
  std::size_t has_ = 0;             // bytes of the unfinished message
  bool copies_ = false;             // the pieces are copied
  std::uint64_t posted_ = 0;
  std::uint64_t known_posted_ = 0;  // part of posted_ that the peer knows
  std::uint64_t arrived_ = 0;
};

}  // namespace rodeo::transport
