// What an emulated card is made from, whatever its type.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "emulator/fault.h"
#include "emulator/felix_source.h"
#include "emulator/rdh_source.h"

namespace rodeo::emulator {

/// One card. What a type does not have is not looked at.
struct EmulatedCardSettings {
  CardType type = CardType::felix;
  std::string name = {};
  std::string address = {};  ///< of endpoint 0, "0000:3b:00.0"; endpoint 1 is the next function
  unsigned endpoints = 1;
  unsigned serial = 712;
  double temperature = 48;
  std::uint64_t fifo_triggers =
      4096;  ///< triggers that the card holds before it is busy; of a CRU frames, too, for a link without superpage
  unsigned max_payload = 256;  ///< Max_Payload_Size that the host has set, bytes
  unsigned lanes = 8;          ///< that the PCIe link was trained to
  std::vector<int> cpus = {};  ///< of the endpoints' DMA threads; empty: any
  FelixSourceSettings felix = {};
  std::chrono::nanoseconds flush{std::chrono::milliseconds{1}};  ///< an open block is sent when it is so old
  RdhSourceSettings rdh = {};
  unsigned links = 12;              ///< of a CRU
  double link_bits_per_second = 0;  ///< of a CRU's links: user data; 0: as fast as memory takes it
  bool paced = false;               ///< a CRU's frames come with the authority's triggers; else as fast as memory takes them
  bool drop = true;                 ///< a CRU that follows triggers loses frames that find no room; else it is busy
  std::string where = {};           ///< for messages
};

/// Links of each of its endpoints.
inline unsigned links_of(const EmulatedCardSettings& card) {
  switch (card.type) {
    case CardType::felix: return card.felix.links;
    case CardType::cru: return std::min(card.links, card_registers::cru::kLinks);
    case CardType::crorc: return std::min(card.links, card_registers::crorc::kLinks);
  }
  return 0;
}

}  // namespace rodeo::emulator
