// What waits for what? A link waits for what other readers may show. It does not wait for a reader that has read so far, or
// that waits for the link's own reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "readout/sequence/credibility.h"
#include "readout/sequence/links.h"
#include "readout/sequence/numbers.h"

namespace rodeo::readout {

class Waits {
 public:
  Waits(const SequencerSettings& settings, Links& links, const Numbers& numbers, const Credibility& credibility)
      : settings_(settings), links_(links), numbers_(numbers), credibility_(credibility) {}

  void add_window(std::size_t window) { oldest_open_.resize(std::max(oldest_open_.size(), window + 1)); }

  // ---- readers

  /// A reader has nothing more to read for now: other readers no longer wait for what its links may show.
  void set_drained(std::size_t reader) { links_.reader(reader).drained_departure = departures_; }
  /// The lowest number that the reader's window has open.
  void note_oldest(std::size_t reader, Sequence oldest);
  /// True if some reader does not wait for others: it reads, or its consumers hold it up, or its wait is over. Then no wait
  /// is too long. Otherwise nothing changes until a reader that has read everything gives up its wait.
  bool any_reader_proceeds() const;

  // ---- links

  /// The link has gone away. From now on it waits for readers that have not read so far.
  void on_departure(Link& link);
  /// The next chunk of the link waits: for room in the window, for the list, or for other readers.
  void block(Link& link);
  void unblock(Link& link);
  /// True if the link waits, and one of the readers [first, end) may still show where it belongs.
  bool may_be_resolved(const Link& link, std::size_t first, std::size_t end) const;
  /// True if one of the readers has live links, but none has gone on beyond this place: it may not have read so far.
  bool others_may_show(const Link& link, const Place& beyond) const {
    return others_may_show(link, beyond, 0, links_.readers());
  }
  /// True if many chunks have come since the link began to wait.
  bool has_waited_long(const Link& link) const { return link.offered >= 2 * settings_.reach + settings_.step; }
  /// True if the other link has not moved since this one began to wait, and its reader has nothing more to show.
  bool stands_still(const Link& other, const Link& since) const;
  /// True if the waiting chunks of the link reach over many events.
  bool spans_far(const Link& link) const;

 private:
  bool has_shown(std::size_t reader, const Link& link) const;
  bool may_show(std::size_t reader, const Link& link, const Place& beyond) const;
  bool others_may_show(const Link& link, const Place& beyond, std::size_t first, std::size_t end) const;
  std::optional<Place> place_in_question(const Link& link) const;
  bool waits_for(std::size_t reader, std::size_t other) const;
  bool gives_way(std::size_t reader, std::size_t other) const;
  bool is_behind(std::size_t reader, std::size_t other) const;
  Sequence front_of(std::size_t window) const;
  Sequence oldest_of(std::size_t reader) const { return oldest_open_[links_.reader(reader).window]; }

  const SequencerSettings& settings_;
  Links& links_;
  const Numbers& numbers_;
  const Credibility& credibility_;
  std::vector<Sequence> oldest_open_;  // by window: what its thread had open when it last waited or asked
  std::uint64_t departures_ = 0;
  mutable std::vector<std::size_t> reached_;  // for gives_way()
};

}  // namespace rodeo::readout
