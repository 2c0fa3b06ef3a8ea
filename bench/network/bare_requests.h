// The transport alone: requests and replies of a given size, between as many services and clients as a farm has, with nothing behind them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "bench/network/two_processes.h"

namespace rodeo::bench {

struct BareRequestsSettings {
  std::string provider = "tcp";
  std::uint32_t services = 1;
  std::uint32_t clients = 1;
  std::uint32_t under_way = 32;  ///< requests of each client with each service
  std::uint32_t request_bytes = 32;
  std::uint32_t reply_bytes = 7784;
  std::uint32_t replies = 1024;  ///< of each service, in memory one behind the other: they go out in turn
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 64;  ///< of each connection
  double seconds = 1;
};

/// The product's Replier and Requester, a thread for each. Replies are sent from where they lie and dropped as they come: nobody looks at their bytes.
/// Throws SetupError.
Window bare_requests(const BareRequestsSettings& settings, const std::filesystem::path& bus);

}  // namespace rodeo::bench
