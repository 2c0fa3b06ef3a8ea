// The transport alone: requests and replies of a given size, between the services and clients of a farm, without other work.
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
  std::uint32_t under_way = 32;  ///< requests of each client to each service
  std::uint32_t request_bytes = 32;
  std::uint32_t reply_bytes = 7784;
  std::uint32_t replies = 1024;  ///< replies of each service, one after the other in memory; sent in turn
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 64;  ///< pages of each connection
  double seconds = 1;
};

/// The product's Replier and Requester, a thread for each. Replies are sent from their memory and dropped on arrival; their
/// bytes are not read. Throws SetupError.
Window bare_requests(const BareRequestsSettings& settings, const std::filesystem::path& bus);

}  // namespace rodeo::bench
