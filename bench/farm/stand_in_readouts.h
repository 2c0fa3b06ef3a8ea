// Stand-ins for readouts: they hold no data, take clears, and check that each event is cleared once, after its assignment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/farm/farm_meeting.h"
#include "formats/fragment_request.h"
#include "transport/replier.h"

namespace rodeo::bench {

struct StandInReadoutsSettings {
  std::filesystem::path bus;
  std::uint32_t first = 0;  ///< number of the first readout
  std::uint32_t readouts = 1;
};

/// The name of a readout's service.
std::string stand_in_readout(std::uint32_t number);

/// Each readout has its own service and connection. The first readout marks each id; the others hash the ids, and the hashes
/// must be equal. For one thread.
class StandInReadouts {
 public:
  StandInReadouts(StandInReadoutsSettings settings, const FarmMeeting& meeting);
  bool poll(std::uint64_t now_ns);

 private:
  void answer(std::uint32_t index, const transport::Replier::Request& request);
  void clear(std::uint32_t number, std::span<const std::byte> bytes);

  const StandInReadoutsSettings settings_;
  const FarmMeeting& meeting_;
  std::vector<std::unique_ptr<transport::Replier>> services_;
  std::uint64_t polled_ns_ = 0;
  std::vector<transport::Replier::Request> requests_;
  std::vector<transport::Replier::Dropped> dropped_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> reply_;
  formats::ClearRequest clear_;
};

}  // namespace rodeo::bench
