#include "emulator/fair_shares.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/fd_socket.h"

namespace rodeo::emulator {
namespace {

constexpr std::uint64_t kForgottenNs = 20'000'000;  // a member that has not called look() for this long is away
constexpr double kSlowerByFar = 4;
constexpr double kDenied = 0.03;  // a share of time; a scheduler's own work takes less
constexpr double kNewest = 0.25;  // weight of the newest value in the smoothed time of a piece

/// The time in which the calling thread was ready and had no processor (Linux: the second number of schedstat); 0 if the
/// kernel does not report it.
std::uint64_t denied_ns() {
  thread_local const base::UniqueFd file(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  if (!file || ::pread(file.get(), text.data(), text.size() - 1, 0) <= 0) return 0;
  const char* const waited = std::strchr(text.data(), ' ');
  return waited == nullptr ? 0 : std::strtoull(waited, nullptr, 10);
}

}  // namespace

FairShares::Member& FairShares::join() {
  const std::lock_guard lock(mutex_);
  return members_.emplace_back();
}

void FairShares::leave(Member& member) {
  const std::lock_guard lock(mutex_);
  members_.remove_if([&](const Member& one) { return &one == &member; });
}

bool FairShares::competes(const Member& other, const Member& member, std::uint64_t now_ns) const {
  return !other.resting_ && other.looked_ns_ + kForgottenNs > now_ns && other.denied_ > kDenied &&
         other.ns_each_ <= kSlowerByFar * member.ns_each_;
}

/// Called after a pause: the member need not catch up with the others' work, and its work before they came does not count
/// against it.
void FairShares::catch_up(Member& member, std::uint64_t now_ns) const {
  bool any = false;
  std::uint64_t least = 0;
  for (const Member& other : members_) {
    if (&other == &member || other.resting_ || other.looked_ns_ + kForgottenNs <= now_ns) continue;
    least = any ? std::min(least, other.done_) : other.done_;
    any = true;
  }
  if (any) member.done_ = std::clamp(member.done_, least, least + settings_.may_be_ahead);
}

bool FairShares::ahead(const Member& member, std::uint64_t now_ns) const {
  unsigned competing = 1;
  std::uint64_t least = member.done_;
  for (const Member& other : members_) {
    if (&other == &member || !competes(other, member, now_ns)) continue;
    ++competing;
    least = std::min(least, other.done_);
  }
  return competing * settings_.threads_each > settings_.processors && member.done_ - least > settings_.may_be_ahead;
}

bool FairShares::look(Member& member, std::uint64_t now_ns, std::uint64_t denied_ns) {
  const std::lock_guard lock(mutex_);
  if (member.resting_ || member.looked_ns_ + kForgottenNs <= now_ns) {
    catch_up(member, now_ns);
  } else if (member.not_counted_ > 0 && now_ns > member.looked_ns_) {
    const double denied =
        static_cast<double>(denied_ns - member.denied_ns_) / static_cast<double>(now_ns - member.looked_ns_);
    member.denied_ += kNewest * (denied - member.denied_);
    const double ns_each = static_cast<double>(now_ns - member.looked_ns_) / static_cast<double>(member.not_counted_);
    member.ns_each_ = member.ns_each_ == 0 ? ns_each : member.ns_each_ + kNewest * (ns_each - member.ns_each_);
  }
  member.resting_ = false;
  member.done_ += member.not_counted_;
  member.not_counted_ = 0;
  member.looked_ns_ = now_ns;
  member.denied_ns_ = denied_ns;
  return ahead(member, now_ns);
}

void FairShares::wait_turn(Member& member, std::uint64_t work) {
  if (!worked(member, work)) return;
  for (unsigned waits = 0; look(member, base::steady_now_ns(), denied_ns()) && waits < kMostWaits; ++waits)
    std::this_thread::sleep_for(kWait);
}

void FairShares::rest(Member& member) {
  if (member.resting_) return;
  const std::lock_guard lock(mutex_);
  member.resting_ = true;
}

}  // namespace rodeo::emulator
