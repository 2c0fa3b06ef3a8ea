// Which links a stream leaves out before it decodes them: links without a subscriber, once the data for the last subscriber are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rodeo/ids.h"

namespace rodeo::router {

/// One thread. `wanted(link)` says whether a link has a subscriber now, `tell(link, wanted)` passes it on to the stream. A link that was wanted is read on, and so
/// counted, until the stream has had no page for half a second - a card may have a queue of its own, which comes when there is room again -, or for `grace`: a run
/// that ends with a backlog can then say where its chunks went.
class WantedLinks {
 public:
  WantedLinks(std::size_t links, std::uint64_t grace_ns) : told_(links, true), grace_ns_(grace_ns) {}

  /// Call when a link gained or lost a subscriber. A wanted link is told at once; at the start so is an unwanted one.
  template <typename Wanted, typename Tell>
  void change(std::uint64_t now_ns, Wanted&& wanted, Tell&& tell) {
    for (std::size_t i = 0; i < told_.size(); ++i) {
      const auto link = static_cast<LinkIndex>(i);
      if (wanted(link)) {
        if (!told_[i]) tell(link, true);
        told_[i] = true;
      } else if (told_[i]) {
        waits_ = true;
        since_ns_ = page_ns_ = now_ns;
      }
    }
    if (!begun_) leave_out(wanted, tell);
    begun_ = true;
  }

  /// After each poll. `empty`: the stream had no page.
  template <typename Wanted, typename Tell>
  void polled(bool empty, std::uint64_t now_ns, Wanted&& wanted, Tell&& tell) {
    if (!empty) page_ns_ = now_ns;
    if (waits_ && (now_ns - page_ns_ > kQuietNs || now_ns - since_ns_ > grace_ns_)) leave_out(wanted, tell);
  }

 private:
  static constexpr std::uint64_t kQuietNs = 500'000'000;

  template <typename Wanted, typename Tell>
  void leave_out(Wanted&& wanted, Tell&& tell) {
    waits_ = false;
    for (std::size_t i = 0; i < told_.size(); ++i) {
      const auto link = static_cast<LinkIndex>(i);
      if (told_[i] && !wanted(link)) {
        told_[i] = false;
        tell(link, false);
      }
    }
  }

  std::vector<bool> told_;  // as the stream knows it; at first it has all
  std::uint64_t grace_ns_;
  std::uint64_t since_ns_ = 0;
  std::uint64_t page_ns_ = 0;  // the last page since then
  bool waits_ = false;         // a link without a subscriber is still told as wanted
  bool begun_ = false;
};

}  // namespace rodeo::router
