#include "dispatch/clear_book.h"

#include <algorithm>
#include <utility>

namespace rodeo::dispatch {
namespace {

constexpr std::size_t kMostSpare = 64;  // Used batches whose memory is kept.

}  // namespace

void ClearBook::add(const Entry& entry, std::uint64_t now_ns) {
  if (open_.empty()) opened_ns_ = now_ns;
  open_.push_back(entry);
  ++entries_;
  if (open_.size() >= settings_.count) flush(now_ns, true);
}

void ClearBook::flush(std::uint64_t now_ns, bool at_once) {
  if (open_.empty() || (!at_once && now_ns < due_ns())) return;
  Closed batch;
  if (!spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  batch.entries.swap(open_);
  open_.clear();
  scratch_.clear();
  for (const Entry& entry : batch.entries) {
    if (entry.id != kNoId) scratch_.push_back(entry.id);
  }
  make_id_set(scratch_, batch.ids);
  // A batch without ids needs no answer; it is over in its turn.
  batch.missing = scratch_.empty() ? 0 : living();
  batch.done.assign((readouts_.size() + 63) / 64, 0);
  closed_.push_back(std::move(batch));
  ++end_;
}

void ClearBook::recycle(Closed&& batch) {
  if (spare_.size() >= kMostSpare) return;
  batch.entries.clear();
  spare_.push_back(std::move(batch));
}

std::uint32_t ClearBook::add_readout() {
  readouts_.push_back({.told = begin_});
  const auto readout = static_cast<std::uint32_t>(readouts_.size() - 1);
  for (Closed& batch : closed_) {
    batch.done.resize((readouts_.size() + 63) / 64, 0);
    if (!batch.ids.ranges.empty() || !batch.ids.bitmaps.empty()) ++batch.missing;
  }
  return readout;
}

bool ClearBook::has_cleared(const Closed& batch, std::uint32_t readout) const {
  return (batch.done[readout / 64] >> (readout % 64) & 1) != 0;
}

void ClearBook::connected(std::uint32_t readout) {
  Readout& is = readouts_[readout];
  if (!is.lives) {
    is.lives = true;
    for (Closed& batch : closed_) {
      if (!has_cleared(batch, readout) && (!batch.ids.ranges.empty() || !batch.ids.bitmaps.empty())) ++batch.missing;
    }
  }
  is.here = true;
  is.told = begin_;
}

void ClearBook::disconnected(std::uint32_t readout) { readouts_[readout].here = false; }

void ClearBook::died(std::uint32_t readout) {
  Readout& is = readouts_[readout];
  if (!is.lives) return;
  is.lives = is.here = false;
  for (Closed& batch : closed_) {
    if (batch.missing > 0 && !has_cleared(batch, readout)) --batch.missing;
  }
}

std::uint32_t ClearBook::living() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(readouts_, &Readout::lives));
}

std::uint64_t ClearBook::behind(std::uint32_t readout) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      closed_, [&](const Closed& batch) { return batch.missing > 0 && !has_cleared(batch, readout); }));
}

std::optional<ClearBook::Batch> ClearBook::next(std::uint32_t readout) const {
  const Readout& is = readouts_[readout];
  if (!is.here) return std::nullopt;
  std::uint64_t sequence = std::max(is.told, begin_);
  while (sequence < end_ && (closed_[sequence - begin_].missing == 0 || has_cleared(closed_[sequence - begin_], readout)))
    ++sequence;
  if (sequence >= end_) return std::nullopt;
  return Batch{sequence, &closed_[sequence - begin_].ids};
}

void ClearBook::answered(std::uint32_t readout, std::uint64_t sequence) {
  if (sequence < begin_ || sequence >= end_ || !readouts_[readout].lives) return;
  Closed& batch = closed_[sequence - begin_];
  if (has_cleared(batch, readout)) return;
  batch.done[readout / 64] |= std::uint64_t{1} << (readout % 64);
  if (batch.missing > 0) --batch.missing;
}

}  // namespace rodeo::dispatch
