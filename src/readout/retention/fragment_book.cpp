#include "readout/retention/fragment_book.h"

#include <algorithm>

namespace rodeo::readout {

FragmentBook::Counts& FragmentBook::Counts::operator+=(const Counts& other) {
  taken += other.taken;
  cleared += other.cleared;
  cleared_early += other.cleared_early;
  duplicates += other.duplicates;
  garbage += other.garbage;
  left_over += other.left_over;
  late += other.late;
  cleared_again += other.cleared_again;
  early_forgotten += other.early_forgotten;
  return *this;
}

FragmentBook::FragmentBook(const Settings& settings)
    : settings_(settings),
      table_(std::max<std::size_t>(settings.most_fragments, 1)),
      entries_(std::max<std::size_t>(settings.most_fragments, 1)),
      recent_(std::size_t{settings.reorder_fragments} + 1),
      placed_(!settings.short_ids()),
      early_table_(std::max<std::size_t>(settings.most_early_clears, 1)),
      early_(std::max<std::size_t>(settings.most_early_clears, 1)),
      gone_table_(std::max<std::size_t>(settings.reorder_fragments, 1)),
      gone_(std::max<std::size_t>(settings.reorder_fragments, 1)) {
  for (auto place = static_cast<std::uint32_t>(entries_.size()); place-- > 0;) {
    entries_[place].newer = free_;
    free_ = place;
  }
}

double FragmentBook::memory_bytes(const Settings& settings) {
  constexpr double kOfTable = 4 * sizeof(std::uint64_t);  // bytes per id: the table is at most a quarter full
  return static_cast<double>(settings.most_fragments) * (sizeof(Entry) + kOfTable) +
         static_cast<double>(settings.most_early_clears) * (sizeof(Moment) + kOfTable) +
         static_cast<double>(settings.reorder_fragments) * sizeof(Moment);
}

FragmentBook::Taken FragmentBook::take(FragmentPtr& fragment, std::uint64_t now_ns) {
  if (!has_newest_ && run_at_ && !settings_.short_ids()) {
    offset_ = lacking(fragment->global_id);
    aligned_ = true;
  }
  const std::uint64_t id = fragment->global_id + offset_;
  const auto let_it_go = [&](std::uint64_t& why) {
    note_newest(id, now_ns);
    ++counts_.taken;
    ++why;
    fragment.reset();
    return Taken::let_go;
  };
  if (table_.find(id) != GlobalIdTable::kNone || is_gone(id)) return let_it_go(counts_.duplicates);
  if (early_table_.size() != 0 && early_table_.erase(id)) {
    let_it_go(counts_.cleared_early);
    note_gone(id, now_ns);
    return Taken::let_go;
  }
  if (free_ == GlobalIdTable::kNone) return Taken::full;
  if (passed(id)) ++counts_.late;
  note_newest(id, now_ns);
  ++counts_.taken;
  keep(fragment, id, now_ns);
  return Taken::kept;
}

FragmentBook::Found FragmentBook::find(std::uint64_t id) const {
  if (!placed_ && has_newest_) return {unplaced_ ? Answer::lost : Answer::pending};
  if (const std::uint32_t place = table_.find(id); place != GlobalIdTable::kNone)
    return {Answer::there, &entries_[place].fragment};
  if (passed(id) || is_gone(id)) return {Answer::lost};
  if (early_table_.size() != 0 && early_table_.find(id) != GlobalIdTable::kNone) return {Answer::lost};
  return {Answer::pending};
}

void FragmentBook::clear(std::uint64_t id, std::uint64_t now_ns) {
  if (const std::uint32_t place = table_.find(id); place != GlobalIdTable::kNone) {
    cleared_came_ns_ = std::max(cleared_came_ns_, entries_[place].came_ns);
    ++counts_.cleared;
    let_go(place);
    return note_gone(id, now_ns);
  }
  if (passed(id) || is_gone(id) || early_table_.find(id) != GlobalIdTable::kNone) {
    ++counts_.cleared_again;
    return;
  }
  remember_clear(id, now_ns);
}

void FragmentBook::advance(std::uint64_t now_ns) {
  if (!first_settled_ && has_newest_ && first_ns_ + settings_.reorder_ns <= now_ns) {
    first_settled_ = true;
    place(false);
  }
  if (some_outside_ || free_ == GlobalIdTable::kNone) {
    held_up_ns_ = now_ns;
  } else {
    const auto over = [&](const Moment& one) { return std::max(one.at_ns, held_up_ns_) + settings_.reorder_ns <= now_ns; };
    while (!recent_.empty() && over(recent_.front())) move_line();
    while (!gone_.empty() && over(gone_.front())) forget_gone();
  }
  while (!early_.empty() && early_.front().at_ns + settings_.garbage_ns <= now_ns) forget_clear();
  collect_garbage();
}

void FragmentBook::align(std::uint64_t run_at, bool newest) {
  if (settings_.short_ids()) {
    if (!newest) return;  // the id of a single request may be old or wrong
    run_at_ = std::max(run_at, run_at_.value_or(0));
    return place(true);
  }
  if (aligned_) return;
  run_at_ = run_at;
  aligned_ = has_newest_;
  if (!has_newest_) return;
  if (const std::uint64_t by = lacking(newest_); by != 0) shift(by);
}

// Places a book with short ids. `newest`: the run is now at run_at_.
void FragmentBook::place(bool newest) {
  if (aligned_ || !has_newest_ || !run_at_ || !first_settled_) return;
  if (may_begin_the_run() || (newest && *run_at_ < settings_.id_step)) {
    placed_ = aligned_ = true;
  } else if (*run_at_ >= settings_.id_step && (newest || !placed_)) {
    placed_ = false;
    unplaced_ = aligned_ = true;
  }
}

bool FragmentBook::may_begin_the_run() const { return first_ == 0 && *run_at_ <= newest_ + most(); }

// The multiple of the step that brings this id nearest to the farm's id; at least 0.
std::uint64_t FragmentBook::lacking(std::uint64_t id) const {
  const std::uint64_t half = settings_.id_step / 2;
  if (has_newest_ ? may_begin_the_run() : id == 0 && *run_at_ <= most()) return 0;
  if (*run_at_ < id + half) return 0;
  return (*run_at_ - id + half) / settings_.id_step * settings_.id_step;
}

// Remembered clears and waiting requests already use the farm's ids.
void FragmentBook::shift(std::uint64_t by) {
  offset_ += by;
  newest_ += by;
  first_ += by;
  line_ += by;
  recent_.shift(by);
  gone_.shift(by);
  table_.clear();
  for (std::uint32_t at = oldest_; at != GlobalIdTable::kNone; at = entries_[at].newer)
    table_.insert(entries_[at].global_id += by, at);
  gone_table_.clear();
  gone_.for_each([&](std::uint64_t id, std::uint32_t place) { gone_table_.insert(id, place); });
}

void FragmentBook::alone() {
  placed_ = placed_ || (first_settled_ && !unplaced_);
  // Readouts that join later take their rounds from this book.
  aligned_ = aligned_ || (placed_ && settings_.short_ids() && newest_ >= settings_.id_step);
}

void FragmentBook::end() {
  ended_ = true;
  first_settled_ = has_newest_;
  place(false);
}

void FragmentBook::let_all_go() {
  while (oldest_ != GlobalIdTable::kNone) {
    ++counts_.left_over;
    let_go(oldest_);
  }
}

void FragmentBook::keep(FragmentPtr& fragment, std::uint64_t id, std::uint64_t now_ns) {
  const std::uint32_t place = free_;
  Entry& entry = entries_[place];
  free_ = entry.newer;
  table_.insert(id, place);
  entry.global_id = id;
  entry.came_ns = now_ns;
  entry.bytes = static_cast<std::uint32_t>(fragment->payload_bytes());
  entry.fragment = std::move(fragment);
  bytes_ += entry.bytes;
  entry.older = newest_entry_;
  entry.newer = GlobalIdTable::kNone;
  (newest_entry_ == GlobalIdTable::kNone ? oldest_ : entries_[newest_entry_].newer) = place;
  newest_entry_ = place;
}

void FragmentBook::let_go(std::uint32_t place) {
  Entry& entry = entries_[place];
  table_.erase(entry.global_id);
  entry.fragment.reset();
  bytes_ -= entry.bytes;
  (entry.older == GlobalIdTable::kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == GlobalIdTable::kNone ? newest_entry_ : entries_[entry.newer].older) = entry.older;
  entry.newer = free_;
  free_ = place;
}

void FragmentBook::note_newest(std::uint64_t id, std::uint64_t now_ns) {
  if (!has_newest_) first_ns_ = now_ns;
  if (!has_newest_ || id < first_) first_ = id;
  if (!has_newest_ || id > newest_) newest_ = id;
  has_newest_ = true;
  recent_.push({newest_, now_ns});
  if (recent_.full()) move_line();
}

void FragmentBook::move_line() {
  line_ = recent_.front().id;
  has_line_ = true;
  recent_.pop();
}

void FragmentBook::remember_clear(std::uint64_t id, std::uint64_t now_ns) {
  if (early_.full()) forget_clear();
  early_table_.insert(id, early_.next_place());
  early_.push({id, now_ns});
}

// If the fragment has arrived, the id is no longer in the table, or stands for a later clear.
void FragmentBook::forget_clear() {
  const std::uint64_t id = early_.front().id;
  if (early_table_.find(id) == early_.front_place()) {
    early_table_.erase(id);
    ++counts_.early_forgotten;
  }
  early_.pop();
}

void FragmentBook::note_gone(std::uint64_t id, std::uint64_t now_ns) {
  if (passed(id)) return;
  if (gone_.full()) forget_gone();
  gone_table_.insert(id, gone_.next_place());
  gone_.push({id, now_ns});
}

void FragmentBook::forget_gone() {
  gone_table_.erase(gone_.front().id);
  gone_.pop();
}

void FragmentBook::collect_garbage() {
  while (oldest_ != GlobalIdTable::kNone && entries_[oldest_].came_ns + settings_.garbage_ns < cleared_came_ns_) {
    ++counts_.garbage;
    let_go(oldest_);
  }
}

}  // namespace rodeo::readout
