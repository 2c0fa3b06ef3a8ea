// The JSON of vfio-user's VERSION message. Besides settings/, the only place that includes the JSON library.
#include <cerrno>
#include <nlohmann/json.hpp>

#include "formats/vfio_user.h"

namespace rodeo::formats::vfio_user {

std::string version_text(const Capabilities& capabilities) {
  const nlohmann::ordered_json text = {{"capabilities",
                                        {{"max_msg_fds", capabilities.max_msg_fds},
                                         {"max_data_xfer_size", capabilities.max_data_xfer_size},
                                         {"max_dma_maps", capabilities.max_dma_maps},
                                         {"pgsizes", capabilities.pgsizes},
                                         {"write_multiple", capabilities.write_multiple}}}};
  return text.dump();
}

std::expected<Capabilities, int> parse_version_text(std::string_view text) {
  Capabilities capabilities;
  if (text.empty()) return capabilities;
  if (text.size() > kMaxVersionTextBytes) return std::unexpected(EPROTO);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::unexpected(EPROTO);
  const auto found = json.find("capabilities");
  if (found == json.end()) return capabilities;
  if (!found->is_object()) return std::unexpected(EPROTO);
  const auto number = [&](const char* name, std::uint64_t& value) {
    const auto member = found->find(name);
    if (member == found->end()) return true;
    if (!member->is_number_unsigned()) return false;
    value = member->get<std::uint64_t>();
    return true;
  };
  if (!number("max_msg_fds", capabilities.max_msg_fds) || !number("max_data_xfer_size", capabilities.max_data_xfer_size) ||
      !number("max_dma_maps", capabilities.max_dma_maps) || !number("pgsizes", capabilities.pgsizes)) {
    return std::unexpected(EPROTO);
  }
  if (const auto member = found->find("write_multiple"); member != found->end()) {
    if (!member->is_boolean()) return std::unexpected(EPROTO);
    capabilities.write_multiple = member->get<bool>();
  }
  return capabilities;
}

}  // namespace rodeo::formats::vfio_user
