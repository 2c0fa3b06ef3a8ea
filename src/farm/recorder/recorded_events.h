// The events that a recorder has, and the streams to which they were recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "farm/recorder/sparse_id_set.h"
#include "formats/event_record.h"

namespace rodeo::farm {

/// Ids by stream; there are few streams. One thread.
class RecordedEvents {
 public:
  using Stream = formats::HaveAnswer::Stream;
  using StreamNumber = std::uint32_t;

  /// Returns the number of this stream. A new stream gets the next number.
  StreamNumber stream_number(std::string_view type, std::string_view name) {
    for (StreamNumber i = 0; i < streams_.size(); ++i) {
      if (streams_[i].stream.type == type && streams_[i].stream.name == name) return i;
    }
    streams_.push_back({.stream = {.type = std::string(type), .name = std::string(name)}, .ids = {}});
    return static_cast<StreamNumber>(streams_.size() - 1);
  }

  /// False: the event was recorded before. An event in a debug stream and in another stream counts for the other stream.
  bool add(std::uint64_t id, StreamNumber stream) {
    const Stream* const before = stream_of(id);
    if (before == nullptr || (is_debug(*before) && !is_debug(streams_[stream].stream))) streams_[stream].ids.add(id);
    size_ += before == nullptr ? 1 : 0;
    return before == nullptr;
  }

  /// Adds one of `copies`, found in a file of this stream. After a kill between two flushes, an event may lack some streams.
  void add_copy(std::uint64_t id, StreamNumber stream, std::uint64_t copies) {
    if (copies > 1) {
      if (stream_of(id) != nullptr && !partial_.contains(id)) return;
      auto& streams = partial_[id];
      if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
      if (streams.size() >= copies) partial_.erase(id);
    }
    add(id, stream);
  }

  /// Returns the streams that have an event if other streams of the event lack it, else nullptr.
  const std::vector<StreamNumber>* partial_streams(std::uint64_t id) const {
    const auto found = partial_.find(id);
    return found == partial_.end() ? nullptr : &found->second;
  }
  std::uint64_t partial_events() const { return partial_.size(); }
  /// Call it when all streams of the event have it.
  void mark_complete(std::uint64_t id) { partial_.erase(id); }

  /// Returns nullptr if the event is not recorded. Valid until the next new stream.
  const Stream* stream_of(std::uint64_t id) const {
    const Stream* found = nullptr;
    for (const StreamIds& one : streams_) {
      if (one.ids.contains(id) && (found == nullptr || is_debug(*found))) found = &one.stream;
    }
    return found;
  }

  std::uint64_t size() const { return size_; }

  static bool is_debug(const Stream& stream) { return stream.type == "debug"; }

 private:
  struct StreamIds {
    Stream stream;
    SparseIdSet ids;
  };

  std::vector<StreamIds> streams_;
  std::unordered_map<std::uint64_t, std::vector<StreamNumber>> partial_;
  std::uint64_t size_ = 0;
};

}  // namespace rodeo::farm
