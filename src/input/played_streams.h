// The streams that an input has given out of the files which it plays: those of links, and those of the trigger's list. They begin and end together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "input/paged_stream.h"
#include "rodeo/input.h"

namespace rodeo::input {

/// Stream: `claimed()` is the place in the files up to which it may have played, by any thread.
template <typename Stream>
class PlayedStreams {
 public:
  /// What the reader of the stream gets; the stream stays here.
  std::unique_ptr<DataStream> add(std::unique_ptr<Stream> stream) { return add_to(streams_, std::move(stream)); }
  std::unique_ptr<DataStream> add_list(std::unique_ptr<Stream> stream) { return add_to(lists_, std::move(stream)); }

  /// Those of links.
  std::span<const std::unique_ptr<Stream>> of_links() const { return streams_; }

  /// Of each, those of the trigger's list included: the largest value.
  template <typename Value>
  Value largest(Value least, Value (Stream::*of)() const) const {
    for (const auto* streams : {&streams_, &lists_}) {
      for (const auto& stream : *streams) least = std::max(least, (*stream.*of)());
    }
    return least;
  }

  /// Lets streams go no further than the foremost, and says where that is.
  std::uint64_t hold(std::atomic<std::uint64_t>& hold_at) const {
    std::uint64_t place = largest(std::uint64_t{0}, &Stream::claimed);
    while (true) {
      hold_at.store(place);
      const std::uint64_t now = largest(place, &Stream::claimed);
      if (now == place) return place;
      place = now;
    }
  }

 private:
  using Streams = std::vector<std::unique_ptr<Stream>>;

  static std::unique_ptr<DataStream> add_to(Streams& streams, std::unique_ptr<Stream> stream) {
    streams.push_back(std::move(stream));
    return std::make_unique<StreamHandle>(*streams.back());
  }

  Streams streams_;
  Streams lists_;
};

/// Time begins for what is played, once.
inline void start_now(std::atomic<std::uint64_t>& start_ns) {
  std::uint64_t not_started = 0;
  start_ns.compare_exchange_strong(not_started, base::steady_now_ns(), std::memory_order_release);
}

/// What an input says of files that may have been cut short; empty: they have not.
inline std::string failure_of(const Result<void>& whole) {
  return whole ? std::string() : "input: " + whole.error().where + ": " + whole.error().what;
}

}  // namespace rodeo::input
