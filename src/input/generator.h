// The generator itself: it makes triggers on a schedule, accepts them while there is memory, and vetoes the others. Every
// link sends each trigger.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/provable.h"
#include "formats/trigger_plan.h"
#include "input/generator_settings.h"
#include "input/link_feed.h"
#include "input/trigger_history.h"
#include "input/trigger_list_feed.h"

namespace rodeo::input {

/// Single-threaded; time is an argument, so that tests are exact. Add streams and lists before start().
class Generator {
 public:
  using Counters = LinkFeed::Counters;

  /// `settings` must be complete(). Throws SetupError.
  explicit Generator(GeneratorSettings settings);

  const GeneratorSettings& settings() const { return settings_; }
  const Counters& counters() const { return counters_; }

  /// Adds a stream of the links at these positions. The generator owns it. Throws SetupError if there is no memory.
  PagedStream& add_stream(std::span<const LinkIndex> positions);

  /// Adds a list of accepted triggers, as TTC packets, for one reader.
  PagedStream& add_trigger_list();

  void start(std::uint64_t now_ns);

  /// Makes all triggers and data that are due up to now. Returns the time of the next call: `now_ns` if there is more to do
  /// at once. The work of one call is bounded. Streams see the data first, then the clock.
  std::uint64_t advance(std::uint64_t now_ns);

  /// True if a trigger that was due at `end_ns` or before is neither accepted nor vetoed.
  bool behind(std::uint64_t end_ns) const { return plan_.paced() && !plan_.exhausted() && plan_.due_ns() <= end_ns; }
  /// Offers no more triggers. Refuses triggers that were due before and are not yet handled: dead time, counted as overdue.
  void end_offering(std::uint64_t end_ns);

  /// True once all requested triggers are accepted and no chunk is held back.
  bool exhausted() const;

  /// Sends pending chunks and ends the streams; no further triggers. False if memory ran out: call again.
  bool finish(std::uint64_t now_ns);

  /// Number of chunks in closed pages; any thread.
  std::uint64_t chunks_sent() const;
  std::uint64_t bytes_sent() const;

 private:
  bool busy();
  std::uint64_t accept_batch(std::uint64_t now_ns, std::uint64_t flush_at_ns);
  std::uint64_t oldest_pending_ns() const;
  void flush(std::uint64_t time_ns);
  void publish(std::uint64_t processed_ns);

  GeneratorSettings settings_;
  formats::Provable provable_;
  formats::TriggerPlan plan_;
  TriggerHistory history_;
  Counters counters_;
  std::vector<std::unique_ptr<LinkFeed>> feeds_;
  std::vector<std::unique_ptr<TriggerListFeed>> lists_;

  std::uint64_t period_;
  std::uint32_t batch_;
  std::uint64_t flush_ns_;
  std::uint64_t last_call_ns_ = 0;
  std::uint64_t patience_ns_ = 0;  // time that triggers may wait for memory before they are vetoed
  std::uint64_t flushed_ = 0;      // every link has sent all triggers before this one
};

}  // namespace rodeo::input
