#include "emulator/fault.h"

#include <algorithm>
#include <array>

namespace rodeo::emulator {
namespace {

constexpr std::array kFaults{
    FaultInfo{FaultKind::link_down, "link_down", "a link loses its light: no data, status down"},
    FaultInfo{FaultKind::link_up, "link_up", "the link comes back; its sticky bit stays set"},
    FaultInfo{FaultKind::bad_packet_counter, "bad_packet_counter", "the next packet counter of a link skips one"},
    FaultInfo{FaultKind::corrupt_rdh, "corrupt_rdh",
              "the next header of a link has a wrong size (FELIX: a block has a wrong marker)"},
    FaultInfo{FaultKind::truncated_page, "truncated_page",
              "the next page of a link claims more bytes than it has (FELIX: a chunk is cut and flagged)"},
    FaultInfo{FaultKind::dropped_superpage, "dropped_superpage",
              "the next superpage of a link is lost, and the host gets one fewer back (FELIX: a block is lost)"},
    FaultInfo{FaultKind::stuck_fifo, "stuck_fifo",
              "a link takes superpages and fills none (FELIX: the channel stands still)"},
    FaultInfo{FaultKind::size_index_mismatch, "size_index_mismatch", "the next number in the size FIFO is one too high"},
    FaultInfo{FaultKind::flipped_l1id, "flipped_l1id", "a bit of the L1 id of the next chunk of a link is flipped"},
    FaultInfo{FaultKind::wrong_bcid, "wrong_bcid",
              "the BCID of the next chunk of a link is one too large; with a duration, of all its chunks"},
    FaultInfo{FaultKind::card_reset, "card_reset", "the card resets itself under load"},
    FaultInfo{FaultKind::temperature, "temperature", "the FPGA shows this temperature"},
    FaultInfo{FaultKind::removal, "removal", "the function vanishes: clients are disconnected, the socket is gone"},
    FaultInfo{FaultKind::replug, "replug", "the function comes back, as after power-on"},
};

static_assert(kFaults.size() == kFaultKinds);

}  // namespace

std::span<const FaultInfo> fault_infos() { return kFaults; }

std::optional<FaultKind> fault_kind(std::string_view name) {
  const auto found = std::ranges::find(kFaults, name, &FaultInfo::name);
  return found == kFaults.end() ? std::nullopt : std::optional(found->kind);
}

std::string_view name_of(CardType type) {
  switch (type) {
    case CardType::felix: return "FELIX";
    case CardType::cru: return "CRU";
    case CardType::crorc: return "C-RORC";
  }
  return "";
}

bool has_fault(CardType type, FaultKind kind) {
  switch (kind) {
    case FaultKind::bad_packet_counter:
    case FaultKind::size_index_mismatch: return type != CardType::felix;  // a FELIX's blocks have neither number
    case FaultKind::temperature: return type != CardType::crorc;          // a C-RORC has no sensor
    case FaultKind::flipped_l1id:
    case FaultKind::wrong_bcid: return type == CardType::felix;  // other cards send frames, by orbits
    default: return true;
  }
}

bool fault_has_link(FaultKind kind) {
  switch (kind) {
    case FaultKind::card_reset:
    case FaultKind::temperature:
    case FaultKind::removal:
    case FaultKind::replug: return false;
    default: return true;
  }
}

bool fault_has_duration(FaultKind kind) {
  return kind == FaultKind::link_down || kind == FaultKind::stuck_fifo || kind == FaultKind::removal ||
         kind == FaultKind::wrong_bcid;
}

std::string_view fault_name(FaultKind kind) { return kFaults[static_cast<std::size_t>(kind)].name; }

}  // namespace rodeo::emulator
