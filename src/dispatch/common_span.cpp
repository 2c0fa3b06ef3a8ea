#include "dispatch/common_span.h"

#include <algorithm>

namespace rodeo::dispatch {

void CommonSpan::ended(std::uint32_t readout) {
  Readout& one = readouts_[readout];
  if (one.ended) return;
  one.ended = true;
  if (one.first) end_ = std::min(end_, one.newest);
}

bool CommonSpan::check_time(std::uint64_t now_ns) {
  if (begin_) return false;
  const auto told = [](const Readout& one) { return one.first.has_value(); };
  if (std::ranges::none_of(readouts_, told)) return false;
  told_ns_ = std::min(told_ns_, now_ns);
  const bool all = std::ranges::all_of(readouts_, [](const Readout& one) { return one.first || one.ended || !one.lives; });
  if (!all && now_ns - told_ns_ < wait_ns_) return false;
  begin();
  return true;
}

void CommonSpan::begin() {
  begin_ = 0;
  for (const Readout& one : readouts_) begin_ = std::max(*begin_, one.first.value_or(0));
}

void CommonSpan::stop() {
  if (!begin_) begin();
  bool some = false;
  for (const Readout& one : readouts_) {
    if (!one.first || !one.lives) continue;
    some = true;
    end_ = std::min(end_, std::max(one.newest, *one.first));
  }
  if (!some) begin_ = UINT64_MAX;  // No readout has brought anything.
}

bool CommonSpan::all_have(std::uint64_t id, const Holders& holders) const {
  for (std::uint32_t i = 0; i < readouts_.size(); ++i) {
    const Readout& one = readouts_[i];
    const bool may_have = one.lives && !one.ended && one.first && *one.first <= id;
    if (may_have && !holders.has(i)) return false;
  }
  return true;
}

}  // namespace rodeo::dispatch
