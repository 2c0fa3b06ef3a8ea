// The numbers that the trigger's own list gives: with the list, its entries alone make the segments.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "readout/sequence/links.h"
#include "readout/sequence/numbers.h"
#include "readout/sequence/trigger_entries.h"

namespace rodeo::readout {

/// Judges each entry by the next one, as chunks are judged.
class TriggerNumbers {
 public:
  TriggerNumbers(const SequencerSettings& settings, Links& links, Numbers& numbers)
      : settings_(settings), links_(links), numbers_(numbers), entries_(settings.list_entries) {}

  // ---- the list

  /// Appends an entry. False: there is no room until the oldest open event is closed.
  bool announce(const ListedTrigger& trigger, std::uint64_t now, Sequence oldest);
  bool has_room(Sequence oldest) const;
  /// `held`: the list has entries for which another worker has no room. While it is held, time-outs prove nothing.
  void set_held(bool held) { held_ = held; }
  bool held() const { return held_; }
  /// The list has ended: its last entry is judged without the next.
  void end();
  bool ended() const { return ended_; }
  /// Time has passed: an entry that waits for the next is judged without it.
  void judge_overdue_entry(std::uint64_t now);

  // ---- what it has

  const TriggerEntries& entries() const { return entries_; }
  bool has_number(Sequence number) const { return number < entries_.end() && number + entries_.size() >= entries_.end(); }
  /// The entry of this number is known; the list remembers the number.
  bool has_entry(Sequence number) const { return entries_.at(number).state == TriggerEntries::kListed; }
  /// The lowest number in [from, to) that the list has with this id and, where BCIDs are compared, this BCID. A lost entry
  /// has all BCIDs.
  std::optional<Sequence> find(Sequence from, Sequence to, std::uint32_t id, const std::uint16_t* bcid) const;
  /// The number of the event this many events later. Free numbers between two segments of the list are not events.
  Sequence number_after(Sequence number, std::uint64_t events) const;
  /// True if the list is about to come to this id, again or for the first time.
  bool repeats_soon(std::uint32_t id) const;

 private:
  static constexpr std::size_t kLeap = 3;  // entries in a row, each of which the next one follows

  void judge(const ListedTrigger& trigger, const ListedTrigger* following, bool final);
  void judge_first(const ListedTrigger& trigger, const ListedTrigger* following, bool final);
  void judge_pending(const ListedTrigger* following, bool final);
  void leap(const Place& next, const Place& place, const ListedTrigger& trigger);
  void open(const Place& lowest, const Place& brought);
  void append(const Place& place, const ListedTrigger& trigger);
  // Numbers that stay free between two segments: peers may have gone on since this thread saw them.
  std::uint64_t gap() const { return settings_.several_threads ? settings_.reach : 0; }

  const SequencerSettings& settings_;
  Links& links_;
  Numbers& numbers_;
  TriggerEntries entries_;
  std::optional<ListedTrigger> pending_;  // it waits for the next entry
  std::uint64_t pending_since_ = 0;
  // Entries from where the list may have leapt to; before it has begun: those that were not followed.
  std::vector<std::pair<Place, ListedTrigger>> leap_;
  bool ended_ = false;
  bool held_ = false;
};

}  // namespace rodeo::readout
