// Decides which links a stream may leave out before decoding: links without a subscriber, once the data for the last
// subscriber are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::router {

/// One thread. `wanted(link)`: true if a link has a subscriber now; `set_wanted(link, wanted)` passes this to the stream.
/// The stream still reads and counts a link that has lost its subscriber, so that a run that ends with a backlog can tell
/// what happened to its chunks. It leaves the link out after `grace`, or after half a second without a page. The half second
/// gives a card time to empty a queue of its own.
class WantedLinks {
 public:
  WantedLinks(std::size_t links, std::uint64_t grace_ns) : known_(links, true), grace_ns_(grace_ns) {}

  /// Call it when a link gained or lost a subscriber. Tells the stream about a wanted link at once, at the start also about
  /// an unwanted one.
  template <typename Wanted, typename SetWanted>
  void on_change(std::uint64_t now_ns, Wanted&& wanted, SetWanted&& set_wanted) {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const auto link = static_cast<LinkIndex>(i);
      if (wanted(link)) {
        if (!known_[i]) set_wanted(link, true);
        known_[i] = true;
      } else if (known_[i]) {
        leave_out_pending_ = true;
        since_ns_ = page_ns_ = now_ns;
      }
    }
    if (!begun_) leave_out(wanted, set_wanted);
    begun_ = true;
  }

  /// Call it after each poll. `empty`: the stream had no page.
  template <typename Wanted, typename SetWanted>
  void on_poll(bool empty, std::uint64_t now_ns, Wanted&& wanted, SetWanted&& set_wanted) {
    if (!empty) page_ns_ = now_ns;
    if (leave_out_pending_ && (now_ns - page_ns_ > kQuietNs || now_ns - since_ns_ > grace_ns_))
      leave_out(wanted, set_wanted);
  }

 private:
  static constexpr std::uint64_t kQuietNs = 500'000'000;

  template <typename Wanted, typename SetWanted>
  void leave_out(Wanted&& wanted, SetWanted&& set_wanted) {
    leave_out_pending_ = false;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      const auto link = static_cast<LinkIndex>(i);
      if (known_[i] && !wanted(link)) {
        known_[i] = false;
        set_wanted(link, false);
      }
    }
  }

  std::vector<bool> known_;  // the stream's knowledge; at first all links are wanted
  std::uint64_t grace_ns_;
  std::uint64_t since_ns_ = 0;
  std::uint64_t page_ns_ = 0;       // time of the last page after since_ns_
  bool leave_out_pending_ = false;  // the stream still reads a link without a subscriber
  bool begun_ = false;
};

}  // namespace rodeo::router
