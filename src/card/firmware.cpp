#include "card/firmware.h"

#include <charconv>

#include <fmt/core.h>

namespace rodeo::card {

FirmwareTable FirmwareTable::built_in() {
  FirmwareTable table;
  table.compatible_ = {
      {0xf6b5d742, "v3.19.4"}, {0x6838510f, "v3.17.0"},  {0xe64b97b1, "v3.15.0"},         {0x14ccd414, "v3.14.1"},
      {0x2058c933, "v3.14.0"}, {0x0de0c0de, "emulated"}, {0x8e0d2ffd, "emulated C-RORC"},
  };
  table.old_ = {{0x4a412c71, "v3.13.0"}};
  return table;
}

Result<void> FirmwareTable::add(std::string_view hash, std::string name) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), number, 16);
  if (hash.empty() || hash.size() > 8 || error != std::errc{} || end != hash.data() + hash.size())
    return std::unexpected(Error{"card.bad_firmware_table", fmt::format("\"{}\" is not the hash of a firmware", hash), "",
                                 "write one to eight hexadecimal digits, as `rodeo card list` shows them"});
  compatible_[number] = std::move(name);
  return {};
}

std::string FirmwareTable::name_of(std::uint32_t hash) const {
  if (const auto found = compatible_.find(hash); found != compatible_.end()) return found->second;
  if (const auto found = old_.find(hash); found != old_.end()) return found->second + " (old)";
  return hash_text(hash);
}

Result<void> check_firmware(Card& card, const FirmwareTable& table) {
  const auto hash = RODEO_TRY(read_firmware_hash(card));
  if (hash && table.compatible(*hash)) return {};
  const std::string which = hash ? table.name_of(*hash) : "unknown";
  // The message names the card; unknown firmware may not report its serial number.
  const auto identity = identify(card);
  const std::string serial = identity && identity->serial ? fmt::format("{:04}", *identity->serial) : "unknown";
  return std::unexpected(
      Error{"card.firmware",
            fmt::format("the firmware {} of the {} with serial number {}, endpoint {}, is not known to this driver", which,
                        name_of(card.type()), serial, card.endpoint_or_zero()),
            card.address().text(), "add its hash to the firmware table, or bypass the check"});
}

}  // namespace rodeo::card
