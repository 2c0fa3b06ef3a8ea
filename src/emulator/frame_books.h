// Counts the fate of a link's heartbeat frames: sent, or lost for a named reason (docs/reference/emulator.md, "What is
// lost").
#pragma once

#include <cstdint>

namespace rodeo::emulator {

/// Frames of one link and their superpages. A frame counts as sent when a returned superpage holds a readable page of it:
/// then a reader delivers the frame, cut short if other pages are missing. Not thread-safe.
class FrameBooks {
 public:
  void begins() { open_ = true; }
  /// Adds the frame's next page. An unreadable page hides the pages after it, up to the end of the superpage.
  void page(bool readable, bool last) {
    ++pages_;
    hidden_behind_ = hidden_behind_ || !readable;
    here_ = here_ || !hidden_behind_;
    if (!last) return;
    if (!counted_) ++(here_ ? ended_ : hidden_);
    open_ = here_ = counted_ = false;
  }
  /// The superpage returns to the host (`given_back`), or is lost with its bytes.
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
  /// All frames in progress are cut off.
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
  bool open_ = false;           // a frame is in progress
  bool counted_ = false;        // this frame is counted as sent
  bool here_ = false;           // the frame has a readable page in the open superpage
  bool hidden_behind_ = false;  // an unreadable page hides the rest of the superpage
  std::uint64_t ended_ = 0;     // readable frames that ended in the open superpage and were not counted before
  std::uint64_t hidden_ = 0;    // unreadable frames that ended in the open superpage and were not counted before
  std::uint64_t pages_ = 0;     // pages in the open superpage
  std::uint64_t sent_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t corrupted_ = 0;
  std::uint64_t cut_off_ = 0;
  std::uint64_t pages_lost_ = 0;
  std::uint64_t bytes_lost_ = 0;
};

}  // namespace rodeo::emulator
