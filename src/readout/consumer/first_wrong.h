// What a work that verifies found to be wrong first: in which event, on which link.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "rodeo/fragment.h"
#include "rodeo/input.h"

namespace rodeo::readout {

/// One thread tells, any thread reads.
class FirstWrong {
 public:
  /// Only the first call counts. `link_id`: of the chunk's header; 0: it is of the whole event.
  void tell(const Fragment& fragment, std::uint32_t link_id) {
    if (told_) return;
    told_ = true;
    l1id_.set(fragment.l1id.value);
    link_id_.set(link_id);
  }

  /// Numbers rather than counts: they are not added up.
  void add_to(std::vector<NamedCounter>& counters) const {
    counters.push_back({"first_wrong_l1id", l1id_.get()});
    counters.push_back({"first_wrong_link_id", link_id_.get()});
  }

 private:
  bool told_ = false;
  base::Gauge<std::uint64_t> l1id_, link_id_;
};

}  // namespace rodeo::readout
