// Is there room? The window has room for a number if more of its links have passed the event that would close than have
// still to come to it.
#pragma once

#include <optional>

#include "readout/sequence/links.h"
#include "readout/sequence/numbers.h"
#include "readout/sequence/waits.h"

namespace rodeo::readout {

class Room {
 public:
  Room(const SequencerSettings& settings, Links& links, const Numbers& numbers, const Waits& waits)
      : settings_(settings), links_(links), numbers_(numbers), waits_(waits) {}

  /// The window of the link has room for this number.
  bool has_room(const Link& link, Sequence number) const;
  /// The number of a place that the link may come to: near after the place of the link, or at most `reach` events beyond the
  /// foremost other link that is read with it, and the window has room.
  std::optional<Sequence> reachable(const Link& link, const Place& place) const;
  /// has_room(), but a link that has waited long no longer waits for links that have not moved since.
  bool make_room(const Link& link, Sequence number);

 private:
  bool may_close(const Link& of, Sequence oldest) const;
  bool is_last(const Link& link) const;

  const SequencerSettings& settings_;
  Links& links_;
  const Numbers& numbers_;
  const Waits& waits_;
};

}  // namespace rodeo::readout
