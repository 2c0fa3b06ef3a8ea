#include "readout/retention/waiting_requests.h"

#include <algorithm>

namespace rodeo::readout {

WaitingRequests::WaitingRequests(std::size_t most)
    : table_(std::max<std::size_t>(most, 1)), places_(std::max<std::size_t>(most, 1)) {
  for (auto place = static_cast<std::uint32_t>(places_.size()); place-- > 0;) {
    places_[place].next = free_;
    free_ = place;
  }
}

void WaitingRequests::add(WaitingRequest& request) {
  const std::uint32_t place = free_;
  free_ = places_[place].next;
  used_ = std::max(used_, place + 1);
  std::swap(places_[place].request, request);
  places_[place].waits = true;
  const std::uint64_t id = places_[place].request.id;
  places_[place].next = table_.find(id);
  table_.erase(id);
  table_.insert(id, place);
  ++size_;
}

bool WaitingRequests::drop(std::uint64_t client, std::uint64_t number) {
  for (std::uint32_t at = 0; at < used_; ++at) {
    const Place& place = places_[at];
    if (!place.waits || place.request.client != client || place.request.number != number) continue;
    remove(at);
    return true;
  }
  return false;
}

void WaitingRequests::remove(std::uint32_t place) {
  const std::uint64_t id = places_[place].request.id;
  const std::uint32_t next = places_[place].next;
  if (const std::uint32_t first = table_.find(id); first == place) {
    table_.erase(id);
    if (next != GlobalIdTable::kNone) table_.insert(id, next);
  } else {
    std::uint32_t before = first;
    while (places_[before].next != place) before = places_[before].next;
    places_[before].next = next;
  }
  places_[place].waits = false;
  places_[place].next = free_;
  free_ = place;
  --size_;
}

}  // namespace rodeo::readout
