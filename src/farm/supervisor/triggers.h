// A supervisor's source of events: follows the trigger authority. Accepts only as many triggers as Events has room for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "farm/supervisor/events.h"
#include "farm/supervisor/settings.h"
#include "formats/provable.h"
#include "trigger/follower.h"

namespace rodeo::farm {

/// One thread. The follower has its own thread.
class Triggers {
 public:
  /// Does not wait for the authority. Throws SetupError: trigger.address, transport.no_secret, transport.secret_file.
  Triggers(const SupervisorSettings& settings, Events& events);

  void start() { source_->set_ready(true); }
  /// Takes the triggers that have arrived, while there is room. True if there were some.
  bool poll();
  /// Reports the number of announced events that were removed; the trigger may send as many more.
  void done(std::uint64_t removed);
  /// True once all accepted triggers are in Events and nothing else comes. Call it until then.
  bool hold();
  void end() { source_->set_ready(false); }

  /// True if triggers may have been accepted unannounced since the last call, because the connection is new.
  bool take_gap();
  /// The first id that was announced since the last take_gap(); UINT64_MAX: none.
  std::uint64_t announced_from() const { return announced_from_; }
  /// The last id that was announced: the run is at this event.
  std::optional<std::uint64_t> newest() const { return newest_; }
  trigger::TriggerReport report() const { return follower_->report(); }
  std::optional<Error> refused() const { return follower_->refused(); }

 private:
  const SupervisorSettings& settings_;
  Events& events_;
  const formats::Provable provable_;
  std::unique_ptr<trigger::TriggerFollower> follower_;
  std::unique_ptr<trigger::TriggerSource> source_;
  std::vector<trigger::TriggerRange> ranges_;
  std::uint64_t expected_ = UINT64_MAX;  // Sequence number.
  std::uint64_t connections_ = 0;
  std::uint64_t announced_from_ = UINT64_MAX;
  std::optional<std::uint64_t> newest_;
  std::uint64_t under_way_ = 0;  // Number of announced events in Events.
  bool full_ = false;            // Events has no room, and triggers wait.
};

}  // namespace rodeo::farm
