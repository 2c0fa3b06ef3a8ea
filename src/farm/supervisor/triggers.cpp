#include "farm/supervisor/triggers.h"

#include <algorithm>

#include "base/clock.h"

namespace rodeo::farm {

Triggers::Triggers(const SupervisorSettings& settings, Events& events)
    : settings_(settings),
      events_(events),
      provable_(settings.seed),
      follower_(std::make_unique<trigger::TriggerFollower>(
          trigger::TriggerFollowerSettings{.address = settings.trigger,
                                           .name = settings.name,
                                           .system = settings.system,
                                           .seed = settings.seed,
                                           .secret_file = settings.trigger_secret_file})),
      source_(std::make_unique<trigger::TriggerSource>(
          *follower_, settings.name, settings.events_in_flight - kept_for_untold(settings.events_in_flight))) {}

bool Triggers::poll() {
  const std::uint64_t room = events_.room();
  full_ = room == 0;
  if (full_) return false;
  ranges_.clear();
  const std::uint64_t count = source_->take(room, ranges_);
  std::uint64_t over = 0;  // Number of events that are over already, and are not removed again.
  for (const trigger::TriggerRange& range : ranges_) {
    if (range.sequence != expected_) events_.begin_announced_range(range.id_of(0));
    if (range.sequence != expected_ || announced_from_ == UINT64_MAX) announced_from_ = range.id_of(0);
    expected_ = range.sequence + range.count;
    newest_ = range.id_of(range.count - 1);
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const std::uint64_t id = range.id_of(i);
      const auto trigger = provable_.trigger(formats::payload_id(id));
      const bool here = events_.announce({.id = id,
                                          .lumi_block = range.lumi_block,
                                          .scan_step = range.scan_step,
                                          .bcid = trigger.bcid,
                                          .trigger_type = trigger.trigger_type});
      over += here ? 0 : 1;
    }
  }
  if (over > 0) source_->done(over);
  under_way_ += count - over;
  return count > 0;
}

void Triggers::done(std::uint64_t removed) {
  const std::uint64_t count = std::min(removed, under_way_);
  under_way_ -= count;
  if (count > 0) source_->done(count);
}

bool Triggers::hold() {
  const bool held = source_->hold();
  return !poll() && held && !full_;
}

bool Triggers::take_gap() {
  const auto report = follower_->report();
  const std::uint64_t connections = report.link ? report.link->connections : 0;
  const bool gap = std::exchange(connections_, connections) != connections;
  if (gap) announced_from_ = UINT64_MAX;
  return gap;
}

}  // namespace rodeo::farm
