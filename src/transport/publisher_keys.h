// The configuration keys of a publisher, the same in every program.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "rodeo/settings.h"
#include "transport/publisher.h"

namespace rodeo::transport {

struct PublisherKeys {
  std::filesystem::path bus = {};  ///< empty: default_bus()
  std::string address = "127.0.0.1";
  std::vector<std::string> providers = {};
  std::filesystem::path secret_file = {};
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 64;
  std::chrono::nanoseconds flush = std::chrono::milliseconds{1};
  std::chrono::nanoseconds grace = std::chrono::seconds{5};

  /// Makes the settings of a publisher of this name. Errors transport.secret_file, transport.no_secret.
  Result<PublisherSettings> publisher(std::string name) const;
};

const Settings<PublisherKeys>& publisher_keys();

}  // namespace rodeo::transport
