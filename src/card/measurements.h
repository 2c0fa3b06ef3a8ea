// Values that a running card reports, under the names that ReadoutCard's tools send to monitoring. Status, metrics, packet
// monitor and Prometheus use them (docs/reference/card-metrics.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "card/card.h"

namespace rodeo::card {

/// Groups of measurements; reading one group reads no other registers.
enum class Group : std::uint8_t {
  card,     ///< values of the whole card: temperature, clocks, packets
  pcie,     ///< its link to the host
  setting,  ///< its configuration
  link,     ///< state of each link
  packets,  ///< packets of each link and of the datapath
  onu,      ///< optical network unit of a CRU
  fec       ///< its forward error correction
};

/// One measured value. It has upstream's name if upstream sends it.
struct FieldInfo {
  std::string_view card;  ///< "CRU", "C-RORC", "FELIX", or "all"
  Group group = Group::card;
  std::string_view measurement;  ///< "card", "CRU", "CRORC", "FELIX", "link", "wrapper", "onu", "fec", "channel"
  std::string_view name;         ///< "droppedPackets"
  std::string_view title;        ///< for tables, with unit
  std::string_view type;         ///< "gauge" or "counter"
  std::string_view help;
};

/// All fields, in the order in which they are read.
std::span<const FieldInfo> all_fields();

using MeasuredValue = std::variant<std::uint64_t, double>;

struct MeasuredField {
  const FieldInfo* info = nullptr;
  MeasuredValue value;
  std::string text = {};  ///< "UP (was DOWN)"; empty: the number is enough
};

/// One line to monitoring: fields that belong together. `id` is their link, channel or wrapper, if they have one.
struct Measurement {
  std::string_view name;
  std::optional<unsigned> id;
  std::vector<MeasuredField> fields;

  const MeasuredField* find(std::string_view field) const;
};

/// Reads one group. Values that the card's firmware does not have are absent. Changes nothing in the card. `links` has one
/// bit for each wanted link.
Result<std::vector<Measurement>> measure(Card& card, Group group, std::uint32_t links = UINT32_MAX);

/// Triggers that a CRU has seen since its start; 32-bit and 16-bit counters of the card.
struct TriggerCounts {
  std::uint32_t heartbeats = 0;
  std::uint32_t physics = 0;
  std::uint16_t calibration = 0;
  std::uint16_t tof = 0;
  std::uint8_t starts = 0;  ///< SOX, 4 bits
  std::uint8_t ends = 0;    ///< EOX, 4 bits
};
/// Error card.wrong_type for other cards.
Result<TriggerCounts> read_trigger_counts(Card& card);

}  // namespace rodeo::card
