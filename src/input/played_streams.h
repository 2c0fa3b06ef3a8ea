// The streams of an input that plays files: streams of links, and streams of the trigger's list. They begin and end
// together.
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

/// `Stream::claimed()` returns the place in the files up to which the stream may have played. Any thread may call it.
template <typename Stream>
class PlayedStreams {
 public:
  /// Returns the reader's handle; the stream stays here.
  std::unique_ptr<DataStream> add(std::unique_ptr<Stream> stream) { return add_to(streams_, std::move(stream)); }
  std::unique_ptr<DataStream> add_list(std::unique_ptr<Stream> stream) { return add_to(lists_, std::move(stream)); }

  /// The streams of links.
  std::span<const std::unique_ptr<Stream>> of_links() const { return streams_; }

  /// The largest value over all streams, those of the trigger's list included.
  template <typename Value>
  Value largest(Value least, Value (Stream::*of)() const) const {
    for (const auto* streams : {&streams_, &lists_}) {
      for (const auto& stream : *streams) least = std::max(least, (*stream.*of)());
    }
    return least;
  }

  /// Lets no stream pass the place of the foremost one, and returns this place.
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

/// Starts the time of the playback; further calls change nothing.
inline void start_now(std::atomic<std::uint64_t>& start_ns) {
  std::uint64_t not_started = 0;
  start_ns.compare_exchange_strong(not_started, base::steady_now_ns(), std::memory_order_release);
}

/// The failure of an input whose files may have been cut short; empty if they are whole.
inline std::string failure_of(const Result<void>& whole) {
  return whole ? std::string() : "input: " + whole.error().where + ": " + whole.error().what;
}

}  // namespace rodeo::input
