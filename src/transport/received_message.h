// A request or a reply that has come: its bytes, in pages of the connection where there is room to leave them there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rodeo::transport {

/// Where pages of a message go back to.
class PageHome {
 public:
  virtual ~PageHome() = default;
  virtual void give_back(std::uint32_t slot) noexcept = 0;
};

/// Owns its pages and gives them back when it goes: until then the other side has so much less room to send into. Messages that are kept never stop others:
/// what comes when most pages are kept, and what would need most of them, is copied to memory of its own. All of one connection belong to the thread of
/// its Requester or Replier; other threads may read the bytes while that thread keeps the message. It may outlive the connection.
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

  /// In order; none is empty.
  std::span<const std::span<const std::byte>> pieces() const { return pieces_; }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto piece : pieces_) sum += piece.size();
    return sum;
  }

  /// `out` has room for bytes().
  void copy_to(std::byte* out) const {
    for (const auto piece : pieces_) {
      std::memcpy(out, piece.data(), piece.size());
      out += piece.size();
    }
  }

  /// All of it in one piece: where it lies, or, if that is several places, in `scratch`.
  std::span<const std::byte> in_one_piece(std::vector<std::byte>& scratch) const {
    if (pieces_.size() <= 1) return pieces_.empty() ? std::span<const std::byte>{} : pieces_.front();
    scratch.resize(bytes());
    copy_to(scratch.data());
    return scratch;
  }

  // For whoever receives.

  /// The piece stays where it is.
  void add(std::uint32_t slot, std::span<const std::byte> piece) {
    slots_.push_back(slot);
    if (!piece.empty()) pieces_.push_back(piece);
  }
  /// What is in pages is copied, and these go back: all that follows must be copied, too.
  void leave_pages() {
    std::vector<std::byte> all(bytes());
    copy_to(all.data());
    for (const std::uint32_t slot : std::exchange(slots_, {})) home_->give_back(slot);
    own_ = std::move(all);
    pieces_.assign(own_.empty() ? 0 : 1, std::span<const std::byte>(own_));
  }
  /// The piece is copied; whether all of a message's are, or none.
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
