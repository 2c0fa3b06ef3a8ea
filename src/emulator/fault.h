// Faults of cards, by name; on demand or by schedule.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo::emulator {

enum class CardType : std::uint8_t { felix, cru, crorc };
/// "FELIX", "CRU", "C-RORC"
std::string_view name_of(CardType type);

enum class FaultKind : std::uint8_t {
  link_down,
  link_up,
  bad_packet_counter,
  corrupt_rdh,
  truncated_page,
  dropped_superpage,
  stuck_fifo,
  size_index_mismatch,
  flipped_l1id,
  wrong_bcid,
  card_reset,
  temperature,
  removal,
  replug,
};

inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::replug) + 1;

struct FaultInfo {
  FaultKind kind;
  std::string_view name;
  std::string_view help;
};
/// All faults, in the order of the enum.
std::span<const FaultInfo> fault_infos();
std::optional<FaultKind> fault_kind(std::string_view name);
std::string_view fault_name(FaultKind kind);

/// True if cards of this type have the fault.
bool has_fault(CardType type, FaultKind kind);
/// True if the fault affects a link, false if it affects the whole function.
bool fault_has_link(FaultKind kind);
/// True if the fault can end by itself.
bool fault_has_duration(FaultKind kind);

/// One fault.
struct Fault {
  FaultKind kind = FaultKind::link_down;
  unsigned link = 0;
  double value = 0;  ///< degrees Celsius for `temperature`
  std::chrono::nanoseconds duration{
      0};             ///< duration of link_down, stuck_fifo and removal; 0: until undone. Of wrong_bcid; 0: one chunk
  bool ends = false;  ///< true: ends the fault (stuck_fifo and wrong_bcid)
};

/// The shortest period of a repeated fault.
inline constexpr std::chrono::nanoseconds kShortestFaultPeriod = std::chrono::milliseconds{1};
/// The range of `value` for temperature, in degrees Celsius.
inline constexpr double kColdest = -50;
inline constexpr double kHottest = 150;

/// A fault with its time.
struct ScheduledFault {
  Fault fault;
  std::string card;  ///< name of the card, or address of a function
  unsigned endpoint = 0;
  std::chrono::nanoseconds at{0};     ///< time after the start
  std::chrono::nanoseconds every{0};  ///< period; 0: once
};

}  // namespace rodeo::emulator
