#include "readout/retention/fragment_book.h"

#include <algorithm>

namespace rodeo::readout {

FragmentBook::Counts& FragmentBook::Counts::operator+=(const Counts& other) {
  arrived += other.arrived;
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
      released_table_(std::max<std::size_t>(settings.reorder_fragments, 1)),
      released_(std::max<std::size_t>(settings.reorder_fragments, 1)) {
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

FragmentBook::Outcome FragmentBook::keep(FragmentPtr& fragment, std::uint64_t now_ns) {
  if (!has_newest_ && run_at_ && !settings_.short_ids()) {
    offset_ = missing_rounds(fragment->global_id);
    aligned_ = true;
  }
  const std::uint64_t id = fragment->global_id + offset_;
  const auto release_as = [&](std::uint64_t& why) {
    on_arrival(id, now_ns);
    ++counts_.arrived;
    ++why;
    fragment.reset();
    return Outcome::released;
  };
  if (table_.find(id) != GlobalIdTable::kNone || was_released(id)) return release_as(counts_.duplicates);
  if (early_table_.size() != 0 && early_table_.erase(id)) {
    release_as(counts_.cleared_early);
    remember_released(id, now_ns);
    return Outcome::released;
  }
  if (free_ == GlobalIdTable::kNone) return Outcome::full;
  if (is_behind_line(id)) ++counts_.late;
  on_arrival(id, now_ns);
  ++counts_.arrived;
  store(fragment, id, now_ns);
  return Outcome::kept;
}

FragmentBook::Found FragmentBook::find(std::uint64_t id) const {
  if (!placed_ && has_newest_) return {unplaced_ ? Answer::lost : Answer::pending};
  if (const std::uint32_t place = table_.find(id); place != GlobalIdTable::kNone)
    return {Answer::kept, &entries_[place].fragment};
  if (is_behind_line(id) || was_released(id)) return {Answer::lost};
  if (early_table_.size() != 0 && early_table_.find(id) != GlobalIdTable::kNone) return {Answer::lost};
  return {Answer::pending};
}

void FragmentBook::clear(std::uint64_t id, std::uint64_t now_ns) {
  if (const std::uint32_t place = table_.find(id); place != GlobalIdTable::kNone) {
    newest_cleared_ns_ = std::max(newest_cleared_ns_, entries_[place].arrival_ns);
    ++counts_.cleared;
    release(place);
    return remember_released(id, now_ns);
  }
  if (is_behind_line(id) || was_released(id) || early_table_.find(id) != GlobalIdTable::kNone) {
    ++counts_.cleared_again;
    return;
  }
  remember_clear(id, now_ns);
}

void FragmentBook::advance(std::uint64_t now_ns) {
  if (!first_known_ && has_newest_ && first_ns_ + settings_.reorder_ns <= now_ns) {
    first_known_ = true;
    decide_placement(false);
  }
  if (waiting_outside_ || free_ == GlobalIdTable::kNone) {
    held_up_ns_ = now_ns;
  } else {
    const auto over = [&](const Moment& one) { return std::max(one.at_ns, held_up_ns_) + settings_.reorder_ns <= now_ns; };
    while (!recent_.empty() && over(recent_.front())) move_line();
    while (!released_.empty() && over(released_.front())) forget_released();
  }
  while (!early_.empty() && early_.front().at_ns + settings_.garbage_ns <= now_ns) forget_clear();
  collect_garbage();
}

void FragmentBook::align(std::uint64_t run_at, bool newest) {
  if (settings_.short_ids()) {
    if (!newest) return;  // the id of a single request may be old or wrong
    run_at_ = std::max(run_at, run_at_.value_or(0));
    return decide_placement(true);
  }
  if (aligned_) return;
  run_at_ = run_at;
  aligned_ = has_newest_;
  if (!has_newest_) return;
  if (const std::uint64_t by = missing_rounds(newest_); by != 0) shift(by);
}

// Places a book with short ids. `newest`: the run is now at run_at_.
void FragmentBook::decide_placement(bool newest) {
  if (aligned_ || !has_newest_ || !run_at_ || !first_known_) return;
  if (may_begin_the_run() || (newest && *run_at_ < settings_.id_step)) {
    placed_ = aligned_ = true;
  } else if (*run_at_ >= settings_.id_step && (newest || !placed_)) {
    placed_ = false;
    unplaced_ = aligned_ = true;
  }
}

bool FragmentBook::may_begin_the_run() const { return first_ == 0 && *run_at_ <= newest_ + most(); }

// The multiple of the step that brings this id nearest to the farm's id; at least 0.
std::uint64_t FragmentBook::missing_rounds(std::uint64_t id) const {
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
  released_.shift(by);
  table_.clear();
  for (std::uint32_t at = oldest_; at != GlobalIdTable::kNone; at = entries_[at].newer)
    table_.insert(entries_[at].global_id += by, at);
  released_table_.clear();
  released_.for_each([&](std::uint64_t id, std::uint32_t place) { released_table_.insert(id, place); });
}

void FragmentBook::set_alone() {
  placed_ = placed_ || (first_known_ && !unplaced_);
  // Readouts that join later take their rounds from this book.
  aligned_ = aligned_ || (placed_ && settings_.short_ids() && newest_ >= settings_.id_step);
}

void FragmentBook::end() {
  ended_ = true;
  first_known_ = has_newest_;
  decide_placement(false);
}

void FragmentBook::release_all() {
  while (oldest_ != GlobalIdTable::kNone) {
    ++counts_.left_over;
    release(oldest_);
  }
}

void FragmentBook::store(FragmentPtr& fragment, std::uint64_t id, std::uint64_t now_ns) {
  const std::uint32_t place = free_;
  Entry& entry = entries_[place];
  free_ = entry.newer;
  table_.insert(id, place);
  entry.global_id = id;
  entry.arrival_ns = now_ns;
  entry.bytes = static_cast<std::uint32_t>(fragment->payload_bytes());
  entry.fragment = std::move(fragment);
  bytes_ += entry.bytes;
  entry.older = newest_entry_;
  entry.newer = GlobalIdTable::kNone;
  (newest_entry_ == GlobalIdTable::kNone ? oldest_ : entries_[newest_entry_].newer) = place;
  newest_entry_ = place;
}

void FragmentBook::release(std::uint32_t place) {
  Entry& entry = entries_[place];
  table_.erase(entry.global_id);
  entry.fragment.reset();
  bytes_ -= entry.bytes;
  (entry.older == GlobalIdTable::kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == GlobalIdTable::kNone ? newest_entry_ : entries_[entry.newer].older) = entry.older;
  entry.newer = free_;
  free_ = place;
}

void FragmentBook::on_arrival(std::uint64_t id, std::uint64_t now_ns) {
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

void FragmentBook::remember_released(std::uint64_t id, std::uint64_t now_ns) {
  if (is_behind_line(id)) return;
  if (released_.full()) forget_released();
  released_table_.insert(id, released_.next_place());
  released_.push({id, now_ns});
}

void FragmentBook::forget_released() {
  released_table_.erase(released_.front().id);
  released_.pop();
}

void FragmentBook::collect_garbage() {
  while (oldest_ != GlobalIdTable::kNone && entries_[oldest_].arrival_ns + settings_.garbage_ns < newest_cleared_ns_) {
    ++counts_.garbage;
    release(oldest_);
  }
}

}  // namespace rodeo::readout
