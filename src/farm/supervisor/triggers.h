// A supervisor's source of events: follows the trigger authority, and accepts no more events than the books have room for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "farm/supervisor/books.h"
#include "farm/supervisor/settings.h"
#include "formats/provable.h"
#include "trigger/follower.h"

namespace rodeo::farm {

/// One thread; the follower has its own.
class Triggers {
 public:
  /// Does not wait for the authority. Throws SetupError: trigger.address, transport.no_secret, transport.secret_file.
  Triggers(const SupervisorSettings& settings, Books& books);

  void start() { source_->set_ready(true); }
  /// Takes the triggers that have come, while there is room. True if there were some.
  bool poll();
  /// Announced events have left the books: the trigger may go on by that many.
  void done(std::uint64_t left_the_books);
  /// True once everything accepted before is in the books, and nothing else comes. Call it again until then.
  bool hold();
  void end() { source_->set_ready(false); }

  /// True if triggers may have been accepted unannounced since the last call, because the connection is new.
  bool take_gap();
  /// The first id that was announced since then; UINT64_MAX: none.
  std::uint64_t told_from() const { return told_from_; }
  /// Where the run is: the last id that was announced.
  std::optional<std::uint64_t> newest() const { return newest_; }
  trigger::TriggerReport report() const { return follower_->report(); }
  std::optional<Error> refused() const { return follower_->refused(); }

 private:
  const SupervisorSettings& settings_;
  Books& books_;
  const formats::Provable provable_;
  std::unique_ptr<trigger::TriggerFollower> follower_;
  std::unique_ptr<trigger::TriggerSource> source_;
  std::vector<trigger::TriggerRange> ranges_;
  std::uint64_t expected_ = UINT64_MAX;  // Sequence number.
  std::uint64_t connections_ = 0;
  std::uint64_t told_from_ = UINT64_MAX;
  std::optional<std::uint64_t> newest_;
  std::uint64_t under_way_ = 0;  // Announced, and in the books.
  bool full_ = false;            // The books are full: triggers that have come wait.
};

}  // namespace rodeo::farm
