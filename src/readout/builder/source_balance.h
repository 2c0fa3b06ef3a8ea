// Bounds the sources (cards) of one worker's stream against each other: a source that is too far ahead of another waits.
//
// Cards are read independently: on a busy machine, one card may be read as far ahead as its memory reaches. The window would
// then close events whose data from the other card are only unread. So a source may be `lead` events ahead of the slowest;
// then its page is parked and the source is held. Its memory fills, and the card and at last the trigger wait. Others wait
// for a source while it has links that make progress, until its time-out. They do not wait for a source that is silent, has
// ended, or brings invalid data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "readout/builder/gbt_link.h"
#include "rodeo/input.h"

namespace rodeo::readout {

/// For one worker, in its thread. Nothing is allocated after construction.
class SourceBalance {
 public:
  struct Settings {
    std::uint64_t lead = 8192;              ///< most events that a source may be ahead of another
    std::uint64_t timeout_ns = 10'000'000;  ///< time on the event clock that others wait for a source without progress
  };

  /// The place where the work on a parked page continues.
  struct Place {
    Page* page = nullptr;
    std::size_t run = 0;
    std::uint32_t chunk = 0;
  };

  /// `links`: the worker's data of the stream's links, by position. They and the stream must outlive this object.
  SourceBalance(const Settings& settings, DataStream& stream, std::span<const GbtLink> links);

  /// False if there is only one source: then no other function is called.
  bool several() const { return sources_.size() > 1; }

  /// Sets the lowest number of the run.
  void begin(Sequence first);

  std::uint32_t source_of(const Page& page) const { return stream_.source_of(page.runs.front().link); }

  /// Says that a page of this source is begun or continued.
  void begin_page(std::uint32_t source);

  /// The number of chunks, at most `left`, that a link of this source may deliver now. `short_of_memory`: open events use
  /// nearly all buffers.
  std::uint32_t allowance(std::uint32_t source, const GbtLink& link, std::uint32_t left, bool short_of_memory) {
    return link.coming() + left <= sources_[source].limit && !short_of_memory
               ? left
               : compute_allowance(source, link, left, short_of_memory);
  }

  /// Says that a source has delivered this many chunks.
  void delivered(std::uint32_t source, std::uint32_t chunks) { sources_[source].since_progress += chunks; }

  /// Keeps the rest of a page and holds its source.
  void park(std::uint32_t source, const Place& place, std::uint64_t event_clock);
  bool parked() const { return parked_ != 0; }
  std::size_t sources() const { return sources_.size(); }

  /// The run at which a parked source continues; null if it is not parked.
  const ChunkRun* parked_run(std::uint32_t source) const {
    const Place& place = sources_[source].parked;
    return place.page == nullptr ? nullptr : &place.page->runs[place.run];
  }
  /// Says whether a parked source waits for data of other sources, even within its bound.
  void set_waits_for_others(std::uint32_t source, bool waits_for_others) {
    sources_[source].waits_for_others = waits_for_others;
  }

  struct Resumed {
    std::uint32_t source = 0;
    Place place;
    bool forced = false;  ///< all sources wait for each other, so this one may exceed its bound
  };
  /// A parked page whose source may continue, if there is one; the source is then no longer held.
  std::optional<Resumed> resume(std::uint64_t event_clock, bool short_of_memory);
  /// Any parked page, even if its source is far ahead; the source is then no longer held.
  std::optional<Resumed> resume_any();

  /// The first number that some awaited source had not reached at the last look().
  Sequence reached_by_all() const;

  /// Called while the stream is drained except for held sources. Others no longer wait for a source that is behind and made
  /// no progress for long, until it makes progress. "Long" is the time-out if a source is held, else ten times the time-out
  /// and at least 100 ms.
  void check_sources(std::uint64_t event_clock);

 private:
  Resumed unpark(std::uint32_t source, bool forced);
  struct Source {
    std::vector<std::uint32_t> links;  ///< positions of the source's links
    Place parked;                      ///< place on the parked page; without a page: not parked
    Sequence limit = 0;                ///< the first number out of reach at the last look; it may reach further now
    Sequence position = 0;             ///< place that it had reached at the last look
    std::uint64_t progress_at = 0;  ///< event clock of the last progress, or of the moment when others began to wait for it
    std::uint64_t since_progress = 0;  ///< chunks since the last progress
    bool silent = false;
    bool waits_for_others = false;
    bool has_links = true;  ///< has links that should bring (nearly) every event
  };

  void update_position(Source& source, std::uint64_t event_clock);
  bool is_awaited(std::uint32_t source) const;
  std::uint32_t compute_allowance(std::uint32_t source, const GbtLink& link, std::uint32_t left, bool short_of_memory);
  Sequence bound(std::uint32_t source, bool short_of_memory);

  const Settings settings_;
  DataStream& stream_;
  const std::span<const GbtLink> links_;
  std::vector<Source> sources_;
  std::uint32_t parked_ = 0;
  std::uint64_t event_clock_ = 0;  // event clock at the last look
};

}  // namespace rodeo::readout
