#include "router/watched_parts.h"

#include <fmt/format.h>

namespace rodeo::router {

std::vector<process::WatchedPart> watched_parts(const RouterStatus& status) {
  std::vector<process::WatchedPart> parts;
  if (status.waiting) parts.push_back({"the input", "a subscriber of each link", 0});
  for (const ReaderStatus& reader : status.readers) {
    for (const auto& subscriber : reader.subscribers) {
      if (subscriber.gone || subscriber.monitor || subscriber.pending_chunks == 0) continue;
      parts.push_back({fmt::format("pages of {} for {}", reader.name, subscriber.name),
                       subscriber.connected ? "the subscriber to take them" : "the subscriber, which is not connected",
                       subscriber.chunks - subscriber.pending_chunks});
    }
  }
  return parts;
}

}  // namespace rodeo::router
