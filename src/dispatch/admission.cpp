#include "dispatch/admission.h"

#include <algorithm>
#include <cassert>

namespace rodeo::dispatch {

bool Admission::has(std::uint64_t id) const {
  return settling_.contains(id) || ready_.contains(id) || std::ranges::binary_search(asked_, id);
}

void Admission::found(std::uint64_t id, std::uint64_t now_ns) {
  if (has(id) || !make_place(id)) return;
  const std::uint64_t due_ns = now_ns + settings_.settle_ns;
  settling_.emplace(id, Settling{.due_ns = due_ns});
  due_.emplace(due_ns, id);
}

void Admission::set_due(SettlingAt at, std::uint64_t due_ns) {
  due_.erase({at->second.due_ns, at->first});
  at->second.due_ns = due_ns;
  due_.emplace(due_ns, at->first);
}

/// If the lists are full, the newest id makes place for an older one. A dropped id is found again: readouts still hold it.
bool Admission::make_place(std::uint64_t id) {
  if (untold() < settings_.most_untold) return true;
  overflow_ = true;
  const std::uint64_t newest_settling = settling_.empty() ? 0 : std::prev(settling_.end())->first;
  const std::uint64_t newest_ready = ready_.empty() ? 0 : std::prev(ready_.end())->first;
  if (id >= std::max(newest_settling, newest_ready)) return false;
  if (newest_settling > newest_ready) {
    const auto at = settling_.find(newest_settling);
    due_.erase({at->second.due_ns, newest_settling});
    settling_.erase(at);
  } else {
    ready_.erase(newest_ready);
  }
  return true;
}

void Admission::answer(std::span<const Recorded> recorded) {
  assert(recorded.size() == asked_.size());
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (recorded[i] != Recorded::yes) ready_.emplace(asked_[i], recorded[i] == Recorded::unknown);
  }
  asked_.clear();
}

bool Admission::take_overflow() {
  if (!overflow_ || untold() > settings_.most_untold / 2) return false;
  overflow_ = false;
  return true;
}

}  // namespace rodeo::dispatch
