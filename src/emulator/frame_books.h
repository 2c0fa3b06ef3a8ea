// Where the heartbeat frames of a link end: sent, or lost under a name (docs/emulator.md, "What is lost").
#pragma once

#include <cstdint>

namespace rodeo::emulator {

/// Frames of one link and the superpages that they lie in. A frame counts as sent when a page of it that can be read is in a superpage that was
/// given back: a reader hands it over then, cut short if others are missing. Not thread-safe.
class FrameBooks {
 public:
  void begins() { open_ = true; }
  /// The next page of the frame is in the superpage; what follows a page that cannot be read, up to the superpage's end, cannot be either.
  void page(bool readable, bool last) {
    ++pages_;
    hidden_behind_ = hidden_behind_ || !readable;
    here_ = here_ || !hidden_behind_;
    if (!last) return;
    if (!counted_) ++(here_ ? ended_ : hidden_);
    open_ = here_ = counted_ = false;
  }
  /// The superpage is given back, or lost with its bytes.
  void superpage_ends(bool given_back, std::uint64_t bytes) {
    if (given_back) {
      sent_ += ended_;
      corrupted_ += hidden_;
      if (open_ && here_ && !counted_) {
        ++sent_;
        counted_ = true;
      }
    } else {
      lost_ += ended_ + hidden_;
      pages_lost_ += pages_;
      bytes_lost_ += bytes;
    }
    ended_ = hidden_ = pages_ = 0;
    here_ = hidden_behind_ = false;
  }
  /// Nothing of what is under way will come.
  void cut_off() {
    cut_off_ += ended_ + hidden_ + (open_ && !counted_ ? 1 : 0);
    ended_ = hidden_ = pages_ = 0;
    open_ = here_ = counted_ = hidden_behind_ = false;
  }

  std::uint64_t sent() const { return sent_; }
  std::uint64_t lost() const { return lost_; }
  std::uint64_t corrupted() const { return corrupted_; }
  std::uint64_t cut_off_frames() const { return cut_off_; }
  std::uint64_t pages_lost() const { return pages_lost_; }
  std::uint64_t bytes_lost() const { return bytes_lost_; }

 private:
  bool open_ = false;           // a frame is under way
  bool counted_ = false;        // it was sent
  bool here_ = false;           // and has a page in the open superpage that can be read
  bool hidden_behind_ = false;  // a page that cannot
  std::uint64_t ended_ = 0;     // frames that ended in the open superpage and were not sent before
  std::uint64_t hidden_ = 0;    // those of them that nobody can read
  std::uint64_t pages_ = 0;     // in the open superpage
  std::uint64_t sent_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t corrupted_ = 0;
  std::uint64_t cut_off_ = 0;
  std::uint64_t pages_lost_ = 0;
  std::uint64_t bytes_lost_ = 0;
};

}  // namespace rodeo::emulator
