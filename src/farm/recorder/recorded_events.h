// Which events a recorder has, and to which stream each was recorded.
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

/// Ids by stream; streams are few. One thread.
class RecordedEvents {
 public:
  using Stream = formats::HaveAnswer::Stream;
  using StreamNumber = std::uint32_t;

  /// Of this stream, from now on.
  StreamNumber number_of(std::string_view type, std::string_view name) {
    for (StreamNumber i = 0; i < streams_.size(); ++i) {
      if (streams_[i].stream.type == type && streams_[i].stream.name == name) return i;
    }
    streams_.push_back({.stream = {.type = std::string(type), .name = std::string(name)}, .ids = {}});
    return static_cast<StreamNumber>(streams_.size() - 1);
  }

  /// False: it was there. An event that is in a stream for debugging and in another is of the other.
  bool add(std::uint64_t id, StreamNumber stream) {
    const Stream* const before = find(id);
    if (before == nullptr || (is_debug(*before) && !is_debug(streams_[stream].stream))) streams_[stream].ids.add(id);
    size_ += before == nullptr ? 1 : 0;
    return before == nullptr;
  }

  /// One of `copies` is in a file of this stream: killed between the flushes of two files, a recorder has an event in some of its streams alone.
  void add_copy(std::uint64_t id, StreamNumber stream, std::uint64_t copies) {
    if (copies > 1) {
      if (find(id) != nullptr && !partly_.contains(id)) return;
      auto& streams = partly_[id];
      if (std::ranges::find(streams, stream) == streams.end()) streams.push_back(stream);
      if (streams.size() >= copies) partly_.erase(id);
    }
    add(id, stream);
  }

  /// Of an event that is in some of its streams alone: those. nullptr: it is in all of them, or not there.
  const std::vector<StreamNumber>* partly(std::uint64_t id) const {
    const auto found = partly_.find(id);
    return found == partly_.end() ? nullptr : &found->second;
  }
  std::uint64_t partly_there() const { return partly_.size(); }
  /// It is in all of its streams now.
  void complete(std::uint64_t id) { partly_.erase(id); }

  /// nullptr: it is not there. Valid until the next new stream.
  const Stream* find(std::uint64_t id) const {
    const Stream* found = nullptr;
    for (const OfStream& one : streams_) {
      if (one.ids.contains(id) && (found == nullptr || is_debug(*found))) found = &one.stream;
    }
    return found;
  }

  std::uint64_t size() const { return size_; }

  static bool is_debug(const Stream& stream) { return stream.type == "debug"; }

 private:
  struct OfStream {
    Stream stream;
    SparseIdSet ids;
  };

  std::vector<OfStream> streams_;
  std::unordered_map<std::uint64_t, std::vector<StreamNumber>> partly_;
  std::uint64_t size_ = 0;
};

}  // namespace rodeo::farm
