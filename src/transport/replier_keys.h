// The configuration keys of a replier, the same in every program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "rodeo/settings.h"
#include "transport/replier.h"

namespace rodeo::transport {

struct ReplierKeys {
  std::filesystem::path bus = {};  ///< empty: default_bus()
  std::string address = "127.0.0.1";
  std::vector<std::string> providers = {};
  std::filesystem::path secret_file = {};
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 64;
  std::uint32_t most_clients = 4096;  ///< limit of clients at a time

  /// Makes the settings of a replier of this name and service. Errors transport.secret_file, transport.no_secret.
  Result<ReplierSettings> replier(std::string name, std::string service) const;
};

const Settings<ReplierKeys>& replier_keys();

}  // namespace rodeo::transport
