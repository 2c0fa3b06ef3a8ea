// The generator proper: triggers on a schedule, accepted while there is memory, vetoed otherwise, and sent by every link.
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

/// Single-threaded, and time is an argument, so that tests are exact. Streams and lists are added before start().
class Generator {
 public:
  using Counters = LinkFeed::Counters;

  /// `settings` are complete(). Throws SetupError.
  explicit Generator(GeneratorSettings settings);

  const GeneratorSettings& settings() const { return settings_; }
  const Counters& counters() const { return counters_; }

  /// A stream that carries the links at these positions. Owned by the generator. Throws SetupError if there is no memory.
  PagedStream& add_stream(std::span<const LinkIndex> positions);

  /// The list of accepted triggers, as TTC packets; one stream per reader.
  PagedStream& add_trigger_list();

  void start(std::uint64_t now_ns);

  /// Makes everything that is due up to now and returns when to be called again: `now_ns` if there is more to do at once.
  /// The work of one call is bounded. Streams see the data, then the clock.
  std::uint64_t advance(std::uint64_t now_ns);

  /// Triggers that were due up to then are neither accepted nor vetoed yet.
  bool behind(std::uint64_t end_ns) const { return plan_.paced() && !plan_.exhausted() && plan_.due_ns() <= end_ns; }
  /// Nothing is offered after this. What was due before, and did not get its turn, is refused: dead time, and counted as overdue.
  void end_offering(std::uint64_t end_ns);

  /// True once all triggers asked for are accepted and no chunk is held back any more.
  bool exhausted() const;

  /// Sends what is under way and ends the streams; no further triggers. False if memory ran out: to be called again.
  bool finish(std::uint64_t now_ns);

  /// Chunks in closed pages; any thread.
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
  std::uint64_t patience_ns_ = 0;  // how long triggers may wait for memory instead of being vetoed
  std::uint64_t flushed_ = 0;      // all triggers before this one are sent by every link
};

}  // namespace rodeo::input
