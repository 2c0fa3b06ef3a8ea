// The network keys of a process of the farm: supervisor, node and recorder have the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rodeo/settings.h"

namespace rodeo::farm {

struct NetworkSettings {
  std::filesystem::path bus = {};  ///< Empty: transport::default_bus().
  std::string address = "127.0.0.1";
  std::vector<std::string> providers = {};
  std::filesystem::path secret_file = {};
  std::uint32_t page_bytes = 64U << 10;
  std::uint32_t pages = 16;
};

const Settings<NetworkSettings>& network_settings();

}  // namespace rodeo::farm
