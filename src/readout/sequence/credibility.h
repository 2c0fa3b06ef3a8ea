// Is the link credible? A link that was silent may have lost its place: its peers and BCIDs prove it. A link that has gone
// away is followed if enough others go with it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "readout/sequence/links.h"
#include "readout/sequence/numbers.h"
#include "readout/sequence/silences.h"
#include "readout/sequence/trigger_numbers.h"

namespace rodeo::readout {

/// Of the live links: how many have gone with a link that is away, and how many are against it.
struct Votes {
  std::uint32_t in_favor = 0;      ///< links that have gone with it
  std::uint32_t live = 0;          ///< live links
  std::uint32_t against = 0;       ///< links that go on beyond where they left
  bool has_enough_chunks = false;  ///< they have brought enough chunks to be followed
  bool has_lasted = false;         ///< they have been there long enough
  Place left{};                    ///< the furthest place that one of them left

  bool is_majority() const { return 2 * in_favor > live; }
  bool is_plurality() const { return in_favor > against && has_lasted; }
};

class Credibility {
 public:
  Credibility(const SequencerSettings& settings, Links& links, const Numbers& numbers, const TriggerNumbers& list,
              const Silences& silences)
      : settings_(settings), links_(links), numbers_(numbers), list_(list), silences_(silences) {}

  /// The most links that follow() may follow.
  void reserve(std::size_t links) { reached_.reserve(links); }

  // ---- links that were silent

  /// Call it before a chunk of the link is judged. True if the link has lost its place.
  bool loses_place(Link& link, std::uint32_t id);
  /// The link is somewhere: its chunks are flagged until its place is proven.
  void lose_place(Link& link);
  /// The place of the first id of a link, before the run has begun. Nothing if the event lies before the first one of other
  /// groups. The link may be in doubt until its place is proven: other readers may have gone far by then.
  std::optional<Place> first_place(Link& link, std::uint32_t id) const;
  /// The place of an id of a link of which nothing is known, or which has lost its place, when the run has begun.
  Place find_place(const Link& link, std::uint32_t id) const;
  /// The number of a chunk that would be taken for `number`: another one if live peers or BCIDs say so. Ends the link's
  /// doubt if they prove its place.
  Sequence prove(Link& link, Sequence number, std::uint32_t id, std::uint16_t bcid);

  // ---- links that are away

  /// Call it when the link has left.
  void on_leave(Link& link) const;
  /// The link is back: it no longer leaves for the other readers.
  void on_return(Link& link) const;
  /// Most others went on when the link left: they contradict its counter. Or they did before, and it has brought no event of
  /// theirs since.
  bool is_alone(const Link& link) const { return link.alone || is_contradicted(link); }
  /// The link's new place is known, and near those that are here or were followed.
  bool is_within_reach(const Link& link) const;
  Votes votes(const Link& link) const;
  /// The lowest place at which the links begin that have gone with this one.
  Place group_begin(const Link& link) const;
  /// Asks the other readers of the process, and shows them where the link has gone. True if there are none; or if, of those
  /// that have gone on since these links left, at least as many are at the new place as go on at the old one. If there are
  /// neither, the links wait as long as there is room: until the time-out, and longer if another reader goes away elsewhere.
  bool others_follow(Link& link, const Place& left);
  /// Follows the links that have gone with this one. True if links were not followed so far before.
  bool follow(const Link& link);

 private:
  bool end_silence(Link& link, std::uint32_t id);
  std::optional<PeerPlace> find_peers(const Link& link, bool asks_others = false) const;
  Place place_beside_links(std::uint32_t id) const;
  Place place_from_peers(const Link& link, const PeerPlace& peers, std::uint32_t id) const;
  void compare_with_list(Link& link, Sequence number, std::uint16_t bcid) const;
  Sequence prove_place(Link& link, Sequence number, std::uint32_t id, std::uint16_t bcid);
  Sequence weigh_bcid(Link& link, Sequence number, std::uint32_t id, std::uint16_t bcid, std::optional<Sequence> peers_at);
  static Sequence move_link(Link& link, Sequence from, Sequence to, bool by_bcid);
  static void apply_finding(Link& link, const PlaceEvidence::Finding& finding);
  bool has_witness(const Link& link) const;
  bool is_witness(const Link& link) const { return links_.is_here(link) && !link.sequence.doubtful && !link.was_silent; }

  bool is_contradicted(const Link& link) const;
  bool are_together(const Link& a, const Link& b) const;
  bool goes_with(const Link& link, const Link& other) const {
    return other.away() && are_together(link, other) && !other.alone;
  }

  const SequencerSettings& settings_;
  Links& links_;
  const Numbers& numbers_;
  const TriggerNumbers& list_;
  const Silences& silences_;
  std::vector<Sequence> reached_;                  // for follow(), of each followed link
  std::vector<ReaderTrack::Position> others_;      // for others_follow()
  std::vector<PlaceEvidence::OtherPlace> places_;  // for weigh_bcid()
};

}  // namespace rodeo::readout
