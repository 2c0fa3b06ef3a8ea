// Bounds the sources of one worker's stream - cards - against each other: one that is further ahead of another than the builder can hold waits.
//
// Cards are read independently: on a busy machine one may be read as far ahead as its memory reaches. The window would close events that the
// other card has, too, and whose data only have not been read. So a source may be `lead` events ahead of the slowest; then its page is
// parked and it is held: its memory fills, and the card, and at last the trigger, wait. Waited for is who has links that go on, until its time is
// out: what is silent, senseless or at its end holds nobody up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "readout/builder/gbt_link.h"
#include "rodeo/input.h"

namespace rodeo::readout {

/// Of one worker, in its thread. Nothing is allocated after construction.
class SourceBalance {
 public:
  struct Settings {
    std::uint64_t lead = 8192;              ///< events that a source may be ahead of another
    std::uint64_t timeout_ns = 10'000'000;  ///< on the event clock: so long a source without progress is waited for
  };

  /// Where the work on a parked page goes on.
  struct Place {
    Page* page = nullptr;
    std::size_t run = 0;
    std::uint32_t chunk = 0;
  };

  /// `links`: what the worker knows of the stream's links, by position; they and the stream outlive this.
  SourceBalance(const Settings& settings, DataStream& stream, std::span<const GbtLink> links);

  /// False where there is nothing to bound: then nothing else is called.
  bool several() const { return sources_.size() > 1; }

  /// The lowest number of the run is known.
  void begin(Sequence first);

  std::uint32_t source_of(const Page& page) const { return stream_.source_of(page.runs.front().link); }

  /// A page of this source is begun or gone on with.
  void begin_page(std::uint32_t source);

  /// How many of `left` chunks a link of this source may deliver now. `short_of_memory`: the events that are open have nearly all buffers.
  std::uint32_t room(std::uint32_t source, const GbtLink& link, std::uint32_t left, bool short_of_memory) {
    return link.coming() + left <= sources_[source].limit && !short_of_memory
               ? left
               : room_now(source, link, left, short_of_memory);
  }

  /// A source has delivered so many chunks.
  void delivered(std::uint32_t source, std::uint32_t chunks) { sources_[source].since_progress += chunks; }

  /// Keeps what is left of a page and holds its source.
  void park(std::uint32_t source, const Place& place, std::uint64_t event_clock);
  bool parked() const { return parked_ != 0; }
  std::size_t sources() const { return sources_.size(); }

  /// The run that a parked source goes on with; null if it is not parked.
  const ChunkRun* parked_run(std::uint32_t source) const {
    const Place& place = sources_[source].parked;
    return place.page == nullptr ? nullptr : &place.page->runs[place.run];
  }
  /// A parked source waits for what the others tell, however far it might go.
  void set_untold(std::uint32_t source, bool untold) { sources_[source].untold = untold; }

  struct Resumed {
    std::uint32_t source = 0;
    Place place;
    bool forced = false;  ///< all wait for each other: this one goes on beyond its bound
  };
  /// A parked page whose source may go on, if there is one. Its source is held no longer.
  std::optional<Resumed> resume(std::uint64_t event_clock, bool short_of_memory);
  /// Any parked page, however far its source is ahead. Its source is held no longer.
  std::optional<Resumed> resume_any();

  /// The first number that some source which is waited for has not come to, as of the last look().
  Sequence reached_by_all() const;

  /// The stream is drained but for what is held: who is behind and has made no progress for long - the time-out where somebody is held, else ten times
  /// that and at least 100 ms - is not waited for any more, until it goes on.
  void look(std::uint64_t event_clock);

 private:
  Resumed unpark(std::uint32_t source, bool forced);
  struct Source {
    std::vector<std::uint32_t> links;  ///< positions
    Place parked;                      ///< page == nullptr: none
    Sequence limit = 0;     ///< the first number that was out of its reach at the last look: by now it may reach further
    Sequence position = 0;  ///< how far it has come, at the last look
    std::uint64_t progress_at = 0;     ///< event clock when it was seen to go on, or when somebody began to wait for it
    std::uint64_t since_progress = 0;  ///< chunks
    bool silent = false;
    bool untold = false;
    bool has_links = true;  ///< some that are expected to bring every event, or nearly
  };

  void look_at(Source& source, std::uint64_t event_clock);
  bool waited_for(std::uint32_t source) const;
  std::uint32_t room_now(std::uint32_t source, const GbtLink& link, std::uint32_t left, bool short_of_memory);
  Sequence bound(std::uint32_t source, bool short_of_memory);

  const Settings settings_;
  DataStream& stream_;
  const std::span<const GbtLink> links_;
  std::vector<Source> sources_;
  std::uint32_t parked_ = 0;
  std::uint64_t event_clock_ = 0;  // at the last look
};

}  // namespace rodeo::readout
