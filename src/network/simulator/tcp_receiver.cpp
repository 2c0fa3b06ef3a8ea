#include "network/simulator/tcp_receiver.h"

#include <algorithm>

namespace rodeo::network {

/// Handles a segment that is not the next in order: it is acknowledged at once (RFC 5681, section 4.2), with the received
/// blocks (RFC 2018).
std::uint32_t TcpReceiver::receive_out_of_order(const TcpParameters&, Picoseconds, std::uint32_t first, std::uint32_t count,
                                                Acknowledgement& ack) {
  bool duplicate = false;
  if (!outside_) outside_.make();
  const std::uint32_t end = first + count;
  std::uint32_t fresh = count;
  if (before(first, next_)) {
    const std::uint32_t again = before(end, next_) ? count : next_ - first;
    fresh -= again;
    duplicate = true;
  }
  for (const SegmentBlock& block : outside_->blocks) {
    const std::uint32_t from = before(first, block.begin) ? block.begin : first;
    const std::uint32_t to = before(end, block.end) ? end : block.end;
    if (before(from, to)) {
      fresh -= to - from;
      duplicate = true;
    }
  }
  duplicates_ += count - fresh;
  if (before(next_, end)) insert({before(first, next_) ? next_ : first, end});
  auto& blocks = outside_->blocks;
  if (!blocks.empty() && blocks.front().begin == next_) {
    next_ = blocks.front().end;
    blocks.erase(blocks.begin());
    std::erase_if(outside_->recent, [&](std::uint32_t segment) { return before(segment, next_); });
  }
  pending_ = 0;
  deadline_ = kNever;
  ack.cumulative = next_;
  ack.duplicate = duplicate;
  ack.blocks = 0;
  report(ack);
  if (blocks.empty()) outside_.reset();
  return 1;
}

void TcpReceiver::insert(SegmentBlock block) {
  auto& blocks = outside_->blocks;
  auto at = std::lower_bound(blocks.begin(), blocks.end(), block,
                             [](const SegmentBlock& a, const SegmentBlock& b) { return before(a.end, b.begin); });
  auto last = at;
  for (; last != blocks.end() && !before(block.end, last->begin); ++last) {
    if (before(last->begin, block.begin)) block.begin = last->begin;
    if (before(block.end, last->end)) block.end = last->end;
  }
  at = blocks.erase(at, last);
  blocks.insert(at, block);
  auto& recent = outside_->recent;
  std::erase_if(recent, [&](std::uint32_t segment) { return !before(segment, block.begin) && before(segment, block.end); });
  recent.insert(recent.begin(), block.begin);
  if (recent.size() > kMaxSackBlocks + 1) recent.pop_back();
}

void TcpReceiver::report(Acknowledgement& ack) const {
  for (const std::uint32_t segment : outside_->recent) {
    if (ack.blocks == kMaxSackBlocks) break;
    for (const SegmentBlock& block : outside_->blocks) {
      if (!before(segment, block.begin) && before(segment, block.end)) ack.block[ack.blocks++] = block;
    }
  }
}

}  // namespace rodeo::network
