#include "storage/event_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rodeo::storage {

using namespace formats;

void EventNumbers::found(std::optional<std::uint32_t> number, std::uint64_t offset, bool damage) {
  damaged_ = 0;
  if (!number) {
    ++(jump_ ? jump_->unnamed : unnamed_);
    return;
  }
  if (jump_) end_jump(jumps_back() ? *number <= *last_ : *number > jump_->to + jump_->unnamed);
  if (!last_) begin_near(*number - static_cast<std::uint32_t>(std::min<std::uint64_t>(unnamed_, *number - 1)));
  const std::uint64_t next = *last_ + unnamed_ + 1;
  if (*number > next || (*number < next && !confirmed_)) {
    jump_ = Jump{.to = *number, .offset = offset, .damage = damage};
  } else if (*number == next) {
    confirmed_ = confirmed_ || next > first_ + 1 + unnamed_;
    last_ = next;
    unnamed_ = 0;
  } else {
    ++unnamed_;
  }
}

void EventNumbers::damaged(std::uint32_t number) {
  if (!last_) begin_near(number);
  damaged_ = number;
}

void EventNumbers::finish(const std::optional<FileEnd>& end, std::uint64_t offset, std::uint64_t unread) {
  if (jump_)
    end_jump(jumps_back() ? end && end->blocks_in_sequence < *last_
                          : jump_->damage || (end && end->blocks_in_sequence == jump_->to + jump_->unnamed));
  if (!last_) return;
  const std::uint64_t last = end ? end->blocks_in_sequence : damaged_;
  if (last <= *last_ + unnamed_) return;
  const bool believed =
      end ? unread > 0 || end->blocks_in_file == last - first_ : last - *last_ <= 1 + unread / kSeparatorBytes;
  if (believed) add_gap(last + 1, offset);
}

void EventNumbers::end_jump(bool believed) {
  const bool back = jumps_back();
  const Jump jump = *std::exchange(jump_, std::nullopt);
  confirmed_ = confirmed_ || believed;
  if (believed && back) {
    first_ = jump.to - 1 - std::min(jump.to - 1, *last_ - first_ + unnamed_);
    last_ = jump.to;
    unnamed_ = 0;
  } else if (believed) {
    add_gap(jump.to, jump.offset);
  }
  unnamed_ += believed ? jump.unnamed : jump.unnamed + 1;
}

// The events between the last one and `next` are either without number or missing.
void EventNumbers::add_gap(std::uint64_t next, std::uint64_t offset) {
  const std::uint64_t first = *last_ + 1;
  const std::uint64_t count = next - first - unnamed_;
  const std::string some = count == 1 ? "one is" : fmt::format("{} are", count);
  findings_.add(offset, first + 1 == next       ? fmt::format("event {} is missing", first)
                        : count == next - first ? fmt::format("events {} to {} are missing", first, next - 1)
                                                : fmt::format("of events {} to {} {} missing", first, next - 1, some));
  missing_ += count;
  last_ = next;
  unnamed_ = 0;
}

}  // namespace rodeo::storage
