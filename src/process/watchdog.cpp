#include "process/watchdog.h"

#include <fmt/format.h>

#include <utility>

namespace rodeo::process {

std::string StandingPart::text() const { return fmt::format("{} has waited for {} for {:.0f} s", name, waits_for, seconds); }

void Watchdog::look(std::span<const WatchedPart> parts, std::uint64_t now_ns) {
  standing_.clear();
  for (auto& [name, seen] : seen_) seen.there = false;
  for (const WatchedPart& part : parts) {
    const auto [at, fresh] = seen_.try_emplace(part.name);
    Seen& seen = at->second;
    seen.there = true;
    if (fresh || seen.progress != part.progress || part.waits_for.empty()) {
      if (seen.told) messages_.push_back(fmt::format("{} goes on", part.name));
      seen = {.progress = part.progress, .since_ns = now_ns, .told = false, .there = true};
      continue;
    }
    if (now_ns - seen.since_ns < limit_ns_) continue;
    standing_.push_back({part.name, part.waits_for, static_cast<double>(now_ns - seen.since_ns) * 1e-9});
    if (!std::exchange(seen.told, true)) messages_.push_back("warning: " + standing_.back().text() + ", and does nothing");
  }
  std::erase_if(seen_, [](const auto& one) { return !one.second.there; });
}

std::vector<std::string> Watchdog::take_messages() { return std::exchange(messages_, {}); }

}  // namespace rodeo::process
