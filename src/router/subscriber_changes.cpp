#include "router/subscriber_changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sentence.h"

namespace rodeo::router {
namespace {

using transport::Publisher;

/// True if this subscriber of this reader is connected in `status`.
bool connected(const RouterStatus& status, std::size_t reader, const Publisher::Subscriber& subscriber) {
  if (reader >= status.readers.size()) return false;
  return std::ranges::any_of(status.readers[reader].subscribers, [&](const Publisher::Subscriber& one) {
    return one.connected && one.name == subscriber.name && one.peer == subscriber.peer;
  });
}

template <typename Report>
void each_only_in(const RouterStatus& one, const RouterStatus& other, Report&& report) {
  for (std::size_t reader = 0; reader < one.readers.size(); ++reader) {
    for (const Publisher::Subscriber& subscriber : one.readers[reader].subscribers) {
      if (subscriber.connected && !connected(other, reader, subscriber)) report(one.readers[reader].name, subscriber);
    }
  }
}

}  // namespace

std::string text_of(const Publisher::Subscriber& subscriber) {
  return fmt::format("{} ({}) at {}, {}", subscriber.name, subscriber.monitor ? "monitor" : "data", subscriber.peer,
                     subscriber.provider);
}

std::vector<std::string> subscriber_changes(const RouterStatus& before, const RouterStatus& now) {
  std::vector<std::string> out;
  each_only_in(before, now, [&](const std::string& reader, const auto& subscriber) {
    out.push_back(fmt::format("{}: {} is gone", reader, text_of(subscriber)));
  });
  each_only_in(now, before, [&](const std::string& reader, const auto& subscriber) {
    out.push_back(fmt::format("{}: {} takes {}", reader, text_of(subscriber), base::counted(subscriber.links, "link")));
  });
  return out;
}

}  // namespace rodeo::router
