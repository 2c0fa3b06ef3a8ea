// The tables [[control.alarm]] and [[control.external]] of a system file: rules for values, and programs outside Rodeo that
// report values (docs/how-to/control-room-alarms.md). Python compares the values; this file declares and checks the tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::process {

/// [[control.alarm]]: a new rule, or other settings of a built-in rule.
struct AlarmKeys {
  std::string name;
  std::string of;
  std::string value;
  bool per_second = false;
  std::string comparison = ">";
  double limit = 0;
  std::chrono::nanoseconds hold{0};
  std::uint32_t times = 0;
  std::uint32_t of_last = 0;
  std::string priority = "warning";
  std::string text;
  std::string todo;
  std::string when = "running";
  std::string gone = "warning";
  bool enabled = true;
};

/// [[control.external]]: a Prometheus exporter, or an address that answers with JSON.
struct ExternalKeys {
  std::string name;
  std::string address;
  std::string format = "prometheus";
  std::chrono::nanoseconds every{std::chrono::seconds{5}};
  std::chrono::nanoseconds timeout{std::chrono::seconds{2}};
  std::vector<std::string> keep;
};

const Settings<AlarmKeys>& alarm_settings();
const Settings<ExternalKeys>& external_settings();
std::vector<settings::TableDeclaration> alarm_tables();

/// The errors in the alarms and external programs of a system with these classes of processes. Code control.bad_alarm.
settings::ConfigurationErrors check_alarms(const settings::Table& control, const std::set<std::string>& classes);

}  // namespace rodeo::process
