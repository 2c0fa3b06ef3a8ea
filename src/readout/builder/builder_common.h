// The common functions of both builders for their settings, links and counters.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/named_counters.h"
#include "base/thread.h"
#include "readout/builder/assembler.h"
#include "readout/builder/chunk_bytes.h"
#include "readout/builder/link_place.h"
#include "readout/builder/trigger_list.h"
#include "readout/builder/worker_counters.h"
#include "readout/sequence/sequencer.h"
#include "rodeo/builder.h"
#include "rodeo/parameters.h"
#include "rodeo/settings.h"

namespace rodeo::readout {

/// Throws SetupError for no links, too many links, an id used twice, or an impossible number of workers.
void check_links(const BuilderContext& context, std::uint32_t workers);

/// Throws SetupError (base.memory) if the machine has less free memory. `next` names the keys that reduce it.
void check_memory(std::uint64_t bytes, std::string_view purpose, std::string_view next);

/// check_memory() for all memory of a builder, before it is touched: `objects` in normal memory, `arenas` also in huge
/// pages.
void check_memory(double objects, double arenas, std::string_view purpose, std::string_view next);

/// The given error, with `next` as advice.
Error without_memory(Error error, std::string_view next);

/// The trigger's own list, for readers that are at most `entries` apart. Throws SetupError if the input has none.
std::unique_ptr<TriggerList> open_trigger_list(const BuilderContext& context, std::size_t readers, std::size_t entries);

/// The error for ids that cannot be aligned to a trigger list: the ids of the list restart at each reset, and wide ids do
/// not show resets.
std::optional<Error> refused_by_list(const TriggerFields& fields);

/// Settings of the sequencer from ids and window, for a ROB or for a group of links in turn. Logs warnings about cases that
/// cannot be detected.
Sequencer::Settings sequencing(const TriggerFields& fields, std::uint64_t window, std::uint32_t step,
                               std::size_t group_links, std::chrono::nanoseconds timeout, bool trigger_list);

/// The settings that both builders have.
template <typename S>
typename Settings<S>::Lines common_builder_settings() {
  return Settings<S>{
      setting(&S::timeout, "timeout",
              "Age at which an open event is closed without the links that have not delivered. It counts on the input's "
              "clock, only while the input is drained. If only one link or card has delivered (GBT), the others must also "
              "have brought nothing for ten times as long, at least 100 ms.",
              {.minimum = 1000}),
      setting(&S::workers, "workers", "Threads that read and build; links (FULL mode: groups) are split evenly over them.",
              {.minimum = 1, .maximum = 256}),
      setting(
          &S::idle, "idle",
          {{"sleep", base::IdlePolicy::sleep}, {"yield", base::IdlePolicy::yield}, {"spin", base::IdlePolicy::spin}},
          "What a worker does when there is nothing to do: sleep is kind to the machine, spin gives the lowest latency."),
      setting(&S::cpus, "cpus", "CPUs that the workers are pinned to, one each; empty leaves them free.", {.maximum = 4095}),
      setting(&S::trigger_list, "trigger_list",
              "Align to the trigger's own list of L1 ids (TTC link): an event that no link delivered is then built empty, "
              "and flagged.")}
      .list();
}

/// Adds one worker's counters to the status of its builder.
template <typename Worker>
void add_worker(FragmentBuilder::Status& status, const Worker& worker, const FragmentCounters& fragments) {
  status.fragments += fragments.read(FragmentCounter::built);
  status.incomplete += fragments.read(FragmentCounter::incomplete);
  status.without_removed += fragments.read(FragmentCounter::without_removed);
  status.chunks_built += fragments.read(FragmentCounter::chunks);
  status.payload_bytes += fragments.read(FragmentCounter::payload_bytes);
  for (std::size_t i = static_cast<std::size_t>(FragmentCounter::timeout); i < FragmentCounters::kCount; ++i) {
    base::counter_named(status.incomplete_by_reason, kFragmentInfo[i].name) +=
        fragments.read(static_cast<FragmentCounter>(i));
  }
  for (std::size_t i = 0; i < LostCounters::kCount; ++i) {
    base::counter_named(status.lost, kLostInfo[i].name) += worker.lost(static_cast<LostCounter>(i));
  }
  status.open_events += worker.open_events();
  status.pool_fill = std::max(status.pool_fill, worker.pool_fill());
  status.held_by_consumer = status.held_by_consumer || worker.held();
  status.workers.push_back(worker.worker_status());
  status.cpu_seconds += worker.cpu_seconds();
  for (std::size_t i = 0; i < worker.links().size(); ++i) {
    status.links.push_back(worker.link_status(i));
    status.chunks_received += status.links.back().chunks;
  }
}

/// Sums over all workers of a builder. Reads downstream counters first, because built chunks were received before.
template <typename Workers>
ChunkBytes chunk_bytes_of(const Workers& workers) {
  ChunkBytes bytes;
  for (const auto& worker : workers) bytes.add(worker->chunk_bytes());
  return bytes;
}

/// Places of the links of all workers, in the order in which add_worker() adds the links.
template <typename Workers>
std::vector<KnownPlace> link_places_of(const Workers& workers) {
  std::vector<KnownPlace> places;
  for (const auto& worker : workers) {
    for (std::size_t i = 0; i < worker->links().size(); ++i) places.push_back(worker->link_place(i));
  }
  return places;
}

/// Passes a command to the worker that has the link; false if none has it.
template <typename Workers>
bool command_link(const Workers& workers, Fid fid, LinkState state) {
  for (const auto& worker : workers) {
    for (std::size_t i = 0; i < worker->links().size(); ++i) {
      if (worker->links()[i].fid != fid) continue;
      worker->command(i, state);
      return true;
    }
  }
  return false;
}

}  // namespace rodeo::readout
