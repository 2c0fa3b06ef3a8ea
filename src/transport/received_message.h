// A request or reply that was received: its bytes stay in pages of the connection if there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rodeo::transport {

/// A message in memory: the bytes of the parts, one after the other.
using MessageParts = std::span<const std::span<const std::byte>>;

/// The place to which pages of a message return.
class PageHome {
 public:
  virtual ~PageHome() = default;
  virtual void give_back(std::uint32_t slot) noexcept = 0;
};

/// Owns its pages and gives them back when it is destroyed: until then the other side has less room to send into. Kept
/// messages never block others: a message that arrives while most pages are kept, or that needs most of them, is copied to
/// its own memory. All messages of a connection belong to the thread of its Requester or Replier; other threads may read the
/// bytes while that thread keeps the message. It may outlive the connection.
class ReceivedMessage {
 public:
  ReceivedMessage() = default;
  explicit ReceivedMessage(std::shared_ptr<PageHome> home) : home_(std::move(home)) {}
  ReceivedMessage(ReceivedMessage&& other) noexcept = default;
  ReceivedMessage& operator=(ReceivedMessage&& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(slots_, other.slots_);
    std::swap(pieces_, other.pieces_);
    std::swap(own_, other.own_);
    return *this;
  }
  ReceivedMessage(const ReceivedMessage&) = delete;
  ReceivedMessage& operator=(const ReceivedMessage&) = delete;
  ~ReceivedMessage() {
    for (const std::uint32_t slot : slots_) home_->give_back(slot);
  }

  /// The pieces in order. No piece is empty.
  std::span<const std::span<const std::byte>> pieces() const { return pieces_; }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto piece : pieces_) sum += piece.size();
    return sum;
  }

  /// The memory at `out` must have room for bytes().
  void copy_to(std::byte* out) const {
    for (const auto piece : pieces_) {
      std::memcpy(out, piece.data(), piece.size());
      out += piece.size();
    }
  }

  /// Returns the whole message in one piece: in place, or copied to `scratch` if it has several pieces.
  std::span<const std::byte> in_one_piece(std::vector<std::byte>& scratch) const {
    if (pieces_.size() <= 1) return pieces_.empty() ? std::span<const std::byte>{} : pieces_.front();
    scratch.resize(bytes());
    copy_to(scratch.data());
    return scratch;
  }

  // Only the receiving connection calls these functions.

  /// Adds a piece that stays in its page.
  void add(std::uint32_t slot, std::span<const std::byte> piece) {
    slots_.push_back(slot);
    if (!piece.empty()) pieces_.push_back(piece);
  }
  /// Copies the bytes in pages and gives the pages back. All further pieces must be copied, too.
  void leave_pages() {
    std::vector<std::byte> all(bytes());
    copy_to(all.data());
    for (const std::uint32_t slot : std::exchange(slots_, {})) home_->give_back(slot);
    own_ = std::move(all);
    pieces_.assign(own_.empty() ? 0 : 1, std::span<const std::byte>(own_));
  }
  /// Adds a copy of the piece. Either all pieces of a message are copied, or none.
  void add_copy(std::span<const std::byte> piece) {
    own_.insert(own_.end(), piece.begin(), piece.end());
    pieces_.assign(own_.empty() ? 0 : 1, std::span<const std::byte>(own_));
  }

 private:
  std::shared_ptr<PageHome> home_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::span<const std::byte>> pieces_;
  std::vector<std::byte> own_;
};

}  // namespace rodeo::transport
