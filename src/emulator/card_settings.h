// Settings of an emulated card of any type.
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

/// One card. Members that its type does not have are ignored.
struct EmulatedCardSettings {
  CardType type = CardType::felix;
  std::string name = {};
  std::string address = {};  ///< PCI address of endpoint 0, "0000:3b:00.0"; endpoint 1 is the next function
  unsigned endpoints = 1;
  unsigned serial = 712;
  double temperature = 48;
  /// Triggers that the card holds before it is busy; for a CRU also the frames of each link that wait for a superpage.
  std::uint64_t fifo_triggers = 4096;
  unsigned max_payload = 256;  ///< Max_Payload_Size set by the host, bytes
  unsigned lanes = 8;          ///< lanes to which the PCIe link was trained
  std::vector<int> cpus = {};  ///< CPUs of the endpoints' DMA threads; empty: any
  FelixSourceSettings felix = {};
  std::chrono::nanoseconds flush{std::chrono::milliseconds{1}};  ///< age at which an open block is sent
  RdhSourceSettings rdh = {};
  unsigned links = 12;              ///< links of a CRU
  double link_bits_per_second = 0;  ///< speed of a CRU's links, in user data; 0: only memory limits it
  bool paced = false;               ///< true: a CRU's frames follow the authority's triggers; false: only memory limits them
  bool drop = true;                 ///< true: a CRU that follows triggers drops frames without room; false: it is busy
  std::string where = {};           ///< place in the configuration, for messages
};

/// Number of links of each endpoint.
inline unsigned links_of(const EmulatedCardSettings& card) {
  switch (card.type) {
    case CardType::felix: return card.felix.links;
    case CardType::cru: return std::min(card.links, card_registers::cru::kLinks);
    case CardType::crorc: return std::min(card.links, card_registers::crorc::kLinks);
  }
  return 0;
}

}  // namespace rodeo::emulator
