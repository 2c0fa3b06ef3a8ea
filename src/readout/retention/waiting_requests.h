// WaitingRequests: requests for fragments that have not arrived yet. Pure: no thread, no clock, no network.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "readout/retention/global_id_table.h"

namespace rodeo::readout {

/// A waiting request: its client, the ROBs of an event that it wants, and its time limit.
struct WaitingRequest {
  std::uint64_t client = 0;
  std::uint64_t number = 0;  ///< number that the client chose
  std::uint64_t id = 0;      ///< global id
  std::uint64_t until_ns = 0;
  std::vector<std::uint32_t> robs = {};  ///< positions among the ROBs of the service
};

/// A bounded set of requests, found by id and by time. Allocates its memory at construction, except lists of ROBs. One
/// thread at a time.
class WaitingRequests {
 public:
  explicit WaitingRequests(std::size_t most);

  std::size_t size() const { return size_; }
  bool full() const { return free_ == GlobalIdTable::kNone; }

  /// Adds a request; the set must not be full. `request` gets the memory of another list.
  void add(WaitingRequest& request);

  /// Calls answered(request) for the requests of this id; removes those for which it returns true. The function must not
  /// call add().
  template <typename Answered>
  void for_each_of(std::uint64_t id, Answered&& answered) {
    if (size_ == 0) return;
    for (std::uint32_t at = table_.find(id); at != GlobalIdTable::kNone;) {
      const std::uint32_t next = places_[at].next;
      if (answered(places_[at].request)) remove(at);
      at = next;
    }
  }

  /// Calls answered(request) for all requests, with the same rules.
  template <typename Answered>
  void for_each(Answered&& answered) {
    for (std::uint32_t at = 0; size_ != 0 && at < used_; ++at) {
      if (places_[at].waits && answered(places_[at].request)) remove(at);
    }
  }

  /// Removes a request; false if it does not wait.
  bool drop(std::uint64_t client, std::uint64_t number);

 private:
  struct Place {
    WaitingRequest request;
    std::uint32_t next = GlobalIdTable::kNone;  ///< next request of the same id, or next free place
    bool waits = false;
  };

  void remove(std::uint32_t place);

  GlobalIdTable table_;  // the first place of each id
  std::vector<Place> places_;
  std::uint32_t free_ = GlobalIdTable::kNone;
  std::uint32_t used_ = 0;  // only the places below this one have been used
  std::size_t size_ = 0;
};

}  // namespace rodeo::readout
