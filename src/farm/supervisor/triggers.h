// Where a supervisor learns of events: it follows the trigger authority, and lets no more come than it has room for.
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

/// One thread; the follower has one of its own.
class Triggers {
 public:
  /// Does not wait for the authority. Throws SetupError: trigger.address.
  Triggers(const SupervisorSettings& settings, Books& books);

  void start() { source_->set_ready(true); }
  /// Takes what has come, as far as there is room. True if there was something.
  bool poll();
  /// Events that were told of have left the books: the trigger may go on by so many.
  void done(std::uint64_t left_the_books);
  /// True once everything that was accepted before is in the books, and nothing else comes. To be called again until then.
  bool hold();
  void end() { source_->set_ready(false); }

  /// Triggers may have been accepted since the last time that nobody told us of: the connection was made anew.
  bool take_gap();
  /// The first id that was told of since then; UINT64_MAX: none was.
  std::uint64_t told_from() const { return told_from_; }
  /// Where the run is: the last id that was told of.
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
  std::uint64_t expected_ = UINT64_MAX;  // sequence number
  std::uint64_t connections_ = 0;
  std::uint64_t told_from_ = UINT64_MAX;
  std::optional<std::uint64_t> newest_;
  std::uint64_t under_way_ = 0;  // told of, and in the books
  bool full_ = false;            // the books: what has come waits
};

}  // namespace rodeo::farm
