#include "process/watchdog.h"

#include <fmt/format.h>

#include <utility>

namespace rodeo::process {

std::string StandingPart::text() const { return fmt::format("{} has waited for {} for {:.0f} s", name, waits_for, seconds); }

void Watchdog::check(std::span<const WatchedPart> parts, std::uint64_t now_ns) {
  standing_.clear();
  for (auto& [name, state] : parts_) state.present = false;
  for (const WatchedPart& part : parts) {
    const auto [at, fresh] = parts_.try_emplace(part.name);
    PartState& state = at->second;
    state.present = true;
    if (fresh || state.progress != part.progress || part.waits_for.empty()) {
      if (state.reported) messages_.push_back(fmt::format("{} goes on", part.name));
      state = {.progress = part.progress, .since_ns = now_ns, .reported = false, .present = true};
      continue;
    }
    if (now_ns - state.since_ns < limit_ns_) continue;
    standing_.push_back({part.name, part.waits_for, static_cast<double>(now_ns - state.since_ns) * 1e-9});
    if (!std::exchange(state.reported, true))
      messages_.push_back("warning: " + standing_.back().text() + ", and does nothing");
  }
  std::erase_if(parts_, [](const auto& one) { return !one.second.present; });
}

std::vector<std::string> Watchdog::take_messages() { return std::exchange(messages_, {}); }

}  // namespace rodeo::process
