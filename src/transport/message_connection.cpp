#include "transport/message_connection.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/arena.h"

namespace rodeo::transport {
namespace {

constexpr std::uint32_t kMostPagesToSend = 16;
constexpr std::size_t kSmall = 256;  // parts up to this size are copied; longer ones are sent from their place

}  // namespace

/// The receive memory, and those of its pages that may be posted. It lives until its last message is destroyed.
class MessageConnection::Pages final : public PageHome {
 public:
  Pages(base::Arena memory, std::uint32_t count) : memory_(std::move(memory)), free_(count) {
    std::iota(free_.begin(), free_.end(), 0U);
  }
  void give_back(std::uint32_t slot) noexcept override {
    free_.push_back(slot);  // the vector never reallocates
    if (wake) wake();
  }

  std::span<std::byte> memory() const { return {memory_.data(), memory_.size()}; }
  std::vector<std::uint32_t>& free() { return free_; }

  std::function<void()> wake;

 private:
  base::Arena memory_;
  std::vector<std::uint32_t> free_;
};

Result<std::unique_ptr<MessageConnection>> MessageConnection::open(FabricPort& port, const Settings& settings) {
  const std::uint32_t to_send = std::min(settings.pages, kMostPagesToSend);
  auto memory = RODEO_TRY(base::Arena::create(std::size_t{settings.pages + to_send} * settings.page_bytes));
  std::unique_ptr<MessageConnection> made(new MessageConnection(port, settings));
  made->pages_ = std::make_shared<Pages>(std::move(memory), settings.pages);
  made->pages_->wake = settings.wake;
  made->of_slot_.resize(to_send);
  for (std::uint32_t i = 0; i < to_send; ++i) made->free_to_send_.push_back(settings.pages + i);
  auto connection = port.open(made->pages_->memory(), settings.page_bytes);
  if (!connection) {
    made->closed_ = true;
    return std::unexpected(connection.error());
  }
  made->connection_ = *connection;
  return made;
}

MessageConnection::~MessageConnection() { close(); }

std::byte* MessageConnection::slot(std::uint32_t number) const {
  return pages_->memory().data() + std::size_t{number} * settings_.page_bytes;
}

// ---- sending

OutgoingMessage& MessageConnection::make(MessageParts parts, bool copy) {
  if (unused_.empty()) unused_.push_back(all_.emplace_back(std::make_unique<OutgoingMessage>()).get());
  OutgoingMessage& message = *unused_.back();
  unused_.pop_back();
  std::size_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  message.head.message_bytes = static_cast<std::uint32_t>(bytes);
  if (copy) {
    message.own.reserve(bytes);
    for (const auto part : parts) message.own.insert(message.own.end(), part.begin(), part.end());
    message.parts.emplace_back(message.own);
  } else {
    message.parts.assign(parts.begin(), parts.end());
  }
  return message;
}

void MessageConnection::recycle(OutgoingMessage& message) {
  message.parts.clear();
  message.own.clear();
  OutgoingMessage empty;
  empty.parts.swap(message.parts);  // keeps their allocated memory
  empty.own.swap(message.own);
  message = std::move(empty);
  unused_.push_back(&message);
}

void MessageConnection::give_up(OutgoingMessage& message) {
  std::erase(queue_, &message);
  message.given = true;
  if (message.under_way == 0) done_.push_back(&message);
}

// Collects the next piece of a message. Small parts are copied behind the head, or behind the previous copy, so that many
// become one.
MessageConnection::Filled MessageConnection::fill(const OutgoingMessage& message, std::byte* to,
                                                  std::vector<std::span<const std::byte>>& parts) const {
  const std::size_t most_parts = port_.most_parts();
  std::size_t room = settings_.page_bytes - formats::kPieceHeadBytes;
  std::byte* begin = to;
  std::byte* end = to + formats::kPieceHeadBytes;
  Filled filled{.part = message.part, .part_offset = message.part_offset};
  parts.clear();
  while (room > 0 && filled.part < message.parts.size()) {
    const auto rest = message.parts[filled.part].subspan(filled.part_offset);
    const std::size_t bytes = std::min(rest.size(), room);
    const bool copies = rest.size() < kSmall || most_parts == 1;
    const std::size_t more = (begin != end || copies ? 1 : 0) + (copies ? 0 : 1);
    if (parts.size() + more > most_parts) break;
    if (copies) {
      std::ranges::copy(rest.first(bytes), end);  // copies nothing for an empty part
      end += bytes;
      filled.copied += bytes;
    } else {
      if (begin != end) parts.emplace_back(begin, end);
      begin = end;
      parts.push_back(rest.first(bytes));
    }
    room -= bytes;
    filled.bytes += bytes;
    filled.part_offset += bytes;
    if (filled.part_offset == message.parts[filled.part].size()) {
      ++filled.part;
      filled.part_offset = 0;
    }
  }
  if (begin != end) parts.emplace_back(begin, end);
  return filled;
}

void MessageConnection::send() {
  while (connected_ && !queue_.empty() && !free_to_send_.empty() && sent_ < credit_) {
    OutgoingMessage& message = *queue_.front();
    const std::uint32_t number = free_to_send_.back();
    const Filled filled = fill(message, slot(number), parts_);
    message.head.credit = static_cast<std::uint32_t>(posted_);
    const auto head = formats::encode_piece_head(message.head);
    std::memcpy(slot(number), head.data(), head.size());
    if (!port_.send(connection_, number, parts_)) return;
    free_to_send_.pop_back();
    of_slot_[number - settings_.pages] = &message;
    ++sent_;
    known_posted_ = posted_;
    sent_bytes_ += filled.bytes;
    copied_bytes_ += filled.copied;
    message.part = filled.part;
    message.part_offset = filled.part_offset;
    message.head.offset += static_cast<std::uint32_t>(filled.bytes);
    message.begun = true;
    ++message.under_way;
    if (message.head.offset < message.head.message_bytes) continue;
    message.given = true;
    queue_.pop_front();
  }
}

// ---- receiving

Result<std::optional<MessageConnection::Incoming>> MessageConnection::on_event(const FabricPort::Event& event) {
  using What = FabricPort::Event::What;
  switch (event.what) {
    case What::connected: connected_ = true; break;
    case What::received: return on_page(event.slot, event.bytes);
    case What::sent: {
      OutgoingMessage& message = *std::exchange(of_slot_[event.slot - settings_.pages], nullptr);
      free_to_send_.push_back(event.slot);
      if (--message.under_way == 0 && message.given) done_.push_back(&message);
      break;
    }
    case What::broken: return std::unexpected(Error{"transport.closed", "the fabric's connection is gone"});
  }
  return std::nullopt;
}

Result<std::optional<MessageConnection::Incoming>> MessageConnection::on_page(std::uint32_t number, std::size_t bytes) {
  ++arrived_;
  const auto piece = formats::decode_piece({slot(number), bytes});
  if (!piece) {
    pages_->give_back(number);
    return std::unexpected(Error{"transport.protocol", "it sent an invalid piece: " + piece.error().message()});
  }
  const formats::PieceHead& head = piece->head;
  const auto wrong = [&](std::string what) {
    pages_->give_back(number);
    return std::unexpected(Error{"transport.protocol", std::move(what)});
  };
  const auto more_credit = static_cast<std::int32_t>(head.credit - static_cast<std::uint32_t>(credit_));
  if (more_credit > 0) credit_ += static_cast<std::uint32_t>(more_credit);
  if (head.message_bytes > settings_.most_bytes) return wrong("it sent a message above the size limit");
  if (head.offset == 0) {
    // Replaces an unfinished message, which its sender gave up.
    coming_.emplace(head, ReceivedMessage(pages_));
    has_ = 0;
    const std::size_t per_page = settings_.page_bytes - formats::kPieceHeadBytes;
    copies_ = (head.message_bytes + per_page - 1) / per_page > settings_.pages / 2;
  } else if (!coming_ || coming_->head.number != head.number || coming_->head.type != head.type ||
             coming_->head.message_bytes != head.message_bytes || has_ != head.offset) {
    return wrong("it sent a piece that does not continue a message");
  }
  has_ += piece->bytes.size();
  // Some pages must stay free for further pieces: a sender may cut a message into any number of small pieces.
  const std::size_t kept = settings_.pages - (posted_ - arrived_) - pages_->free().size();  // this page included
  if (!copies_ && kept > settings_.pages - std::max<std::size_t>(settings_.pages / 4, 1)) {
    coming_->message.leave_pages();
    copies_ = true;
  }
  if (copies_ || piece->bytes.empty()) {
    coming_->message.add_copy(piece->bytes);
    pages_->give_back(number);
  } else {
    coming_->message.add(number, piece->bytes);
  }
  if (has_ < head.message_bytes) return std::nullopt;
  return std::exchange(coming_, std::nullopt);
}

void MessageConnection::replenish(ControlSocket& socket) {
  if (!connected_) return;
  std::vector<std::uint32_t>& free = pages_->free();
  for (; !free.empty() && port_.receive(connection_, free.back()); free.pop_back()) ++posted_;
  // A page that we send carries our credit free of charge. A CREDIT message is sent only if the peer knows of at most half
  // of the pages.
  if (posted_ == known_posted_ || known_posted_ - std::min(known_posted_, arrived_) > settings_.pages / 2) return;
  known_posted_ = posted_;
  socket.say(formats::ControlCredit{.pages = known_posted_});
}

bool MessageConnection::has_work() const {
  return connected_ && (!queue_.empty() || !pages_->free().empty() || !done_.empty());
}

void MessageConnection::close() {
  pages_->wake = {};
  if (std::exchange(closed_, true)) return;
  connected_ = false;
  port_.close(connection_);
  for (OutgoingMessage* const message : queue_) {
    message->given = true;
    if (message->under_way == 0) done_.push_back(message);
  }
  queue_.clear();
  for (OutgoingMessage*& message : of_slot_) {
    OutgoingMessage* const one = std::exchange(message, nullptr);
    if (one == nullptr || --one->under_way != 0) continue;
    one->given = true;
    done_.push_back(one);
  }
  coming_.reset();
}

}  // namespace rodeo::transport
