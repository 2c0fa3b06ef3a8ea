#include "readout/consumer/fragment_reply.h"

#include <utility>

namespace rodeo::readout {

void FragmentReply::add(FragmentPtr fragment, L1Id l1id, const formats::RobFrame& frame) {
  const std::size_t bytes = fragment->payload_bytes();
  formats::append_rob_head(around_, frame, *fragment, l1id, bytes);
  for (const FragmentPart& part : fragment->all_parts()) {
    if (part.size > 0) data_.push_back({around_.size(), {part.data, part.size}});
  }
  formats::append_rob_tail(around_, frame, *fragment, bytes);
  fragments_.push_back(std::move(fragment));
}

std::span<const std::span<const std::byte>> FragmentReply::parts(std::vector<std::span<const std::byte>>& list) const {
  list.clear();
  const std::span around(around_);
  std::size_t at = 0;
  for (const Data& data : data_) {
    if (data.at > at) list.push_back(around.subspan(at, data.at - at));
    at = data.at;
    list.push_back(data.bytes);
  }
  if (around.size() > at) list.push_back(around.subspan(at));
  return list;
}

void FragmentReply::clear() {
  around_.clear();
  data_.clear();
  fragments_.clear();
}

}  // namespace rodeo::readout
