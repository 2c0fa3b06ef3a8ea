// The results of a run as columns: the source of names and values for JSON, CSV and Python.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "network/simulator/simulate.h"
#include "settings/json.h"

namespace rodeo::network {

template <typename Row>
struct Column {
  std::string_view name;  ///< name with its unit; "a.b" is the member b of an object a
  std::function<settings::Json(const Row&)> value;
};

/// All results except the hash and the fates of packets. count_columns() has the fates for each kind of packet.
std::span<const Column<Outcome>> outcome_columns();
std::span<const Column<PacketCount>> count_columns();
std::span<const Column<OccupancySample>> occupancy_columns();
std::span<const Column<FlowRecord>> flow_columns();

template <typename Row>
settings::Json json_of(std::span<const Column<Row>> columns, const Row& row) {
  settings::Json out = settings::Json::object();
  for (const auto& [name, value] : columns) {
    const std::size_t dot = name.find('.');
    (dot == name.npos ? out[name] : out[name.substr(0, dot)][name.substr(dot + 1)]) = value(row);
  }
  return out;
}

/// A line of CSV with the names, or with the values of a row.
template <typename Row>
std::string csv_line(std::span<const Column<Row>> columns, const Row* row = nullptr) {
  std::string line;
  for (const auto& [name, value] : columns)
    line += (line.empty() ? "" : ",") + (row == nullptr ? std::string(name) : value(*row).dump(0));
  return line + "\n";
}

}  // namespace rodeo::network
