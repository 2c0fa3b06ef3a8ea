// The tables [control...] of a configuration: a system of processes that a control room starts, watches and ends
// (docs/how-to/control-room.md). Python runs the system; this file declares and checks the tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rodeo/settings.h"
#include "settings/configuration.h"

namespace rodeo::process {

/// [control]
struct ControlKeys {
  std::string name = "rodeo";
  std::filesystem::path directory;
  std::string database;
  std::string listen = "127.0.0.1:0";
  std::uint64_t disk_stop_bytes = 3'000'000'000;
  std::uint64_t disk_warn_bytes = 10'000'000'000;
  std::chrono::nanoseconds disk_time{std::chrono::minutes{10}};
  std::chrono::nanoseconds event_limit{std::chrono::seconds{30}};
  std::chrono::nanoseconds choose_limit{std::chrono::seconds{60}};
  double patience = 1;
  std::chrono::nanoseconds lumi_block{0};
  std::string umask = "0027";
  std::string group;
};

/// [[control.process]]
struct ProcessClassKeys {
  std::string name;
  std::string kind;
  std::filesystem::path configuration;
  std::vector<std::string> command;
  std::uint32_t count = 1;
  std::vector<std::string> hosts;
  std::string role = "essential";
  double at_least = 1;
  std::string restart = "never";
  std::vector<std::string> set;
  std::int32_t order = 0;
  std::chrono::nanoseconds launch_limit{std::chrono::seconds{60}};
  std::chrono::nanoseconds start_limit{std::chrono::seconds{10}};
  std::chrono::nanoseconds stop_limit{std::chrono::seconds{60}};
};

/// [[control.host]]
struct HostKeys {
  std::string name;
  std::string launcher = "local";
  std::string address;
};

const Settings<ControlKeys>& control_settings();
const Settings<ProcessClassKeys>& process_class_settings();
const Settings<HostKeys>& host_settings();

/// [control] and the tables below it.
std::vector<settings::TableDeclaration> control_tables();

/// The configuration of a class of processes. One process starts with it, or several alike.
struct ClassConfiguration {
  std::string process;  ///< name of the first process that starts with it
  std::filesystem::path file;
  std::vector<std::string> overrides;  ///< `set`, with {index} and so on replaced
};

/// The configurations of a valid system, without repetitions. Empty if the configuration has no [control].
std::vector<ClassConfiguration> class_configurations(const settings::Configuration& configuration);

/// The errors of a system beyond those of single keys: duplicate process names, classes that lack what their kind needs,
/// undeclared hosts, a page open to other computers. Empty without [control]. Codes control.bad_system,
/// control.not_loopback.
settings::ConfigurationErrors check_control(const settings::Configuration& configuration);

}  // namespace rodeo::process
